//! Occurrences of the names of variables, functions and channels in a script.

use std::borrow::Cow;
use std::collections::BTreeSet;

use ftsh_syntax::ast::{
    Block, Command, CommandKind, Expr, ExprKind, Mode, Parameter, Redirect, RedirectionTarget,
    Simple, Stage, VariableUse, Word, WordPart,
};
use ftsh_syntax::parse::literal;
use ftsh_syntax::vocabulary::is_name;
use ftsh_syntax::walk::{self, head_words};
use ftsh_syntax::{Script, Span};

/// Kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    /// A variable.
    Variable,
    /// Function or program; both are called in the same way.
    Function,
    /// A channel.
    Channel,
}

/// Occurrence of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Occurrence {
    /// Span of the name.
    pub span: Span,
    /// Kind of the name.
    pub kind: NameKind,
    /// Name.
    pub name: String,
    /// True if the occurrence sets, defines or declares the name.
    pub defines: bool,
}

/// Names in a script, and reasons why the list may be incomplete.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Occurrences in the order of the text.
    pub all: Vec<Occurrence>,
    /// True if the script sources other files, which share variables and functions.
    pub sources: bool,
    /// True if the script uses variables with computed names.
    pub computed_variables: bool,
    /// True if the script runs commands with computed names.
    pub computed_commands: bool,
    /// Variables in the environment of commands.
    pub exported: BTreeSet<String>,
}

impl Names {
    /// Collects the names of a script.
    pub(super) fn of(script: &Script) -> Self {
        let mut names = Self::default();
        let text = script.source.text();
        NameCollector { text, names: &mut names }.block(&script.body);
        names.all.sort_by_key(|it| it.span.start);
        names
    }

    /// Returns the occurrence at an offset, which may be right behind the name.
    pub(super) fn at(&self, offset: usize) -> Option<&Occurrence> {
        self.all.iter().find(|it| it.span.start <= offset && offset <= it.span.end)
    }

    /// Returns all occurrences of a name.
    pub(super) fn same(&self, kind: NameKind, name: &str) -> impl Iterator<Item = &Occurrence> {
        self.all.iter().filter(move |it| it.kind == kind && it.name == name)
    }

    /// Returns the occurrences that set or define a name.
    pub(super) fn definitions(
        &self,
        kind: NameKind,
        name: &str,
    ) -> impl Iterator<Item = &Occurrence> {
        self.same(kind, name).filter(|it| it.defines)
    }
}

/// Returns the names of the variables that a script sets.
pub(crate) fn set_in(script: &Script) -> BTreeSet<String> {
    let names = Names::of(script);
    let is_set = |it: &Occurrence| it.kind == NameKind::Variable && it.defines;
    names.all.into_iter().filter(is_set).map(|it| it.name).chain(names.exported).collect()
}

struct NameCollector<'s, 'n> {
    text: &'s str,
    names: &'n mut Names,
}

impl NameCollector<'_, '_> {
    fn push(&mut self, kind: NameKind, defines: bool, name: &str, span: Span) {
        self.names.all.push(Occurrence { span, kind, name: name.into(), defines });
    }

    fn block(&mut self, block: &Block) {
        for command in &block.commands {
            self.command(command);
            for inner in walk::blocks(command) {
                self.block(inner);
            }
        }
    }

    fn command(&mut self, command: &Command) {
        match &command.kind {
            CommandKind::Assign { name, local, exported, .. } => {
                let words = usize::from(*local || *exported);
                if *exported {
                    self.names.exported.insert(name.to_string());
                }
                self.push(
                    NameKind::Variable,
                    true,
                    name,
                    self.word_after(command.span, words, name),
                );
            }
            CommandKind::List { name, adds, .. } => {
                let span = self.word_after(command.span, 1 + usize::from(*adds), name);
                self.push(NameKind::Variable, true, name, span);
            }
            CommandKind::For(details) => {
                let span = self.word_after(command.span, 1, &details.variable);
                self.push(NameKind::Variable, true, &details.variable, span);
            }
            CommandKind::Function { name, name_span, .. } => {
                self.push(NameKind::Function, true, name, *name_span);
            }
            CommandKind::Channel(channel) => {
                self.push(NameKind::Channel, true, &channel.name, channel.name_span);
            }
            CommandKind::Args(declaration) => {
                for argument in &declaration.arguments {
                    self.push(NameKind::Variable, true, &argument.name, argument.name_span);
                }
            }
            CommandKind::Try(details) => {
                if let Some((span, name)) = &details.through {
                    self.push(NameKind::Channel, false, name, *span);
                }
            }
            _ => {}
        }
        for expr in walk::expressions(command) {
            self.expr(expr);
        }
        if let CommandKind::Pipeline(pipeline) = &command.kind {
            for simple in pipeline.stages.iter().filter_map(Stage::simple) {
                self.simple(simple);
            }
        }
        self.redirects(&command.redirects);
        for word in head_words(command) {
            self.word(word);
        }
    }

