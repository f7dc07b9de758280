//! Commands: programs, and the handling of their ends.

use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};

use super::{
    CommandRunner, builtins,
    builtins::{Arguments, Builtin},
    calls::{CommandStart, FunctionCall, program},
    redirect::enter_redirects,
};
use crate::atomic::{Committer, FileCommitError, commit_result};
use crate::core::{Flow, Step};
use crate::effect::{Action, Effect, Environment, Run};
use crate::endings::{Retry, TaskEnding, Thrown};
use crate::eval::{Expander, resolve_redirects};
use crate::event::{CommandStatus, Refusal, Reply, SpawnError, SpawnErrorKind};
use crate::invocation::{CommandTarget, Expanded, RedirectPhase};
use crate::outcome::{FailureKind, Outcome, shorten, signal_name};
use crate::program::Instruction;
use crate::record::spans::{SpanEvent, TRACEPARENT};
use crate::record::{Level, LogEvent};
use crate::resources::ResourceHandle;
use crate::secrets::Secrets;
use crate::size;
use crate::tasks::{CommittingFiles, RunningCommand, Task, TaskState, Tasks};
use crate::unwind::{Unwinder, holds_output};
use crate::values::{Suspend, Value};
use crate::variables::Variables;
use ftsh_syntax::ast::{Name, Simple, Word, WordPart};
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::vocabulary::{HEADS, synonym};

/// Violated invariant: a task waits for the command that ended.
const NO_COMMAND: &str = "a command ended that nothing waits for";
/// Number of SIGKILL.
const SIGKILL: i32 = 9;
/// Maximum length of a command's text in messages, in bytes.
const MAX_SHOWN_LEN: usize = 64 * 1024;

