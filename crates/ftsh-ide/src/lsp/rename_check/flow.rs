//! Analysis of reads of a variable before the script sets the variable, which take the value from
//! the environment.
//!
//! The analysis follows the commands in the order of execution. A variable counts as set only if it
//! has certainly been set.

use std::collections::HashMap;

use ftsh_syntax::ast::{
    Block, Command, CommandKind, Expr, ExprKind, For, ForKind, Mode, Name, Parameter, Pipeline,
    Redirect, RedirectionTarget, Simple, StageKind, Try, VariableUse, Word, WordPart,
};
use ftsh_syntax::parse::literal;
use ftsh_syntax::walk;
use ftsh_syntax::walk::head_words;
use ftsh_syntax::{Script, Span};

/// Returns the first place that may read `name` before it is set, if there is one.
pub(crate) fn read_before_set(script: &Script, name: &str) -> Option<Span> {
    let mut functions = HashMap::new();
    walk::each(&script.body, &mut |command| {
        if let CommandKind::Function { name, body, .. } = &command.kind {
            functions.insert(name.clone(), body);
        }
    });
    let mut analysis = ReadAnalysis { name, functions, called: Vec::new(), found: None };
    analysis.block(&script.body, false);
    analysis.found
}

struct ReadAnalysis<'a> {
    name: &'a str,
    functions: HashMap<Name, &'a Block>,
    /// Functions analyzed already, as called before the variable is set.
    called: Vec<Name>,
    found: Option<Span>,
}

impl<'a> ReadAnalysis<'a> {
    /// Analyzes a block. Returns true if the variable is set after a successful end of the block.
    fn block(&mut self, block: &'a Block, mut set: bool) -> bool {
        for command in &block.commands {
            set = self.command(command, set);
        }
        set
    }

    fn command(&mut self, command: &'a Command, set: bool) -> bool {
        self.redirects(&command.redirects, set);
        let sets = command.redirects.iter().any(|it| self.is_set_by(it));
        let after = match &command.kind {
            CommandKind::Assign { name, value, .. } => {
                self.exprs(value, set);
                // An unset variable no longer comes from the environment either.
                set || &**name == self.name
            }
            CommandKind::Pipeline(pipeline) => self.pipeline(pipeline, set),
            CommandKind::If { arms, otherwise } => {
                let mut all = otherwise.is_some();
                for (condition, body) in arms {
                    self.exprs([condition], set);
                    all &= self.block(body, set);
                }
                let last = otherwise.as_ref().is_some_and(|body| self.block(body, set));
                set || all && last
            }
            CommandKind::Case(case) => {
                self.head(command, set);
                let mut all = case.otherwise.is_some();
                for body in case.arms.iter().map(|arm| &arm.body).chain(&case.otherwise) {
                    all &= self.block(body, set);
                }
                set || all
            }
            CommandKind::While { condition, body } => {
                self.exprs([condition], set);
                self.block(body, set);
                set
            }
            CommandKind::In { directory, body } => {
                self.exprs([directory], set);
                self.block(body, set)
            }
            CommandKind::With { companion, body } => {
                self.block(companion, set);
                self.block(body, set)
            }
            CommandKind::For(details) => self.for_(command, details, set),
            CommandKind::Try(details) => self.try_(command, details, set),
            // Functions are analyzed at their calls.
            CommandKind::Function { .. }
            | CommandKind::Comment { .. }
            | CommandKind::Use(_)
            | CommandKind::Jump(_) => set,
            CommandKind::Args(declaration) => {
                set || declaration.arguments.iter().any(|it| &*it.name == self.name)
            }
            CommandKind::List { name, adds, .. } => {
                self.head(command, set);
                set || !adds && &**name == self.name
            }
            CommandKind::Return(_) | CommandKind::Shift(_) | CommandKind::Channel(_) => {
                self.head(command, set);
                set
            }
        };
        after || sets
    }

    fn for_(&mut self, command: &'a Command, details: &'a For, set: bool) -> bool {
        self.head(command, set);
        let is_it = &*details.variable == self.name;
        self.block(&details.body, set || is_it);
        // The loop variable keeps the word that succeeded.
        set || is_it && matches!(details.kind, ForKind::Any(_))
    }

    fn try_(&mut self, command: &'a Command, details: &'a Try, set: bool) -> bool {
        self.head(command, set);
        let mut after = self.block(&details.body, set);
        if let Some((_, catch)) = &details.catch {
            after &= self.block(catch, set);
        }
        if let Some((_, finally)) = &details.finally {
            after |= self.block(finally, set);
        }
        set || after
    }

