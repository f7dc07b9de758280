//! One line's pairs become a command, or a part of a structure.

use pest::Parser;

use super::builder::Builder;
use super::{Grammar, Pair, Result, Rule};
use crate::ast::{CommandKind, Expr, For, Jump, Name, Pipeline, Redirect, Stage, Try};
use crate::error::SyntaxError;
use crate::slug::Slug;
use crate::span::Span;

/// What one line holds.
pub(super) enum Line {
    Command(CommandKind),
    Head(Head),
    /// Stages of a pipeline, of which the last is the structure that begins here.
    Piped(Piped),
    Catch,
    Finally,
    ElseIf(Expr),
    Else,
    End(End),
}

/// What a line has of a pipeline.
#[derive(Default)]
pub(super) struct Piped {
    /// Commands.
    pub(super) stages: Vec<Stage>,
    /// The head of the structure that comes after them.
    pub(super) head: Option<(Head, Span)>,
    /// Whether that is on the same line as what it begins with.
    pub(super) on_one_line: bool,
}

/// The last line of a structure.
#[derive(Default)]
pub(super) struct End {
    pub(super) redirects: Vec<Redirect>,
    /// What comes after a `|`; and whether that is a `|&`.
    pub(super) after: Option<(bool, Piped)>,
}

/// The first line of a structure.
pub(super) enum Head {
    Try(Box<Try>),
    If(Expr),
    While(Expr),
    For(For),
    Function {
        name: Name,
        name_span: Span,
    },
    /// One that couldn't be understood; its `end` is still to come.
    Broken(&'static str),
}

impl Builder<'_> {
    /// A `statement`.
    pub(super) fn line(&mut self, pair: Pair) -> Result<Line> {
        Ok(match pair.as_rule() {
            Rule::try_head | Rule::if_head | Rule::while_head | Rule::for_head => {
                Line::Head(self.head(pair)?)
            }
            Rule::else_if => Line::ElseIf(self.condition(pair)?),
            Rule::function_head => {
                let name = pair.into_inner().next().expect("`function` is followed by a name");
                let name_span = self.span(&name);
                Line::Head(Head::Function { name: Self::name(&name), name_span })
            }
            Rule::catch_line => Line::Catch,
            Rule::else_line => Line::Else,
            Rule::end_line => Line::End(self.end(pair)?),
            Rule::return_line => Line::Command(CommandKind::Return(self.optional(pair)?)),
            Rule::shift_line => Line::Command(CommandKind::Shift(self.optional(pair)?)),
            Rule::assignment => Line::Command(self.assignment(pair, false)?),
            Rule::local if self.functions.contains("local") => self.own_command(&pair)?,
            Rule::local => Line::Command(self.local(pair)?),
            Rule::channel if self.functions.contains("channel") => self.own_command(&pair)?,
            Rule::channel => Line::Command(CommandKind::Channel(Box::new(self.channel(pair)?))),
            _ => match self.alone(pair.as_str()) {
                Some(line) => line,
                None => {
                    let piped = self.piped(pair)?;
                    match piped.head {
                        Some(_) => Line::Piped(piped),
                        None => {
                            let pipeline = Pipeline { stages: piped.stages };
                            Line::Command(CommandKind::Pipeline(pipeline))
                        }
                    }
                }
            },
        })
    }

    /// The head of a structure that can be a stage of a pipeline.
    pub(super) fn head(&mut self, pair: Pair) -> Result<Head> {
        Ok(match pair.as_rule() {
            Rule::try_head => Head::Try(Box::new(self.try_head(pair)?)),
            Rule::if_head => Head::If(self.condition(pair)?),
            Rule::while_head => Head::While(self.condition(pair)?),
            _ => Head::For(self.for_head(pair)?),
        })
    }

    /// A word that stands alone and means something, unless a function is called so.
    fn alone(&self, text: &str) -> Option<Line> {
        let line = match text {
            _ if self.functions.contains(text) => return None,
            "break" => Line::Command(CommandKind::Jump(Jump::Break)),
            "continue" => Line::Command(CommandKind::Jump(Jump::Continue)),
            "finally" => Line::Finally,
            _ => return None,
        };
        Some(line)
    }

    fn assignment(&mut self, pair: Pair, local: bool) -> Result<CommandKind> {
        let mut inner = pair.into_inner();
        let name = inner.next().expect("an assignment begins with a name");
        let name = Self::name(&name);
        let value = match inner.peek() {
            None => None,
            Some(value) if value.as_rule() == Rule::expression => Some(self.expr(value)?),
            Some(_) => Some(self.operations_of(inner)?),
        };
        Ok(CommandKind::Assign { name, value, local })
    }

    fn local(&mut self, pair: Pair) -> Result<CommandKind> {
        let inner = pair.into_inner().next().expect("`local` is followed by a name");
        match inner.as_rule() {
            Rule::assignment => self.assignment(inner, true),
            _ => Ok(CommandKind::Assign { name: Self::name(&inner), value: None, local: true }),
        }
    }

    /// A call of the script's own function, of a name that means something else without that.
    fn own_command(&mut self, pair: &Pair) -> Result<Line> {
        let start = self.span(pair).start;
        let mut pairs = Grammar::parse(Rule::pipeline, pair.as_str()).map_err(|_| {
            SyntaxError::new(Slug::Unexpected, self.span(pair), "this is no command")
        })?;
        let base = std::mem::replace(&mut self.base, start);
        let pipeline = self.pipeline(pairs.next().expect("what was parsed"));
        self.base = base;
        Ok(Line::Command(CommandKind::Pipeline(pipeline?)))
    }

    /// The one expression of a head.
    fn condition(&mut self, pair: Pair) -> Result<Expr> {
        self.expr(pair.into_inner().next().expect("the head holds an expression"))
    }

    pub(super) fn optional(&mut self, pair: Pair) -> Result<Option<Expr>> {
        pair.into_inner().next().map(|pair| self.expr(pair)).transpose()
    }
}