    /// Returns the span of `name` in a head, after this number of words.
    fn word_after(&self, head: Span, words: usize, name: &str) -> Span {
        let is_blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n' | '\\');
        let mut start = head.start;
        for _ in 0..words {
            let rest = &self.text[start..];
            let word = rest.find(is_blank).unwrap_or(rest.len());
            let blanks = rest[word..].len() - rest[word..].trim_start_matches(is_blank).len();
            start += word + blanks;
        }
        Span::new(start, start + name.len())
    }

    fn simple(&mut self, simple: &Simple) {
        for (name, word) in &simple.assignments {
            self.names.exported.insert(name.to_string());
            self.word(word);
        }
        let name = simple.words.first().map(|word| (word.span, literal::word(word)));
        match name {
            Some((span, Some(name))) => {
                self.push(NameKind::Function, false, &name, span);
                self.arguments(&name, &simple.words[1..]);
            }
            Some((_, None)) => self.names.computed_commands = true,
            None => {}
        }
        for word in &simple.words {
            self.word(word);
        }
        self.redirects(&simple.redirects);
    }

    /// Adds names in the arguments of builtins.
    fn arguments(&mut self, command: &str, words: &[Word]) {
        if command == "source" {
            self.names.sources = true;
        }
        if !matches!(command, "read" | "unset" | "export") {
            return;
        }
        for word in words {
            let text = literal::word(word);
            let Some(text) = text.or_else(|| first_text(word)) else {
                self.names.computed_variables = true;
                continue;
            };
            match text.split_once('=') {
                _ if command != "export" => self.push(NameKind::Variable, true, &text, word.span),
                Some((name, _)) => _ = self.names.exported.insert(name.into()),
                // The rest of the name is computed.
                None if literal::word(word).is_none() => self.names.computed_variables = true,
                None => {
                    self.names.exported.insert(text.to_string());
                    self.push(NameKind::Variable, false, &text, word.span);
                }
            }
        }
    }

    fn redirects(&mut self, redirects: &[Redirect]) {
        for redirect in redirects {
            match &redirect.target {
                RedirectionTarget::Variable(word) => match literal::word(word) {
                    Some(name) => {
                        let writes = redirect.mode != Mode::Read;
                        self.push(NameKind::Variable, writes, &name, word.span);
                    }
                    None => {
                        self.names.computed_variables = true;
                        self.word(word);
                    }
                },
                RedirectionTarget::File(word) | RedirectionTarget::HereString(word) => {
                    self.word(word);
                }
                RedirectionTarget::HereDocument { body, .. } => self.word(body),
                RedirectionTarget::Descriptor(_) => {}
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Word(word) => self.word(word),
            ExprKind::Call { name, .. } => {
                let span = Span::new(expr.span.start, expr.span.start + name.len());
                self.push(NameKind::Function, false, name, span);
            }
            ExprKind::Asked { pipeline, .. } => {
                for simple in pipeline.stages.iter().filter_map(Stage::simple) {
                    self.simple(simple);
                }
            }
            ExprKind::Collected(_)
            | ExprKind::Group(_)
            | ExprKind::Unary { .. }
            | ExprKind::Binary { .. }
            | ExprKind::Range { .. } => {}
        }
        for operand in walk::operands(expr) {
            self.expr(operand);
        }
    }

    fn word(&mut self, word: &Word) {
        self.parts(&word.parts);
    }

    fn parts(&mut self, parts: &[WordPart]) {
        for (variable, _) in walk::variables_in_parts(parts) {
            self.variable(variable);
        }
    }

    fn variable(&mut self, variable: &VariableUse) {
        if let Parameter::Named(name) = &variable.parameter {
            // In `$((n))`, a name has no `$`.
            let written = &self.text[variable.span.start..variable.span.end];
            let start = variable.span.start + written.len()
                - written.trim_start_matches(['$', '{', '(']).len();
            self.push(NameKind::Variable, false, name, Span::new(start, start + name.len()));
        }
        if let Some((_, parts)) = &variable.substitute {
            self.parts(parts);
        }
    }
}

/// Returns the text before the first variable of a word, if the text is a name and a `=`.
fn first_text(word: &Word) -> Option<Cow<'_, str>> {
    let Some(WordPart::Bare(text)) = word.parts.first() else { return None };
    text.split_once('=').filter(|(name, _)| is_name(name)).map(|_| text.as_str().into())
}