impl CommandRunner<'_> {
    /// Runs a function, a builtin or a program, in this order of precedence. All words are expanded
    /// before anything is set up.
    pub(crate) fn command(&mut self, task: &mut Task, simple: &Simple) -> Step {
        let command = match &task.expanded {
            Some(command) => Arc::clone(command),
            None => {
                let command = Arc::new(self.expand(task, simple)?);
                if !simple.redirects.is_empty() {
                    task.progress().redirects =
                        resolve_redirects(self.core, task, &simple.redirects)?;
                }
                task.expanded = Some(Arc::clone(&command));
                command
            }
        };
        let builtin = match command.kind {
            CommandTarget::Builtin(name) => builtins::named(name),
            CommandTarget::Function(_) | CommandTarget::Program => None,
        };
        let start = match (&command.kind, builtin) {
            (_, Some(builtin)) => builtin.start(self, task, &command)?,
            (CommandTarget::Function(_) | CommandTarget::Builtin(_), None) => None,
            (CommandTarget::Program, None) => {
                Some(CommandStart::new(program(task, &command, command.words.clone())))
            }
        };
        // A function, or a builtin that runs commands, shares its redirections with the commands
        // inside.
        let calls = match builtin {
            Some(builtin) => builtin.runs_commands(),
            None => matches!(command.kind, CommandTarget::Function(_)),
        };
        if start.as_ref().map_or(calls, |start| start.reads.is_empty()) {
            Committer::new(self.core).draft_files(task);
        }
        let phase = self.next_phase(task);
        if task.is_to_redirect() || start.is_none() && !phase.changes.is_empty() {
            return Ok(self.open(task, phase));
        }
        match (start, &command.kind) {
            (Some(start), _) => Ok(self.start(task, start, phase, command.text.clone())),
            (None, CommandTarget::Function(name)) => {
                let name = Arc::clone(name);
                task.expanded = None; // avoids copying large arguments
                self.call_command(task, &name, command)
            }
            (None, CommandTarget::Builtin(_) | CommandTarget::Program) => match builtin {
                Some(builtin) => builtin.run(self, task, &command),
                None => Ok(Flow::Continue),
            },
        }
    }

    fn expand(&self, task: &mut Task, simple: &Simple) -> Result<Expanded, Suspend> {
        let expander = Expander::new(self.core, task);
        let mut words: Vec<BString> = Vec::with_capacity(simple.words.len());
        let mut target = None;
        for word in &simple.words {
            if target.is_none() {
                target = words.first().map(|first| self.target(first.as_bstr()));
            }
            match target.as_ref().map_or(Arguments::Split, |(_, builtin)| {
                builtin.map_or(Arguments::Split, |builtin| builtin.arguments)
            }) {
                Arguments::Whole => expander.add_whole(word, &mut words)?,
                Arguments::Assignments if has_equals_sign(word) => {
                    words.push(expander.joined(word)?);
                }
                Arguments::Assignments | Arguments::Split => {
                    expander.add_words([word], &mut words)?;
                }
            }
        }
        let assignments = simple
            .assignments
            .iter()
            .map(|(name, word)| Ok((Arc::clone(name), expander.joined(word)?)))
            .collect::<Result<Vec<_>, Suspend>>()?;
        let Some(first) = words.first() else {
            return Err(Suspend::expression(
                Slug::EmptyCommand,
                "there is no command: all its words are empty",
            ));
        };
        let secrets = &task.variables.secrets;
        secrets.add_assignments(&words);
        for (name, value) in &assignments {
            secrets.learn(name, value);
        }
        let text = display(&words, secrets);
        let (kind, builtin) = target.unwrap_or_else(|| self.target(first.as_bstr()));
        let is_program = match kind {
            CommandTarget::Function(_) => false,
            CommandTarget::Builtin(_) => builtin.is_some_and(Builtin::is_program),
            CommandTarget::Program => true,
        };
        let environment = if is_program { Some(self.environment(task)?) } else { None };
        Ok(Expanded { words, assignments, environment, kind, text })
    }

    /// Returns the kind of the command with this name, and its row if it is a builtin.
    fn target(&self, name: &BStr) -> (CommandTarget, Option<&'static Builtin>) {
        let text = if self.definitions.has_no_functions() { None } else { name.to_str().ok() };
        if let Some((name, _)) = text.and_then(|name| self.definitions.function(name)) {
            return (CommandTarget::Function(Arc::clone(name)), None);
        }
        match builtins::named(name) {
            Some(builtin) => (CommandTarget::Builtin(builtin.name), Some(builtin)),
            None => (CommandTarget::Program, None),
        }
    }

    /// Calls a function as a command.
    fn call_command(&mut self, task: &mut Task, name: &Name, command: Arc<Expanded>) -> Step {
        enter_redirects(task, true);
        let event = || LogEvent::CommandStarted(command.text.clone());
        self.core.log(task, event, Level::COMMANDS);
        let mut restore = Vec::new();
        for (name, value) in &command.assignments {
            restore.push(task.variables.keep(name));
            let (value, inherited) = (Value::from(value.clone()), false);
            let variable = crate::variables::Variable { value, exported: true, inherited };
            task.variables.put(name, Some(variable));
        }
        let command = Arc::unwrap_or_clone(command);
        let (args, command) = (command.words, Some(command.text));
        let name = Arc::clone(name);
        self.call(task, FunctionCall { name, args, wants_value: false, restore, command })
    }

    /// Returns the exported variables, in the form for programs.
    fn environment(&self, task: &mut Task) -> Result<Arc<Environment>, Suspend> {
        if let Some(environment) = task.variables.environment() {
            return Ok(environment);
        }
        let expander = Expander::new(self.core, task);
        let environment =
            Arc::new(task.variables.exported(|value| size::copy(&expander.text(value)?))?);
        task.variables.remember(&environment);
        Ok(environment)
    }

    /// Starts a command and waits for it.
    fn start(
        &mut self,
        task: &mut Task,
        start: CommandStart,
        phase: RedirectPhase,
        text: String,
    ) -> Flow {
        let CommandStart { mut action, reads, last } = start;
        if last && self.core.tasks().is_inside_with(task) {
            let refused = Suspend::builtin(Slug::ExecInAtomic, "exec is not possible in a `with`");
            return self.core.suspend(task, refused);
        }
        self.core.log(task, || LogEvent::CommandStarted(text.clone()), Level::COMMANDS);
        self.core.open_scope(task.scope);
        let process = self.core.new_process(task);
        let replaces_shell = last && task.parent.is_none() && !holds_output(task);
        if let Action::Program { words, overrides, .. } = &mut action {
            let path = || words.first().map(|path| &path[..]).unwrap_or_default();
            let started = || SpanEvent::of_program(process, path(), replaces_shell);
            self.core.log_at(task, task.line(), started, Level::SPANS);
            if let Some(trace) = &self.core.config().trace
                && !overrides.iter().any(|(name, _)| name == TRACEPARENT)
            {
                overrides.push((TRACEPARENT.into(), trace.header(process).into()));
            }
        }
        let io = task.opened().unwrap_or(&task.io);
        let feeds = io.piped_after(&phase.changes);
        let run = Box::new(Run {
            process,
            task: task.id,
            scope: task.scope,
            action,
            directory: task.directory.clone(),
            umask: task.umask,
            io: io.id(),
            is_last: task.opened().is_none() && self.core.tasks().is_all_of_a_stage(task),
            redirects: phase.changes,
            feeds,
            deadline: self.core.deadline_of(task),
            grace: task.leaves_time_to_clean_up().then(|| self.core.config().kill_timeout / 2),
            line: task.line(),
        });
        self.core.keep_output(task);
        // The end of a program in a trace is known to its parent only.
        let is_followed = self.core.config().trace.is_some();
        let effect =
            if replaces_shell && !is_followed { Effect::Exec(run) } else { Effect::Run(run) };
        self.core.request(effect);
        let (started, written) = (self.core.now(), phase.written);
        let set_up = task.redirects().map(|it| (take(&mut it.drafts), take(&mut it.before)));
        let (drafts, before) = set_up.unwrap_or_default();
        Flow::Wait(TaskState::Command(Box::new(RunningCommand {
            process,
            text,
            started,
            reads,
            written,
            before,
            last,
            replaces_shell,
            drafts,
        })))
    }

    /// Handles a command that could not be started.
    pub(crate) fn command_refused(&self, task: &mut Task, error: SpawnError) -> Flow {
        let TaskState::Command(command) = std::mem::replace(&mut task.state, TaskState::Ready)
        else {
            return Flow::broken(task, NO_COMMAND);
        };
        if let Some(written) = command.written
            && error.kind != SpawnErrorKind::Redirect
        {
            written.commit(&mut task.variables);
        }
        let (kind, code, slug) = match error.kind {
            SpawnErrorKind::NotFound => (FailureKind::NotFound, 127, Slug::NotFound),
            SpawnErrorKind::NotExecutable => (FailureKind::NotFound, 126, Slug::NotExecutable),
            SpawnErrorKind::Redirect => (FailureKind::Redirect, 1, Slug::Redirect),
            SpawnErrorKind::System => (FailureKind::Spawn, 1, Slug::Spawn),
            SpawnErrorKind::Builtin => (FailureKind::Builtin, 1, Slug::Output),
        };
        let message = match kind {
            FailureKind::NotFound => match self.suggestion(&error, &command.text) {
                // A function or a builtin is nearer to a script than a program of the driver.
                Some(meant) => {
                    let name = command.text.split(' ').next().unwrap_or_default();
                    format!("{name}: not found along PATH, did you mean `{meant}`?")
                }
                None => error.message,
            },
            _ => format!("`{}`: {}", shorten(&command.text), error.message),
        };
        let thrown = task.thrown(kind, code, message, &command.text);
        Flow::Throw(thrown.named(slug).caused_by(error.errno))
    }

    /// Suggests a name for a command that was not found.
    fn suggestion(&self, error: &SpawnError, text: &str) -> Option<&str> {
        // `exec` accepts neither functions nor builtins nor structures.
        if error.kind != SpawnErrorKind::NotFound || text.starts_with("exec ") {
            return None;
        }
        let functions = self.definitions.functions().map(|(name, _)| &**name);
        let known = functions.chain(builtins::all().map(|builtin| builtin.name)).chain(HEADS);
        let name = text.split(' ').next().unwrap_or_default();
        // A path names a file, and a name in quotes may be a whole command.
        if name.contains(['/', '\'']) {
            return None;
        }
        synonym(name).or_else(|| nearest(name, known.filter(|known| *known != name)))
    }

    /// Handles the end of a command.
    pub(crate) fn command_ended(
        &mut self,
        task: &mut Task,
        status: CommandStatus,
        line: Option<BString>,
        reader_gone: bool,
    ) -> Flow {
        let TaskState::Command(mut command) = std::mem::replace(&mut task.state, TaskState::Ready)
        else {
            return Flow::broken(task, NO_COMMAND);
        };
        let elapsed = self.core.now() - command.started;
        let RunningCommand { written, .. } = &mut *command;
        if let Some(written) = written.take() {
            written.commit(&mut task.variables);
        }
        if command.replaces_shell
            && let Some(outcome) = ended_with(status)
        {
            return self.replaced(task, command.text, elapsed, outcome);
        }
        if status == CommandStatus::Exited(0) && !command.drafts.is_empty() {
            let drafts = command.drafts.iter().map(ResourceHandle::id).collect();
            let operation = Committer::new(self.core).request_commit(task, drafts);
            return Flow::Wait(TaskState::CommittingFiles(Box::new(CommittingFiles {
                operation,
                command,
                elapsed,
            })));
        }
        let text = command.text;
        match status {
            CommandStatus::Exited(0) => {
                read_into(&mut task.variables, &command.reads, line.unwrap_or_default());
                self.command_succeeded(task, text, elapsed, command.last)
            }
            // A last line without a newline counts as a line. Only empty input is the end.
            CommandStatus::Exited(_) if !command.reads.is_empty() => {
                if let Some(line) = line.filter(|line| !line.is_empty()) {
                    read_into(&mut task.variables, &command.reads, line);
                    task.advance();
                    return Flow::Continue;
                }
                let message = format!("`{text}` reached the end of input");
                let thrown = task.thrown(FailureKind::Failure, 1, message, &text);
                Flow::Throw(thrown.named(Slug::EndOfInput))
            }
            CommandStatus::Exited(code) if command.last && !reader_gone => {
                Flow::Exiting(TaskEnding::Exited(code as u8))
            }
            CommandStatus::Exited(code) => {
                let message = format!("`{}` exited with {code}", shorten(&text));
                let thrown = task.thrown(FailureKind::Exit, code, message, &text);
                self.command_failed(task, thrown.after(elapsed), reader_gone)
            }
            CommandStatus::Signaled(_) | CommandStatus::OutOfMemory => {
                let (signal, why) = match status {
                    CommandStatus::Signaled(signal) => (signal, ""),
                    _ => (SIGKILL, ": the system had too little memory"),
                };
                let (command_text, name) = (shorten(&text), signal_name(signal));
                let message = format!("`{command_text}` was killed by {name}{why}");
                let thrown = task.thrown(FailureKind::Signal, signal, message, &text);
                self.command_failed(task, thrown.after(elapsed), reader_gone)
            }
            CommandStatus::Lost => {
                let message = format!(
                    "the exit status of `{}` was lost: an internal error of ftsh",
                    shorten(&text)
                );
                Flow::Throw(task.thrown(FailureKind::Internal, 1, message, &text).after(elapsed))
            }
        }
    }

    /// Throws a command's failure. If the reader of the command's output is gone, a task without
    /// need for readers continues instead.
    fn command_failed(&mut self, task: &mut Task, thrown: Thrown, reader_gone: bool) -> Flow {
        if !reader_gone {
            return Flow::Throw(thrown);
        }
        if self.core.tasks().continues_without_reader(task) {
            self.core.log_failure(task, &thrown.failure, Level::COMMANDS, false);
            task.advance();
            return Flow::Continue;
        }
        Flow::Throw(Thrown { retry: Retry::BrokenPipe, ..thrown })
    }

    /// Handles the end of the commit of a command's files.
    pub(crate) fn files_committed(
        &mut self,
        task: &mut Task,
        commit: CommittingFiles,
        result: Result<Reply, Refusal>,
    ) -> Flow {
        let CommittingFiles { command, elapsed, .. } = commit;
        let RunningCommand { text, last, .. } = *command;
        match commit_result(result) {
            Ok(()) => self.command_succeeded(task, text, elapsed, last),
            Err(FileCommitError { why, errno, .. }) => {
                let message = format!("`{}`: {why}", shorten(&text));
                let thrown = task.thrown(FailureKind::Redirect, 1, message, &text);
                Flow::Throw(thrown.after(elapsed).named(Slug::Commit).caused_by(errno))
            }
        }
    }

    /// Handles the end of a program that replaced the shell, and whose end is the end of the run.
    fn replaced(
        &mut self,
        task: &mut Task,
        command: String,
        elapsed: Duration,
        outcome: Outcome,
    ) -> Flow {
        if outcome == Outcome::Succeeded {
            self.core.log_success(task, command, elapsed);
        }
        Unwinder::new(self.core).leave_all(task);
        Flow::Finish(outcome)
    }

    /// Continues after a successful command.
    fn command_succeeded(
        &mut self,
        task: &mut Task,
        command: String,
        elapsed: Duration,
        last: bool,
    ) -> Flow {
        self.core.log_success(task, command, elapsed);
        self.core.forget_output(task);
        if last {
            return Flow::Exiting(TaskEnding::Succeeded);
        }
        task.advance();
        Flow::Continue
    }
}

