//! Builder of lines: pairs become a command, or a part of a structure.

use pest::Parser;

use super::builder::Builder;
use super::{Grammar, Pair, Result, Rule, bashisms, near_clause, operator};
use crate::ast::{
    Block, Command, CommandKind, Expr, ExprKind, For, Jump, Name, Pipeline, Redirect, Stage,
    StageKind, Try, Word, WordPart,
};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::is_name;

/// Content of a line.
pub(super) enum ParsedLine {
    Command(CommandKind),
    Head(HeadLine),
    /// Stages of a pipeline; the last stage is a structure that begins on the line.
    Piped(Piped),
    /// Command that is the line of an arm inside of a `case`.
    When(WhenLine),
    Catch,
    Finally,
    ElseIf(Expr),
    Else,
    End(EndLine),
}

/// Part of a pipeline on a line.
#[derive(Default)]
pub(super) struct Piped {
    /// Commands.
    pub(super) stages: Vec<Stage>,
    /// Head of a structure after the commands.
    pub(super) head: Option<(HeadLine, Span)>,
    /// True if the head is on the line where the pipeline begins.
    pub(super) on_one_line: bool,
}

/// Line that begins with `when`.
pub(super) struct WhenLine {
    pub(super) pipeline: Pipeline,
    /// Error of the line outside of a `case`.
    pub(super) error: Option<Box<SyntaxError>>,
}

/// Last line of a structure.
#[derive(Default)]
pub(super) struct EndLine {
    pub(super) redirects: Vec<Redirect>,
    /// Stages after a `|`, and true if the pipe is `|&`.
    pub(super) after: Option<(bool, Piped)>,
}

/// First line of a structure.
pub(super) enum HeadLine {
    Try(Box<Try>),
    If(Expr),
    Case(Expr),
    While(Expr),
    For(Box<For>),
    In(Expr),
    With(Block),
    Function {
        name: Name,
        name_span: Span,
        parameters: Option<Command>,
    },
    /// Head that does not parse, whose `end` is still expected.
    Broken(&'static str),
}

/// Returns true for `${l[@]}`.
fn is_list(word: &Word) -> bool {
    matches!(&word.parts[..], [WordPart::Variable(variable)] if variable.is_all())
}

impl Builder<'_> {
    /// Builds a `statement`.
    pub(super) fn line(&mut self, pair: Pair) -> Result<ParsedLine> {
        Ok(match pair.as_rule() {
            rule if self.is_own_head(rule) => {
                ParsedLine::Command(CommandKind::Pipeline(self.own_command(&pair)?))
            }
            Rule::try_head
            | Rule::if_head
            | Rule::while_head
            | Rule::for_head
            | Rule::case_head
            | Rule::limit_head
            | Rule::in_head
            | Rule::with_head => ParsedLine::Head(self.head(pair)?),
            Rule::else_if => ParsedLine::ElseIf(self.condition(pair)?),
            Rule::function_head => {
                let mut inner = pair.into_inner();
                let name = inner.next().expect("`function` is followed by a name");
                let (name_span, parameters) = (self.span(&name), self.parameters(inner)?);
                let name = Self::name(&name);
                ParsedLine::Head(HeadLine::Function { name, name_span, parameters })
            }
            Rule::catch_line => ParsedLine::Catch,
            Rule::else_line => ParsedLine::Else,
            Rule::end_line => ParsedLine::End(self.end(pair)?),
            Rule::return_line => ParsedLine::Command(CommandKind::Return(self.optional(pair)?)),
            Rule::shift_line => ParsedLine::Command(CommandKind::Shift(self.optional(pair)?)),
            Rule::assignment if self.calls_symbol(&pair) => {
                ParsedLine::Command(CommandKind::Pipeline(self.own_command(&pair)?))
            }
            Rule::assignment => ParsedLine::Command(self.assignment(pair, false)?),
            Rule::local if self.functions.contains("local") => {
                ParsedLine::Command(CommandKind::Pipeline(self.own_command(&pair)?))
            }
            Rule::local => ParsedLine::Command(self.local(pair)?),
            Rule::export => ParsedLine::Command(self.export(&pair)?),
            Rule::args if self.declares_arguments(&pair) => {
                ParsedLine::Command(self.arguments(pair)?)
            }
            Rule::use_line if self.uses_file(&pair) => ParsedLine::Command(self.use_line(pair)?),
            Rule::args | Rule::use_line => {
                if pair.as_rule() == Rule::args {
                    self.refuse_late_arguments(&pair)?;
                }
                ParsedLine::Command(CommandKind::Pipeline(self.own_command(&pair)?))
            }
            Rule::list if self.functions.contains("list") => {
                ParsedLine::Command(CommandKind::Pipeline(self.own_command(&pair)?))
            }
            Rule::list => ParsedLine::Command(self.list(pair)?),
            Rule::channel if self.functions.contains("channel") => {
                ParsedLine::Command(CommandKind::Pipeline(self.own_command(&pair)?))
            }
            Rule::channel => {
                ParsedLine::Command(CommandKind::Channel(Box::new(self.channel(pair)?)))
            }
            _ if self.is_when(pair.as_str()) => ParsedLine::When(self.when(pair)?),
            _ => match self.alone(pair.as_str()) {
                Some(line) => line,
                None => {
                    self.check_list(&pair)?;
                    let piped = self.piped(pair)?;
                    match piped.head {
                        Some(_) => ParsedLine::Piped(piped),
                        None => {
                            let pipeline = Pipeline { stages: piped.stages };
                            ParsedLine::Command(CommandKind::Pipeline(pipeline))
                        }
                    }
                }
            },
        })
    }

