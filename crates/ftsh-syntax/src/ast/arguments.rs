//! Declaration of a script's arguments.

use super::{Name, Word};
use crate::span::Span;

/// `args "summary" arguments…`: the arguments that a script takes; or those of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentsDeclaration {
    /// Summary for the usage text, as written and without its quotes.
    pub summary: Option<(Word, String)>,
    /// Arguments in the order of the text.
    pub arguments: Vec<DeclaredArgument>,
}

/// Argument of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredArgument {
    /// Argument as written.
    pub word: Word,
    /// Variable for the value.
    pub name: Name,
    /// Span of the name; of a long option, with `-` where the variable has `_`.
    pub name_span: Span,
    /// Spellings of an option with their dashes. An operand has none.
    pub spellings: Vec<String>,
    /// Kind of the argument.
    pub kind: ArgumentKind,
}

/// Kind of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// `name`: an operand.
    Required,
    /// `name=word`: an operand with a default.
    Optional(String),
    /// `name...`: the remaining operands.
    Rest,
    /// `-v`: an option without a value.
    Flag,
    /// `--out=FILE`: an option with a value, which has this name in the usage line.
    Value(String),
    /// `--retries=3`: an option with a value and a default.
    ValueOr(String),
}

impl ArgumentsDeclaration {
    /// Returns the usage line of a script.
    pub fn usage(&self, script: &str) -> String {
        let mut line = format!("usage: {script}");
        for argument in &self.arguments {
            line.push(' ');
            line += &argument.usage();
        }
        line
    }

    /// Returns the usage line, and the summary if there is one.
    pub fn help(&self, script: &str) -> String {
        let mut text = self.usage(script) + "\n";
        if let Some((_, summary)) = &self.summary {
            text += summary;
            text.push('\n');
        }
        text
    }

    /// Returns the option with a spelling.
    pub fn option(&self, spelling: &str) -> Option<(usize, &DeclaredArgument)> {
        let mut all = self.arguments.iter().enumerate();
        all.find(|(_, argument)| argument.spellings.iter().any(|it| it == spelling))
    }

    /// Returns the spellings of all options, `--help` and `-h` included.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        let own = self.arguments.iter().flat_map(|it| &it.spellings).map(String::as_str);
        own.chain(["--help", "-h"].into_iter().filter(|it| self.option(it).is_none()))
    }
}

impl DeclaredArgument {
    /// Returns the argument as in a usage line: in brackets unless the script requires it.
    pub fn usage(&self) -> String {
        let name = if self.spellings.is_empty() {
            self.name.to_string()
        } else {
            self.spellings.join("|")
        };
        match &self.kind {
            ArgumentKind::Required => name,
            ArgumentKind::Rest => format!("[{name}...]"),
            ArgumentKind::Flag => format!("[{name}]"),
            ArgumentKind::Value(value) => format!("[{name}={value}]"),
            ArgumentKind::Optional(text) | ArgumentKind::ValueOr(text) => {
                let is_plain = !text.is_empty() && !text.contains(char::is_whitespace);
                let quote = if is_plain { "" } else { "\"" };
                format!("[{name}={quote}{text}{quote}]")
            }
        }
    }

    /// Returns the meaning of the variable, in a sentence without a full stop. The arguments are
    /// those `of` the script or a function.
    pub fn meaning(&self, of: &str) -> String {
        let option = self.spellings.join("` or `");
        match &self.kind {
            ArgumentKind::Required => format!("an argument of {of}"),
            ArgumentKind::Optional(text) => {
                format!("an argument of {of}, or the default `{text}`")
            }
            ArgumentKind::Rest => format!("a list of the remaining arguments of {of}"),
            ArgumentKind::Flag => format!("`true` with the option `{option}`, otherwise `false`"),
            ArgumentKind::Value(_) => {
                format!("the value of the option `{option}`; unset without the option")
            }
            ArgumentKind::ValueOr(text) => {
                format!("the value of the option `{option}`, or the default `{text}`")
            }
        }
    }
}
