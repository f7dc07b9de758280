//! Builtins that run other scripts and programs.

use std::sync::Arc;

use super::builtin::{Arguments, Builtin, Execution, in_finally};
use crate::commands::CommandRunner;
use crate::commands::calls::{CommandStart, program};
use crate::commands::redirect::enter_redirects;
use crate::core::{Flow, Step};
use crate::effect::{DurationsOf, Query};
use crate::eval::named_descriptor;
use crate::event::Reply;
use crate::frames::{CallFrame, Frame, FrameKind};
use crate::invocation::Expanded;
use crate::lower::lower_file;
use crate::program::Program;
use crate::tasks::Task;
use crate::transactions::TransactionKind;
use crate::values::Suspend;
use ftsh_syntax::slug::Slug;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "source",
        usage: &["source file"],
        help: "runs another script in this shell, which keeps its variables and functions",
        details: "",
        examples: &[("source /dev/stdin <<< 'n=1'\necho $n", "1\n")],
        arguments: Arguments::Whole,
        run: Execution::Commands(source),
    },
    Builtin {
        name: "exec",
        usage: &["exec command"],
        help: "replaces the shell by a program",
        details: "",
        examples: &[("exec true\necho never", "")],
        arguments: Arguments::Split,
        run: Execution::Program(exec),
    },
];

fn exec(task: &Task, command: &Expanded) -> Result<CommandStart, Suspend> {
    let args = &command.words[1..];
    if args.is_empty() {
        return Err(Suspend::usage("exec needs a command"));
    }
    if task.is_in_finally() {
        return Err(in_finally("exec"));
    }
    if task.is_atomic() {
        return Err(Suspend::builtin(
            Slug::ExecInAtomic,
            "exec is not possible in an atomic `try`",
        ));
    }
    let is_strict = |frame: &Frame| match &frame.kind {
        FrameKind::Transaction(it) => matches!(it.kind, TransactionKind::NoLeftovers { .. }),
        _ => false,
    };
    if task.frames.iter().any(is_strict) {
        return Err(Suspend::builtin(Slug::ExecInAtomic, "exec is not possible in `no leftovers`"));
    }
    Ok(CommandStart { last: true, ..CommandStart::new(program(task, command, args.to_vec())) })
}

fn source(commands: &mut CommandRunner<'_>, task: &mut Task, command: &Expanded) -> Step {
    let [_, path] = &command.words[..] else {
        return Err(Suspend::usage("source needs one file"));
    };
    let query = match named_descriptor(path) {
        Some(number) => Query::Input(task.opened().unwrap_or(&task.io).id(), number),
        None => Query::File(path.clone()),
    };
    let Some(Reply::Text(text)) = task.answer(&query) else {
        return Err(Suspend::Pending(query));
    };
    let name = path.to_string();
    let script = commands.definitions.parse(&name, text).map_err(|errors| {
        let first = &errors.errors[0];
        let line = errors.source.line(first.span.start);
        Suspend::builtin(Slug::SourcedError, format!("{name}:{line}: {}", first.message))
    })?;
    let durations = matches!(query, Query::File(_)).then(|| DurationsOf::Sourced(path.clone()));
    let program = Arc::new(lower_file(&script, durations));
    if task.depth() >= 1000 {
        return Err(Suspend::builtin(Slug::Recursion, "files source each other too deeply"));
    }
    commands.definitions.add(&program);
    enter_redirects(task, true);
    Ok(commands.enter_file(task, program, command.text.clone()))
}

impl CommandRunner<'_> {
    /// Runs a used file.
    pub(crate) fn use_file(&mut self, task: &mut Task, file: &Arc<Program>) -> Flow {
        let text = format!("use {}", file.source.name());
        self.enter_file(task, Arc::clone(file), text)
    }

    /// Runs another file in place of the current instruction.
    fn enter_file(&mut self, task: &mut Task, program: Arc<Program>, command: String) -> Flow {
        let frame = CallFrame {
            function: None,
            wants_value: false,
            program: std::mem::replace(&mut task.program, program),
            return_to: task.at + 1,
            args: Arc::clone(&task.args),
            restore: Vec::new(),
            started: self.core.now(),
            command: Some(command),
            depth: task.depth() + 1,
        };
        task.enter(FrameKind::Call(Box::new(frame)));
        task.jump(0);
        Flow::Continue
    }
}
