//! Spellings of the parts of the tree.

use super::ast::{BinaryOperator, FileTest, ForKind, Question, Substitute, UnaryOperator, Unit};

impl UnaryOperator {
    /// Returns the operator as scripts write it, dots included.
    pub fn spelling(self) -> &'static str {
        match self {
            Self::Not => ".not.",
            Self::Test(test) => test.spelling(),
        }
    }
}

impl FileTest {
    /// Returns the test as scripts write it, dots included.
    pub fn spelling(self) -> &'static str {
        match self {
            Self::Exists => ".exists.",
            Self::Readable => ".isr.",
            Self::Writable => ".isw.",
            Self::Executable => ".isx.",
            Self::File => ".isfile.",
            Self::Directory => ".isdir.",
            Self::Link => ".islink.",
            Self::Pipe => ".ispipe.",
            Self::Socket => ".issock.",
            Self::Block => ".isblock.",
            Self::Character => ".ischar.",
        }
    }
}

impl BinaryOperator {
    /// Returns the operator with dots.
    pub fn spelling(self) -> &'static str {
        match self {
            Self::Or => ".or.",
            Self::And => ".and.",
            Self::Eq => ".eq.",
            Self::Ne => ".ne.",
            Self::Eql => ".eql.",
            Self::Neql => ".neql.",
            Self::Lt => ".lt.",
            Self::Le => ".le.",
            Self::Gt => ".gt.",
            Self::Ge => ".ge.",
            Self::Contains => ".contains.",
            Self::Matches => ".matches.",
            Self::Add => ".add.",
            Self::Sub => ".sub.",
            Self::Mul => ".mul.",
            Self::Div => ".div.",
            Self::Mod => ".mod.",
            Self::Pow => ".pow.",
        }
    }

    /// Returns the symbol of the operator if it was written as one, or else the operator with dots.
    pub fn written(self, is_symbol: bool) -> &'static str {
        self.symbol().filter(|_| is_symbol).unwrap_or(self.spelling())
    }

    /// Returns the symbol of the operator, if the operator has a symbol.
    pub fn symbol(self) -> Option<&'static str> {
        Some(match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Eql | Self::Neql | Self::Contains | Self::Matches | Self::Pow => return None,
        })
    }
}

impl Question {
    /// All questions that are operators, in the order of [`QUESTIONS`](crate::vocabulary::QUESTIONS).
    pub const ALL: [Self; 3] = [Self::Succeeds, Self::Yes, Self::Output];

    /// Returns the operator as scripts write it, dots included; empty for a bare command.
    pub fn spelling(self) -> &'static str {
        match self {
            Self::Bare => "",
            Self::Succeeds => ".succeeds.",
            Self::Yes => ".yes.",
            Self::Output => ".output.",
        }
    }
}

impl<L, N> ForKind<L, N> {
    /// Returns the keyword.
    pub fn keyword(&self) -> &'static str {
        match self {
            Self::Each => "for",
            Self::Any(_) => "forany",
            Self::All(_) => "forall",
        }
    }
}

impl Substitute {
    /// Returns the mark between the name and the word.
    pub fn spelling(self) -> &'static str {
        match self {
            Self::Default => ":-",
            Self::Alternative => ":+",
            Self::Required => ":?",
            Self::Command => "",
        }
    }
}

impl Unit {
    /// Returns the name as in `5 minutes`, or as in `1 minute` if `one`.
    pub fn spelling(self, one: bool) -> &'static str {
        let plural = match self {
            Self::Milliseconds => "ms",
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
            Self::Days => "days",
        };
        if one && self != Self::Milliseconds { &plural[..plural.len() - 1] } else { plural }
    }
}