    /// Builds the head of a structure that can be a stage of a pipeline.
    pub(super) fn head(&mut self, pair: Pair) -> Result<HeadLine> {
        Ok(match pair.as_rule() {
            Rule::try_head => HeadLine::Try(Box::new(self.try_head(pair)?)),
            Rule::limit_head => HeadLine::Try(Box::new(self.limit_head(pair)?)),
            Rule::if_head => HeadLine::If(self.condition(pair)?),
            Rule::case_head => HeadLine::Case(self.condition(pair)?),
            Rule::while_head => HeadLine::While(self.condition(pair)?),
            Rule::in_head => HeadLine::In(self.condition(pair)?),
            Rule::with_head => {
                let pipeline = self.pipeline(pair.clone())?;
                let span = self.span(&pair);
                let command = Command::plain(span, CommandKind::Pipeline(pipeline));
                HeadLine::With(Block { commands: vec![command] })
            }
            _ => HeadLine::For(Box::new(self.for_head(pair)?)),
        })
    }

    /// Returns true if the first word of a head is a function of the script.
    pub(super) fn is_own_head(&self, rule: Rule) -> bool {
        let own = match rule {
            Rule::case_head => "case",
            Rule::limit_head => "limit",
            Rule::in_head => "in",
            Rule::with_head => "with",
            _ => return false,
        };
        self.functions.contains(own)
    }

