//! Builtins that succeed, fail, wait and leave.

use bstr::{BString, ByteSlice};

use super::builtin::{Arguments, Builtin, Execution, in_finally};
use crate::amounts::{deferral, pause};
use crate::commands::CommandRunner;
use crate::core::{Flow, Step};
use crate::endings::{Logged, Retry, TaskEnding, Thrown};
use crate::invocation::Expanded;
use crate::outcome::{FailureKind, Human};
use crate::record::{Level, LogEvent};
use crate::scheduler::Timer;
use crate::tasks::{Task, TaskState};
use crate::values::Suspend;

/// Exit status of a temporary failure, from sysexits.h.
const EX_TEMPFAIL: i32 = 75;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "success",
        usage: &["success"],
        help: "does nothing, and succeeds",
        details: "",
        examples: &[("success", "")],
        arguments: Arguments::Split,
        run: Execution::Shell(|_, _, args| match args {
            [] => Ok(()),
            _ => Err(Suspend::usage("success takes no arguments")),
        }),
    },
    Builtin {
        name: "failure",
        usage: &["failure [message]"],
        help: "fails; alone in a `catch`, passes on the failure that was caught",
        details: "The message becomes $error.\n\nAs the kind of a failure: the script called `failure`, \
                  or a builtin such as `cd` or `read` failed.",
        examples: &[("try\nfailure no luck\ncatch\necho $error\nend", "no luck\n")],
        arguments: Arguments::Split,
        run: Execution::Flow(|_, task, command| Ok(Flow::Throw(failure(task, command)))),
    },
    Builtin {
        name: "giveup",
        usage: &["giveup [message]"],
        help: "fails, and the innermost `try` does not try again",
        details: "The message becomes $error.\n\nAs the kind of a failure: the script called `giveup`; \
                  only a `catch` continues after it.",
        examples: &[(
            "try 3 times\necho $attempt\ngiveup\ncatch\necho $error_kind\nend",
            "1\ngiveup\n",
        )],
        arguments: Arguments::Split,
        run: Execution::Flow(|_, task, command| Ok(Flow::Throw(giveup(task, command)))),
    },
    Builtin {
        name: "defer",
        usage: &["defer D [message]"],
        help: "fails, and the innermost `try` repeats the same attempt after D to 1.5 · D",
        details: "For a resource that is not ready yet: `defer 30`, `defer 2 minutes \"the server is busy\"`.",
        examples: &[(
            "try for 5 seconds\ndefer 10 too early\ncatch\necho $error_kind\nend",
            "deferred\n",
        )],
        arguments: Arguments::Whole,
        run: Execution::Flow(defer),
    },
    Builtin {
        name: "exit",
        usage: &["exit [n]"],
        help: "ends the script with that status; in a branch of `forall` or a stage of a pipeline, only the branch or stage",
        details: "As the kind of a failure: a command ended with a code other than 0, which is in \
                  $error_code. The meaning of the code depends on the command; often 1 is a negative \
                  answer and 2 a wrong use of the command. An enclosing `try` tries again.",
        examples: &[("exit 0\necho never", "")],
        arguments: Arguments::Split,
        run: Execution::Flow(exit),
    },
    Builtin {
        name: "sleep",
        usage: &["sleep D"],
        help: "waits: `sleep 5`, `sleep 1.5 minutes`, `sleep 500ms`, `sleep 1 min 30 s`",
        details: "",
        examples: &[(
            "sleep 1 min 30 s\nbegun=now()\nsleep 5\nended=now()\nn=($ended - $begun >= 5)\necho $n",
            "true\n",
        )],
        arguments: Arguments::Whole,
        run: Execution::Flow(sleep),
    },
];

fn failure(task: &Task, command: &Expanded) -> Thrown {
    if command.words.len() == 1
        && let Some(failure) = task.handled().cloned()
    {
        let (retry, logged) = (Retry::AsUsual, Logged::Failure);
        return Thrown { failure, retry, logged, answers: true };
    }
    thrown(task, FailureKind::Failure, "failure", command)
}

fn giveup(task: &Task, command: &Expanded) -> Thrown {
    let thrown = thrown(task, FailureKind::Giveup, "giveup", command);
    Thrown { retry: Retry::Never, ..thrown }
}

/// Returns a failure whose message is the arguments, or else `word`.
fn thrown(task: &Task, kind: FailureKind, word: &str, command: &Expanded) -> Thrown {
    let args = &command.words[1..];
    let message = if args.is_empty() {
        word.into()
    } else {
        bstr::join(" ", args).to_str_lossy().into_owned()
    };
    task.thrown(kind, 1, message, &command.text)
}

fn defer(_: &mut CommandRunner<'_>, task: &mut Task, command: &Expanded) -> Step {
    let (by, message) = deferral(&command.words[1..])?;
    let message = match message.to_str_lossy() {
        words if words.is_empty() => format!("deferred by {}", Human(by)),
        words => words.into_owned(),
    };
    let thrown = task.thrown(FailureKind::Deferred, EX_TEMPFAIL, message, &command.text);
    Ok(Flow::Throw(Thrown { retry: Retry::Deferred(by), ..thrown }))
}

fn exit(commands: &mut CommandRunner<'_>, task: &mut Task, command: &Expanded) -> Step {
    if commands.core.tasks().exit_leaves_finally(task) {
        return Err(in_finally("exit"));
    }
    let ending = ending(&command.words[1..])?;
    *commands.exit_requested |= commands.core.tasks().exits_run(task);
    Ok(Flow::Exiting(ending))
}

fn ending(args: &[BString]) -> Result<TaskEnding, Suspend> {
    match args {
        [] => Ok(TaskEnding::Succeeded),
        [code] => match code.to_str().ok().and_then(|code| code.trim().parse().ok()) {
            Some(0) => Ok(TaskEnding::Succeeded),
            Some(code) => Ok(TaskEnding::Exited(code)),
            None => Err(Suspend::usage(format!("exit takes a number from 0 to 255, not `{code}`"))),
        },
        _ => Err(Suspend::usage("exit takes one number")),
    }
}

fn sleep(commands: &mut CommandRunner<'_>, task: &mut Task, command: &Expanded) -> Step {
    let duration = pause(&command.words[1..])?;
    commands.core.log(task, || LogEvent::CommandStarted(command.text.clone()), Level::COMMANDS);
    task.expanded = None; // many tasks may sleep at the same time
    let key = commands.core.arm(commands.core.now() + duration, Timer::Wake(task.id));
    Ok(Flow::Wait(TaskState::Sleeping(key)))
}
