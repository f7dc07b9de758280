//! A builtin: its row.

use std::time::Duration;

use bstr::BString;

use crate::commands::CommandRunner;
use crate::commands::calls::CommandStart;
use crate::core::{Flow, Step};
use crate::invocation::Expanded;
use crate::tasks::Task;
use crate::values::Suspend;
use ftsh_syntax::slug::Slug;

/// Command that the shell executes itself. A function of the script with the same name takes
/// precedence.
#[derive(Debug)]
pub struct Builtin {
    /// Name in scripts.
    pub name: &'static str,
    /// Forms of the command, such as `cd [dir]`.
    pub usage: &'static [&'static str],
    /// Description in one sentence, for tables and `help`.
    pub help: &'static str,
    /// Further paragraphs for `help`, one a line, examples indented by two blanks; may be empty.
    pub details: &'static str,
    /// Scripts with their output, run by `tests/machine/builtins.rs`. `help` shows the first.
    pub examples: &'static [Example],
    pub(crate) arguments: Arguments,
    pub(super) run: Execution,
}

/// Treatment of unquoted values in the arguments of a builtin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arguments {
    /// A value splits at white space, as in the arguments of a program.
    Split,
    /// A value is one word, as in an assignment.
    Whole,
    /// A value after `name=` is one word; others split.
    Assignments,
}

/// Script with its output.
pub type Example = (&'static str, &'static str);

/// Implementation of a builtin.
#[derive(Clone, Copy, Debug)]
pub(super) enum Execution {
    /// Changes the shell, and succeeds.
    Shell(fn(&mut CommandRunner<'_>, &mut Task, &[BString]) -> Result<(), Suspend>),
    /// Returns its own control flow.
    Flow(fn(&mut CommandRunner<'_>, &mut Task, &Expanded) -> Step),
    /// Runs commands of a script.
    Commands(fn(&mut CommandRunner<'_>, &mut Task, &Expanded) -> Step),
    /// Uses descriptors, so the driver executes it.
    Driver(fn(&Task, &[BString]) -> Result<CommandStart, Suspend>),
    /// Starts a program with the exported variables.
    Program(fn(&Task, &Expanded) -> Result<CommandStart, Suspend>),
    /// Prints a setting if there are no arguments, and otherwise changes it.
    Setting {
        print: fn(&CommandRunner<'_>, &Task) -> BString,
        change: fn(&mut CommandRunner<'_>, &mut Task, &[BString]) -> Result<(), Suspend>,
    },
}

impl Builtin {
    /// Returns true if the builtin runs commands of the script, which share its redirections.
    pub(crate) fn runs_commands(&self) -> bool {
        matches!(self.run, Execution::Commands(_))
    }

    /// Returns true if the builtin starts a program.
    pub(crate) fn is_program(&self) -> bool {
        matches!(self.run, Execution::Program(_))
    }

    /// Returns the driver's part of the builtin; `None` if only the shell changes.
    pub(crate) fn start(
        &self,
        commands: &CommandRunner<'_>,
        task: &Task,
        command: &Expanded,
    ) -> Result<Option<CommandStart>, Suspend> {
        let args = &command.words[1..];
        match self.run {
            Execution::Driver(start) => start(task, args).map(Some),
            Execution::Program(start) => start(task, command).map(Some),
            Execution::Setting { print, .. } if args.is_empty() => {
                Ok(Some(CommandStart::new(crate::effect::Action::Print(print(commands, task)))))
            }
            Execution::Setting { .. }
            | Execution::Shell(_)
            | Execution::Flow(_)
            | Execution::Commands(_) => Ok(None),
        }
    }

    /// Executes a builtin that changes the shell.
    pub(crate) fn run(
        &self,
        commands: &mut CommandRunner<'_>,
        task: &mut Task,
        command: &Expanded,
    ) -> Step {
        match self.run {
            Execution::Shell(change) | Execution::Setting { change, .. } => {
                change(commands, task, &command.words[1..])?;
            }
            Execution::Flow(run) | Execution::Commands(run) => return run(commands, task, command),
            Execution::Driver(_) | Execution::Program(_) => {
                return Err(Suspend::Broken("a builtin of the driver was run by the machine"));
            }
        }
        commands.core.log_success(task, command.text.clone(), Duration::ZERO);
        task.advance();
        Ok(Flow::Continue)
    }
}

/// Returns the failure of a builtin that would leave a `finally`. The parser rejects such a builtin
/// except in a function.
pub(super) fn in_finally(name: &str) -> Suspend {
    Suspend::builtin(Slug::LeavesFinally, format!("`{name}` can't leave a `finally`"))
}