    /// Analyzes the reads in the head of a structure, or in a statement.
    fn head(&mut self, command: &'a Command, set: bool) {
        self.exprs(walk::expressions(command), set);
        for word in head_words(command) {
            self.word(word, set);
        }
    }

    fn pipeline(&mut self, pipeline: &'a Pipeline, set: bool) -> bool {
        let mut after = set;
        for stage in &pipeline.stages {
            after = match &stage.kind {
                StageKind::Simple(simple) => self.simple(simple, set),
                StageKind::Structure(block) => self.block(block, set),
            };
        }
        // Stages run in parallel, each with variables of its own.
        if pipeline.stages.len() == 1 { after } else { set }
    }

    fn simple(&mut self, simple: &'a Simple, set: bool) -> bool {
        for word in simple.assignments.iter().map(|(_, word)| word).chain(&simple.words) {
            self.word(word, set);
        }
        self.redirects(&simple.redirects, set);
        let name = walk::name(simple);
        match &name {
            Some(name) => self.call(name, set),
            None => {
                for name in self.functions.keys().cloned().collect::<Vec<_>>() {
                    self.call(&name, set);
                }
            }
        }
        let reads = name.is_some_and(|name| name == "read" && !self.functions.contains_key(&*name));
        let is_it = |word: &Word| literal::word(word).is_some_and(|it| it == self.name);
        set || reads && simple.words[1..].iter().any(is_it)
            || simple.redirects.iter().any(|it| self.is_set_by(it))
    }

    /// Analyzes the body of a called function. Its assignments do not count, because the function
    /// may return early.
    fn call(&mut self, name: &str, set: bool) {
        if set || self.called.iter().any(|called| &**called == name) {
            return;
        }
        if let Some((name, body)) = self.functions.get_key_value(name) {
            self.called.push(name.clone());
            let body = *body;
            self.block(body, false);
        }
    }

    fn is_set_by(&self, redirect: &Redirect) -> bool {
        let RedirectionTarget::Variable(word) = &redirect.target else { return false };
        let is_it = literal::word(word).is_some_and(|name| name == self.name);
        // A redirection that appends keeps the previous value.
        is_it && redirect.mode == Mode::Write
    }

    fn redirects(&mut self, redirects: &'a [Redirect], set: bool) {
        for redirect in redirects {
            match &redirect.target {
                RedirectionTarget::Variable(word) if !self.is_set_by(redirect) => {
                    if literal::word(word).is_some_and(|name| name == self.name) {
                        self.read(word.span, set);
                    }
                    self.word(word, set);
                }
                RedirectionTarget::Variable(_) | RedirectionTarget::Descriptor(_) => {}
                RedirectionTarget::File(word) | RedirectionTarget::HereString(word) => {
                    self.word(word, set);
                }
                RedirectionTarget::HereDocument { body, .. } => self.word(body, set),
            }
        }
    }

    fn exprs(&mut self, exprs: impl IntoIterator<Item = &'a Expr>, set: bool) {
        for expr in exprs {
            match &expr.kind {
                ExprKind::Word(word) => self.word(word, set),
                ExprKind::Call { name, .. } => self.call(name, set),
                ExprKind::Asked { pipeline, .. } => _ = self.pipeline(pipeline, set),
                ExprKind::Collected(block) => _ = self.block(block, set),
                ExprKind::Group(_)
                | ExprKind::Unary { .. }
                | ExprKind::Binary { .. }
                | ExprKind::Range { .. } => {}
            }
            self.exprs(walk::operands(expr), set);
        }
    }

    fn word(&mut self, word: &'a Word, set: bool) {
        if !set {
            self.parts(&word.parts);
        }
    }

    fn parts(&mut self, parts: &'a [WordPart]) {
        for (variable, _) in walk::variables_in_parts(parts) {
            self.variable(variable);
        }
    }

    fn variable(&mut self, variable: &'a VariableUse) {
        if matches!(&variable.parameter, Parameter::Named(name) if &**name == self.name) {
            self.read(variable.span, false);
        }
        if let Some((_, parts)) = &variable.substitute {
            self.parts(parts);
        }
    }

    fn read(&mut self, span: Span, set: bool) {
        if !set && self.found.is_none() {
            self.found = Some(span);
        }
    }
}