    /// Returns true if a line may begin an arm of a `case`.
    fn is_when(&self, text: &str) -> bool {
        let ends = |c: char| c.is_whitespace() || matches!(c, '\\' | '|' | '<' | '>' | '&');
        let rest = text.strip_prefix("when");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(ends))
            && !self.functions.contains("when")
    }

    /// Builds a line that begins with `when`.
    fn when(&mut self, pair: Pair) -> Result<WhenLine> {
        let mut inner = pair.clone().into_inner();
        let (Some(command), None) = (inner.next(), inner.next()) else {
            return Ok(WhenLine { pipeline: self.pipeline(pair)?, error: None });
        };
        let simple = self.unchecked(command)?;
        let error = bashisms::command(&simple, &self.functions, self.text).err();
        let stage = Stage { kind: StageKind::Simple(simple), pipe_errors: false };
        Ok(WhenLine { pipeline: Pipeline { stages: vec![stage] }, error })
    }

    /// Builds a statement of one word, unless the script defines a function of this name.
    fn alone(&self, text: &str) -> Option<ParsedLine> {
        let line = match text {
            _ if self.functions.contains(text) => return None,
            "break" => ParsedLine::Command(CommandKind::Jump(Jump::Break)),
            "continue" => ParsedLine::Command(CommandKind::Jump(Jump::Continue)),
            "finally" => ParsedLine::Finally,
            _ => return None,
        };
        Some(line)
    }

    /// Returns true if an assignment runs a function of the script: `x=1 + 2` with a function `+`.
    fn calls_symbol(&self, assignment: &Pair) -> bool {
        let value = assignment.clone().into_inner().nth(1);
        let symbol = value.and_then(|value| value.into_inner().nth(1));
        symbol.is_some_and(|symbol| {
            operator::infix(symbol.as_rule()).is_some() && self.functions.contains(symbol.as_str())
        })
    }

    fn assignment(&mut self, pair: Pair, local: bool) -> Result<CommandKind> {
        let mut inner = pair.into_inner();
        let name = inner.next().expect("an assignment begins with a name");
        let name = Self::name(&name);
        let value = match inner.peek() {
            None => None,
            Some(value) if value.as_rule() == Rule::calculation => Some(self.expr(value)?),
            Some(_) => Some(self.operations_of(inner)?),
        };
        Ok(CommandKind::Assign { name, value, local, exported: false })
    }

    fn local(&mut self, pair: Pair) -> Result<CommandKind> {
        let inner = pair.into_inner().next().expect("`local` is followed by a name");
        match inner.as_rule() {
            Rule::assignment => self.assignment(inner, true),
            _ => {
                let name = Self::name(&inner);
                Ok(CommandKind::Assign { name, value: None, local: true, exported: false })
            }
        }
    }

    /// Builds an `export`: an assignment if the value is calculated, or else a command.
    fn export(&mut self, pair: &Pair) -> Result<CommandKind> {
        let assigned = pair.clone().into_inner().next().expect("`export` is followed by a name");
        if !self.functions.contains("export")
            && let CommandKind::Assign { name, value: Some(value), .. } =
                self.assignment(assigned, false)?
            && !matches!(&value.kind, ExprKind::Word(word) if !is_list(word))
        {
            let value = Some(value);
            return Ok(CommandKind::Assign { name, value, local: false, exported: true });
        }
        Ok(CommandKind::Pipeline(self.own_command(pair)?))
    }

    /// Builds a `list`.
    fn list(&mut self, pair: Pair) -> Result<CommandKind> {
        let span = self.span(&pair);
        let (mut name, mut adds, mut words) = (None, false, Vec::new());
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::name => name = Some(Self::name(&inner)),
                Rule::add_word => adds = true,
                Rule::item => words.push(self.item(inner)?),
                _ => {}
            }
        }
        let name = name.expect("a list has a name");
        if adds && words.is_empty() {
            let error = SyntaxError::new(Slug::MissingValue, span, "expected words to add");
            return Err(Box::new(error.hint(hint!("write `list add {name} \"a word\" *.txt`"))));
        }
        let head = if adds { format!("list add {name}") } else { format!("list {name} in") };
        bashisms::list(&words, &head)?;
        near_clause::check_try(&words, "list")?;
        Ok(CommandKind::List { name, words, adds })
    }

    /// Refuses a `list` with more than words, such as a redirection.
    fn check_list(&self, pair: &Pair) -> Result<()> {
        let mut words = pair.as_str().split([' ', '\t']).filter(|word| !word.is_empty());
        let (first, second, third) = (words.next(), words.next(), words.next());
        let is_list = first == Some("list")
            && !self.functions.contains("list")
            && match (second, third) {
                (Some(name), Some("in")) | (Some("add"), Some(name)) => is_name(name),
                _ => false,
            };
        if !is_list {
            return Ok(());
        }
        let message = "`list` takes words, without redirections and pipes";
        let error = SyntaxError::new(Slug::Unexpected, self.span(pair), message);
        Err(Box::new(error.hint(hint!(
            "for the lines that a command prints, write `program -> v` and `list l in lines($v)`; \
             to run a program of this name, quote the name"
        ))))
    }

    /// Builds a call of the script's function whose name has another meaning without the
    /// definition.
    pub(super) fn own_command(&mut self, pair: &Pair) -> Result<Pipeline> {
        let start = self.span(pair).start;
        let mut pairs = Grammar::parse(Rule::pipeline, pair.as_str()).map_err(|_| {
            SyntaxError::new(Slug::Unexpected, self.span(pair), "this is not a command")
        })?;
        let base = std::mem::replace(&mut self.base, start);
        let pipeline = self.pipeline(pairs.next().expect("what was parsed"));
        self.base = base;
        pipeline
    }

    /// Builds the only expression of a head.
    fn condition(&mut self, pair: Pair) -> Result<Expr> {
        let inner = pair.into_inner().next().expect("the head holds an expression");
        match inner.as_rule() {
            Rule::decision => self.decision(inner),
            _ => self.expr(inner),
        }
    }

    pub(super) fn optional(&mut self, pair: Pair) -> Result<Option<Expr>> {
        pair.into_inner().next().map(|pair| self.expr(pair)).transpose()
    }
}