impl Tasks {
    /// Returns true if a stage of a pipeline consists only of its current instruction.
    fn is_all_of_a_stage(&self, task: &Task) -> bool {
        task.frames.is_empty()
            && matches!(task.program.code.get(task.at + 1), Some(Instruction::EndTask))
            && self.parent_of_stage(task).is_some()
    }
}

/// Fails a command whose result is unknown, because the shell that ran it has ended.
pub(crate) fn command_lost(task: &mut Task) -> Flow {
    let TaskState::Command(command) = std::mem::replace(&mut task.state, TaskState::Ready) else {
        return Flow::broken(task, NO_COMMAND);
    };
    for kept in command.before.into_iter().rev() {
        task.variables.put_back(kept);
    }
    let text = command.text;
    let message = format!("`{}` was running when the shell ended", shorten(&text));
    Flow::Throw(task.thrown(FailureKind::Lost, 1, message, &text))
}

/// Returns the outcome of a run by the status of its last command; `None` if the status is lost.
fn ended_with(status: CommandStatus) -> Option<Outcome> {
    match status {
        CommandStatus::Exited(0) => Some(Outcome::Succeeded),
        CommandStatus::Exited(code) => Some(Outcome::Exited(code as u8)),
        CommandStatus::Signaled(signal) => Some(Outcome::Interrupted(signal)),
        CommandStatus::OutOfMemory => Some(Outcome::Interrupted(SIGKILL)),
        CommandStatus::Lost => None,
    }
}

