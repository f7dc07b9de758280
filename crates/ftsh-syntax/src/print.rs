//! Printer of the tidied script.
//!
//! A printed script parses to the same tree. Each part of the tree is therefore written in the form
//! that reads back as the same part, with any neighbors.

mod command;
mod expr;
mod word;

use super::ast::{
    ArgumentsDeclaration, Around, Block, Command, CommandKind, Expr, For, ForKind, Mode, Redirect,
    RedirectionTarget, Script, Stage, Try, Word,
};
use super::clauses::{ForAllClauses, ForAnyClauses, On, OutputMode, TryClauses};

/// Returns the tidied script: indented by 4, one command a line, with comments and single blank
/// lines.
pub fn print(script: &Script) -> String {
    let mut printer = Printer::default();
    printer.block(&script.body);
    printer.end_line();
    // At the start of a text, the character would be read as a byte order mark.
    if printer.text.starts_with('\u{feff}') {
        printer.text.insert(0, '\n');
    }
    printer.text
}

/// Text written so far.
#[derive(Default)]
struct Printer {
    text: String,
    /// True if the last line has no newline yet.
    open: bool,
    depth: usize,
    /// Here-documents to write after the current line: bodies with their delimiters.
    documents: Vec<String>,
}

/// Text still to be written; the top of the stack comes first.
enum PrintTask<'t> {
    Commands(&'t [Command]),
    Else(Option<&'t Expr>),
    When(&'t [Word]),
    Line(&'static str),
    End(&'t [Redirect]),
    /// Stages after a stage of a pipeline, and true if its standard error is piped too.
    Piped(bool, &'t [Stage]),
}

impl Printer {
    /// Prints a block without recursion, because structures may nest deeper than the native stack
    /// allows.
    fn block(&mut self, block: &Block) {
        let mut tasks = vec![PrintTask::Commands(&block.commands)];
        while let Some(task) = tasks.pop() {
            match task {
                PrintTask::Commands([]) => {}
                PrintTask::Commands([command, rest @ ..]) => {
                    tasks.push(PrintTask::Commands(rest));
                    self.command(command, &mut tasks);
                }
                PrintTask::Else(condition) => {
                    self.depth -= 1;
                    self.begin_line();
                    self.text.push_str("else");
                    if let Some(condition) = condition {
                        self.text.push_str(" if ");
                        self.expr(condition);
                    }
                    self.depth += 1;
                }
                PrintTask::When(patterns) => {
                    self.depth -= 1;
                    self.begin_line();
                    self.text.push_str("when");
                    for pattern in patterns {
                        self.text.push(' ');
                        self.word(pattern);
                    }
                    self.depth += 1;
                }
                PrintTask::Line(keyword) => {
                    self.depth -= 1;
                    self.begin_line();
                    self.text.push_str(keyword);
                    self.depth += 1;
                }
                PrintTask::End(redirects) => {
                    self.depth -= 1;
                    self.begin_line();
                    self.text.push_str("end");
                    self.redirects(redirects);
                }
                PrintTask::Piped(errors, stages) => {
                    self.pipe(errors);
                    self.stages(stages, &mut tasks);
                }
            }
        }
    }

    /// Prints a command, or the head of a structure, and pushes the rest as tasks.
    fn command<'t>(&mut self, command: &'t Command, tasks: &mut Vec<PrintTask<'t>>) {
        if let CommandKind::Comment { text, trailing: true } = &command.kind
            && self.open
        {
            self.text.push_str(" #");
            self.text.push_str(text);
            return;
        }
        self.end_line();
        if command.gap {
            self.text.push('\n');
        }
        self.begin_line();
        self.content(command, tasks);
    }

    /// Prints a command without its layout.
    fn content<'t>(&mut self, command: &'t Command, tasks: &mut Vec<PrintTask<'t>>) {
        match &command.kind {
            CommandKind::Comment { text, .. } => {
                self.text.push('#');
                self.text.push_str(text);
            }
            CommandKind::Pipeline(pipeline) => self.stages(&pipeline.stages, tasks),
            CommandKind::Assign { name, value, local, exported } => {
                if *local {
                    self.text.push_str("local ");
                }
                if *exported {
                    self.text.push_str("export ");
                }
                self.text.push_str(name);
                if !local || value.is_some() {
                    self.text.push('=');
                }
                if let Some(value) = value {
                    self.expr(value);
                }
            }
            CommandKind::Return(value) => self.keyword("return", value.as_ref()),
            CommandKind::Shift(count) => self.keyword("shift", count.as_ref()),
            CommandKind::Jump(jump) => self.text.push_str(jump.keyword()),
            CommandKind::Channel(channel) => self.channel(channel),
            CommandKind::Args(declaration) => {
                self.text.push_str("args");
                self.declaration(declaration);
            }
            CommandKind::Use(used) => {
                self.text.push_str("use ");
                self.word(&used.file);
            }
            CommandKind::List { name, words, adds } => {
                self.text.push_str(if *adds { "list add " } else { "list " });
                self.text.push_str(name);
                self.text.push_str(if *adds { "" } else { " in" });
                for word in words {
                    self.text.push(' ');
                    self.expr(word);
                }
            }
            _ => self.structure(command, tasks),
        }
    }

    /// Prints the head of a structure, and pushes the rest as tasks.
    fn structure<'t>(&mut self, command: &'t Command, tasks: &mut Vec<PrintTask<'t>>) {
        if command.one_line {
            let body = match &command.kind {
                CommandKind::Try(head) => {
                    self.try_head(head);
                    &head.body
                }
                CommandKind::For(head) => {
                    self.for_head(head);
                    &head.body
                }
                CommandKind::In { directory, body } => {
                    self.keyword("in", Some(directory));
                    body
                }
                _ => return,
            };
            self.text.push_str(" -- ");
            self.content(&body.commands[0], tasks);
            return self.redirects(&command.redirects);
        }
        tasks.push(PrintTask::End(&command.redirects));
        self.head(&command.kind, tasks);
        self.depth += 1;
    }

    fn head<'t>(&mut self, kind: &'t CommandKind, tasks: &mut Vec<PrintTask<'t>>) {
        match kind {
            CommandKind::If { arms, otherwise } => {
                if let Some(block) = otherwise {
                    tasks.push(PrintTask::Commands(&block.commands));
                    tasks.push(PrintTask::Else(None));
                }
                for (at, (condition, block)) in arms.iter().enumerate().rev() {
                    tasks.push(PrintTask::Commands(&block.commands));
                    if at == 0 {
                        self.keyword("if", Some(condition));
                    } else {
                        tasks.push(PrintTask::Else(Some(condition)));
                    }
                }
            }
            CommandKind::Case(case) => {
                self.keyword("case", Some(&case.value));
                if let Some(block) = &case.otherwise {
                    tasks.push(PrintTask::Commands(&block.commands));
                    tasks.push(PrintTask::Else(None));
                }
                for arm in case.arms.iter().rev() {
                    tasks.push(PrintTask::Commands(&arm.body.commands));
                    tasks.push(PrintTask::When(&arm.patterns));
                }
                tasks.push(PrintTask::Commands(&case.comments.commands));
            }
            CommandKind::While { condition, body } => {
                self.keyword("while", Some(condition));
                tasks.push(PrintTask::Commands(&body.commands));
            }
            CommandKind::For(head) => {
                self.for_head(head);
                tasks.push(PrintTask::Commands(&head.body.commands));
            }
            CommandKind::Try(head) => {
                if let Some((_, block)) = &head.finally {
                    tasks.push(PrintTask::Commands(&block.commands));
                    tasks.push(PrintTask::Line("finally"));
                }
                if let Some((_, block)) = &head.catch {
                    tasks.push(PrintTask::Commands(&block.commands));
                    tasks.push(PrintTask::Line("catch"));
                }
                match head.around {
                    Some(Around::Structure) => {
                        return self.head(&head.body.commands[0].kind, tasks);
                    }
                    Some(Around::Function) => {}
                    None => self.try_head(head),
                }
                tasks.push(PrintTask::Commands(&head.body.commands));
            }
            CommandKind::In { directory, body } => {
                self.keyword("in", Some(directory));
                tasks.push(PrintTask::Commands(&body.commands));
            }
            CommandKind::With { companion, body } => {
                self.text.push_str("with ");
                if let [Command { kind: CommandKind::Pipeline(pipeline), .. }] =
                    &companion.commands[..]
                {
                    self.stages(&pipeline.stages, tasks);
                }
                tasks.push(PrintTask::Commands(&body.commands));
            }
            CommandKind::Function { name, body, .. } => {
                self.text.push_str("function ");
                self.text.push_str(name);
                let mut commands = &body.commands[..];
                if let [Command { kind: CommandKind::Args(declaration), .. }, rest @ ..] = commands
                {
                    self.declaration(declaration);
                    commands = rest;
                }
                if let [Command { kind: kind @ CommandKind::Try(details), .. }] = commands
                    && details.around == Some(Around::Function)
                {
                    return self.head(kind, tasks);
                }
                tasks.push(PrintTask::Commands(commands));
            }
            CommandKind::Comment { .. }
            | CommandKind::Pipeline(_)
            | CommandKind::Assign { .. }
            | CommandKind::Return(_)
            | CommandKind::Shift(_)
            | CommandKind::Jump(_)
            | CommandKind::List { .. }
            | CommandKind::Channel(_)
            | CommandKind::Use(_)
            | CommandKind::Args(_) => {}
        }
    }

    fn declaration(&mut self, declaration: &ArgumentsDeclaration) {
        let arguments = declaration.arguments.iter().map(|it| &it.word);
        let summary = declaration.summary.iter().map(|(word, _)| word);
        for word in summary.chain(arguments) {
            self.text.push(' ');
            self.word(word);
        }
    }

    fn keyword(&mut self, keyword: &str, value: Option<&Expr>) {
        self.text.push_str(keyword);
        if let Some(value) = value {
            self.text.push(' ');
            self.expr(value);
        }
    }

    fn for_head(&mut self, head: &For) {
        let For { kind, variable, list, input, usual, atomic_in, takes, gives, body: _ } = head;
        self.text.push_str(kind.keyword());
        self.text.push(' ');
        self.text.push_str(variable);
        match input {
            Some(input) => {
                self.text.push_str(" from input");
                self.clause(" by ", input.by.as_ref());
            }
            None => self.text.push_str(" in"),
        }
        self.words(list);
        match kind {
            ForKind::Each => {}
            ForKind::Any(ForAnyClauses { in_order, hedge_after, at_most }) => {
                if *in_order {
                    self.text.push_str(" in order");
                }
                let is_usual = usual.is_some();
                let hedge = if is_usual { " hedge after usual or " } else { " hedge after " };
                self.length(hedge, hedge_after.as_ref());
                self.clause(" at most ", at_most.as_ref());
            }
            ForKind::All(clauses) => {
                let ForAllClauses {
                    at_most,
                    at_least,
                    output,
                    keep_going,
                    finish_running,
                    on,
                    retry_lost,
                    while_free,
                    while_load,
                    once_in,
                } = &**clauses;
                self.clause(" at most ", at_most.as_ref());
                self.clause(" at least ", at_least.as_ref());
                if *keep_going {
                    self.text.push_str(" keep going");
                }
                if *finish_running {
                    self.text.push_str(" finish running");
                }
                self.text.push_str(match output {
                    Some(OutputMode::Grouped { in_order: false }) => " output grouped",
                    Some(OutputMode::Grouped { in_order: true }) => " output grouped in order",
                    Some(OutputMode::Tagged) => " output tagged",
                    None => "",
                });
                if let Some(On { engine, options }) = on {
                    self.text.push_str(" on ");
                    self.text.push_str(engine.name());
                    self.clause(" ", options.as_ref());
                }
                if let Some(times) = retry_lost {
                    self.text.push_str(" retry lost ");
                    self.times(times);
                }
                self.size(" while free ", while_free.as_ref());
                self.clause(" while load ", while_load.as_ref());
                self.clause(" once in ", once_in.as_ref());
            }
        }
        for (clause, words) in [("atomic in", atomic_in), ("takes", takes), ("gives", gives)] {
            if !words.is_empty() {
                self.text.push(' ');
                self.text.push_str(clause);
                self.words(words);
            }
        }
    }

    fn words(&mut self, words: &[Expr]) {
        for word in words {
            self.text.push(' ');
            self.expr(word);
        }
    }

    fn clause(&mut self, words: &str, value: Option<&Expr>) {
        if let Some(value) = value {
            self.text.push_str(words);
            self.expr(value);
        }
    }

    fn try_head(&mut self, head: &Try) {
        let Try {
            is_limit,
            around: _,
            clauses,
            usual,
            condition,
            atomic_in,
            through,
            body: _,
            catch: _,
            finally: _,
        } = head;
        let TryClauses {
            time,
            times,
            every,
            each,
            stalled,
            memory,
            backoff,
            signal,
            atomic,
            same_input,
            no_leftovers,
        } = clauses;
        if *is_limit {
            // `limit D` makes one attempt, which is not written.
            self.length("limit ", time.as_ref());
        } else {
            self.text.push_str("try");
            self.length(" for ", time.as_ref());
            if let Some(times) = times {
                self.text.push_str(if time.is_some() { " or " } else { " " });
                self.times(times);
            }
        }
        self.length(" every ", every.as_ref());
        self.length(if usual.is_some() { " each usual or " } else { " each " }, each.as_ref());
        self.length(" stalled ", stalled.as_ref());
        self.size(" memory ", memory.as_ref());
        if let Some(backoff) = backoff {
            self.backoff(backoff);
        }
        self.clause(" signal ", signal.as_ref());
        if *atomic {
            self.text.push_str(if atomic_in.is_empty() { " atomic" } else { " atomic in" });
            self.words(atomic_in);
        }
        if *same_input {
            self.text.push_str(" same input");
        }
        if *no_leftovers {
            self.text.push_str(" no leftovers");
        }
        if let Some((_, channel)) = through {
            self.text.push_str(" through ");
            self.text.push_str(channel);
        }
        self.clause(" while ", condition.as_ref());
    }

    /// Begins a line at the current depth.
    fn begin_line(&mut self) {
        self.end_line();
        self.indent();
        self.open = true;
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
    }

    /// Ends the current line, and writes its here-documents.
    fn end_line(&mut self) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        self.text.push('\n');
        for document in std::mem::take(&mut self.documents) {
            self.text.push_str(&document);
        }
    }

    fn redirects(&mut self, redirects: &[Redirect]) {
        for redirect in redirects {
            self.text.push(' ');
            self.redirect(redirect);
        }
    }

    fn redirect(&mut self, redirect: &Redirect) {
        let usual = u8::from(redirect.mode != Mode::Read);
        if redirect.descriptor != usual && !redirect.with_errors {
            self.text.push_str(&redirect.descriptor.to_string());
        }
        let variable = matches!(redirect.target, RedirectionTarget::Variable(_));
        if variable {
            self.text.push('-');
        }
        // `&> 2` is a file, `>&2` would be a descriptor.
        if redirect.with_errors && !variable {
            self.text.push('&');
        }
        self.text.push_str(match redirect.mode {
            Mode::Read => "<",
            Mode::Write => ">",
            Mode::Append => ">>",
        });
        if redirect.with_errors && variable {
            self.text.push('&');
        }
        match &redirect.target {
            RedirectionTarget::File(word) | RedirectionTarget::Variable(word) => {
                self.text.push(' ');
                self.word(word);
            }
            RedirectionTarget::Descriptor(descriptor) => {
                self.text.push('&');
                self.text.push_str(&descriptor.to_string());
            }
            RedirectionTarget::HereString(word) => {
                self.text.push_str("<< ");
                self.word(word);
            }
            RedirectionTarget::HereDocument { delimiter, indent, body } => {
                self.text.push_str(if indent.is_some() { "<-" } else { "<" });
                self.here_document(delimiter, indent.as_deref(), body);
            }
        }
    }
}