/// Stores a line in a variable unchanged, or its words in several variables. The last variable
/// takes the rest.
fn read_into(variables: &mut Variables, names: &[Name], line: BString) {
    let Some((last, words)) = names.split_last() else { return };
    if words.is_empty() {
        return variables.set(last, Value::from(line));
    }
    let mut rest = line.trim_ascii();
    for name in words {
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        variables.set(name, Value::from(BString::from(&rest[..end])));
        rest = rest[end..].trim_ascii_start();
    }
    variables.set(last, Value::from(BString::from(rest)));
}

/// Returns true if a word has an unquoted `=` in the script.
fn has_equals_sign(word: &Word) -> bool {
    word.parts.iter().any(|part| matches!(part, WordPart::Bare(text) if text.contains('=')))
}

/// Returns a command's words as typed, without secrets, and shortened if very long.
pub(crate) fn display(words: &[BString], secrets: &Secrets) -> String {
    let length = words.iter().map(|word| word.len() + 1).sum::<usize>();
    let mut text = String::with_capacity(length.min(2 * MAX_SHOWN_LEN));
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        let word = secrets.hide_bytes(word);
        quote(word[..word.len().min(2 * MAX_SHOWN_LEN)].as_bstr(), &mut text);
        if text.len() > 2 * MAX_SHOWN_LEN {
            break;
        }
    }
    // A secret may have been split into words. Hiding precedes shortening.
    secrets.hide_in(&mut text);
    if text.len() > MAX_SHOWN_LEN {
        let end = (0..=MAX_SHOWN_LEN).rev().find(|&at| text.is_char_boundary(at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

/// Appends a word as typed.
fn quote(word: &BStr, text: &mut String) {
    let plain =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_^~".contains(byte) || *byte >= 0x80;
    let shown = word.to_str_lossy();
    if !word.is_empty() && word.iter().all(plain) {
        *text += &shown;
    } else {
        *text += "'";
        *text += &shown.replace('\\', r"\\").replace('\'', r"\'");
        *text += "'";
    }
}
