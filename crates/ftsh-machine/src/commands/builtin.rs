//! Commands that the shell does itself.

use std::sync::Arc;
use std::time::Duration;

use bstr::{BString, ByteSlice};

use crate::Machine;
use crate::commands::command::program;
use crate::commands::invocation::{Builtin, Expanded, Start};
use crate::commands::redirect::{enter_redirects, named_descriptor, variable_name};
use crate::effect::{Action, Query};
use crate::eval::amount::{deferral, pause};
use crate::event::Reply;
use crate::outcome::{FailureKind, Human};
use crate::program::lower::lower;
use crate::record::{Level, LogEvent};
use crate::tasks::flow::{Flow, Step};
use crate::tasks::frame::{CallFrame, FrameKind};
use crate::tasks::halt::Halt;
use crate::tasks::task::{State, Task};
use crate::tasks::timer::Timer;
use crate::unwind::ending::{Ending, Logged, Retry, Thrown};
use crate::values::size;
use crate::values::value::Value;
use crate::values::variables::Variable;
use ftsh_syntax::Among;

/// The exit status of a failure that will pass, from sysexits.h.
const EX_TEMPFAIL: i32 = 75;

/// What the parser finds unless it is in a function that is called there.
fn in_finally(name: &str) -> Halt {
    Halt::usage(format!("`{name}` can't leave a `finally`"))
}

impl Machine {
    /// What the driver does for a builtin; none if that only changes the shell.
    pub(crate) fn descriptor_builtin(
        &self,
        task: &Task,
        builtin: Builtin,
        command: &Expanded,
    ) -> Result<Option<Start>, Halt> {
        let args = &command.words[1..];
        Ok(Some(match builtin {
            Builtin::Exec if args.is_empty() => return Err(Halt::usage("exec needs a command")),
            Builtin::Exec if task.is_in_finally() => return Err(in_finally("exec")),
            Builtin::Exec if task.is_atomic() => {
                return Err(Halt::usage("exec can't stand in an atomic `try`"));
            }
            Builtin::Exec => {
                Start { last: true, ..Start::new(program(task, command, args.to_vec())) }
            }
            Builtin::Read => {
                if args.is_empty() {
                    return Err(Halt::usage("read needs a variable's name"));
                }
                let reads = args.iter().map(variable_name).collect::<Result<_, _>>()?;
                Start { reads, ..Start::new(Action::ReadLine) }
            }
            Builtin::Pwd if !args.is_empty() => return Err(Halt::usage("pwd takes no arguments")),
            Builtin::Pwd => {
                let mut directory = Self::directory(task)?.ok_or_else(|| {
                    Halt::usage(
                        "the current directory is gone; cd to another one goes on from there",
                    )
                })?;
                directory.push(b'\n');
                Start::new(Action::Print(directory))
            }
            Builtin::Umask if args.is_empty() => Start::new(Action::Print(
                format!("{:04o}\n", task.umask.unwrap_or(self.config.umask)).into(),
            )),
            Builtin::Echo => Start::new(Action::Print(echo(args)?)),
            _ => return Ok(None),
        }))
    }

    /// The task's directory as an absolute path; none if it is the shell's, and that is gone.
    pub(crate) fn directory(task: &Task) -> Result<Option<BString>, Halt> {
        if let Some(directory) = &task.directory {
            return Ok(Some(directory.to_vec().into()));
        }
        match Self::answer(task, &Query::OwnDirectory) {
            Some(Reply::Text(directory)) => Ok(Some(directory.clone())),
            Some(_) => Ok(None),
            None => Err(Halt::Need(Query::OwnDirectory)),
        }
    }

    /// Builtins that only change the shell.
    pub(crate) fn plain_builtin(
        &mut self,
        task: &mut Task,
        builtin: Builtin,
        command: &Expanded,
    ) -> Step {
        let args = &command.words[1..];
        let message = || bstr::join(" ", args).to_str_lossy().into_owned();
        match builtin {
            Builtin::Failure | Builtin::Giveup => {
                if builtin == Builtin::Failure
                    && args.is_empty()
                    && let Some(failure) = task.handled().cloned()
                {
                    let (retry, logged) = (Retry::AsUsual, Logged::Failure);
                    return Ok(Flow::Throw(Thrown { failure, retry, logged }));
                }
                let (kind, word) = match builtin {
                    Builtin::Giveup => (FailureKind::Giveup, "giveup"),
                    _ => (FailureKind::Failure, "failure"),
                };
                let message = if args.is_empty() { word.into() } else { message() };
                let mut thrown = task.thrown(kind, 1, message, &command.text);
                if builtin == Builtin::Giveup {
                    thrown.retry = Retry::Never;
                }
                return Ok(Flow::Throw(thrown));
            }
            Builtin::Defer => {
                let (by, words) = deferral(args)?;
                let message = match bstr::join(" ", words).to_str_lossy() {
                    said if said.is_empty() => format!("deferred by {}", Human(by)),
                    said => said.into_owned(),
                };
                let thrown =
                    task.thrown(FailureKind::Deferred, EX_TEMPFAIL, message, &command.text);
                return Ok(Flow::Throw(Thrown { retry: Retry::Deferred(by), ..thrown }));
            }
            Builtin::Exit if task.is_in_finally() => return Err(in_finally("exit")),
            Builtin::Exit => {
                let ending = exit(args)?;
                self.left |= task.parent.is_none();
                return Ok(Flow::End(ending));
            }
            Builtin::Cd => self.change_directory(task, args)?,
            Builtin::Umask => task.umask = Some(umask(args)?),
            Builtin::Export => Self::export(task, args)?,
            Builtin::Unset => {
                for name in args {
                    let name = variable_name(name)?;
                    self.unset(task, &name);
                }
            }
            Builtin::Sleep => {
                let duration = pause(args)?;
                let event = || LogEvent::CommandStarted(command.text.clone());
                self.log(task, event, Level::COMMANDS);
                task.expanded = None; // there may be many that sleep
                let key = self.timers.arm(self.now + duration, Timer::Wake(task.id));
                return Ok(Flow::Wait(State::Sleeping(key)));
            }
            Builtin::Local => {
                return Err(Halt::usage("local is written out, with one name: `local name=value`"));
            }
            Builtin::Source => return self.source(task, command),
            Builtin::Success if !args.is_empty() => {
                return Err(Halt::usage("success takes no arguments"));
            }
            _ => {}
        }
        let (text, elapsed) = (command.text.clone(), Duration::ZERO);
        let event = || LogEvent::CommandSucceeded { command: text, elapsed };
        self.log(task, event, Level::COMMANDS);
        task.advance();
        Ok(Flow::Continue)
    }

    fn change_directory(&self, task: &mut Task, args: &[BString]) -> Result<(), Halt> {
        let variable = |name: &str| match task.variables.get(name) {
            Some(variable) => Ok(self.expander(task).text(&variable.value)?.into_owned()),
            None => Err(Halt::usage(format!("cd: the variable `{name}` is not set"))),
        };
        let target = match args {
            [] => variable("HOME")?,
            [back] if *back == "-" => variable("OLDPWD")?,
            [target] => target.clone(),
            _ => return Err(Halt::usage("cd takes one directory")),
        };
        let before = Self::directory(task)?;
        let query = Query::Directory(target);
        let Some(Reply::Text(directory)) = Self::answer(task, &query) else {
            return Err(Halt::Need(query));
        };
        let directory = directory.clone();
        for (name, value) in [("OLDPWD", before), ("PWD", Some(directory.clone()))] {
            let exported = |value| Variable { value, exported: true, inherited: false };
            task.variables.put(&name.into(), value.map(Value::from).map(exported));
        }
        task.directory = Some(Arc::new(directory));
        Ok(())
    }

    fn export(task: &mut Task, args: &[BString]) -> Result<(), Halt> {
        if args.is_empty() {
            return Err(Halt::usage("export needs a variable's name"));
        }
        for arg in args {
            let (name, value) = match arg.split_once_str("=") {
                Some((name, value)) => (name.into(), Some(Value::from(BString::from(value)))),
                None => (arg.clone(), None),
            };
            let name = variable_name(&name)?;
            let value = match (value, task.variables.get(&name)) {
                (Some(value), _) => value,
                (None, Some(variable)) => variable.value.clone(),
                (None, None) => {
                    return Err(Halt::usage(format!("export: the variable `{name}` is not set")));
                }
            };
            let variable = Variable { value, exported: true, inherited: false };
            task.variables.put(&name, Some(variable));
        }
        Ok(())
    }

    fn source(&mut self, task: &mut Task, command: &Expanded) -> Step {
        let [_, path] = &command.words[..] else {
            return Err(Halt::usage("source needs one file"));
        };
        let query = match named_descriptor(path) {
            Some(number) => Query::Input(task.opened().unwrap_or(&task.io).id(), number),
            None => Query::File(path.clone()),
        };
        let Some(Reply::Text(text)) = Self::answer(task, &query) else {
            return Err(Halt::Need(query));
        };
        let name = path.to_string();
        let channels: Vec<&str> = self.channels().map(|name| &**name).collect();
        let functions: Vec<&str> = self.functions.keys().map(|name| &**name).collect();
        let among = Among { functions: &functions, channels: &channels };
        let script = ftsh_syntax::parse_bytes_among(&name, text, among).map_err(|errors| {
            let first = &errors.errors[0];
            let line = errors.source.line(first.span.start);
            Halt::usage(format!("{name}:{line}: {}", first.message))
        })?;
        let program = Arc::new(lower(&script));
        if task.depth() >= 1000 {
            return Err(Halt::usage("files source each other too deeply"));
        }
        self.define(&program);
        enter_redirects(task, true);
        let frame = CallFrame {
            function: None,
            wants_value: false,
            program: std::mem::replace(&mut task.program, program),
            return_to: task.at + 1,
            args: Arc::clone(&task.args),
            restore: Vec::new(),
            started: self.now,
            command: Some(command.text.clone()),
            depth: task.depth() + 1,
        };
        task.enter(FrameKind::Call(Box::new(frame)));
        task.jump(0);
        Ok(Flow::Continue)
    }
}

/// `022`: three digits for what the owner, the group and others don't get.
fn umask(args: &[BString]) -> Result<u16, Halt> {
    let [mode] = args else { return Err(Halt::usage("umask takes one mode, like `022`")) };
    let is_octal = mode.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let number = mode.to_str().ok().filter(|_| is_octal);
    let number = number.and_then(|digits| u16::from_str_radix(digits, 8).ok());
    number.filter(|umask| *umask <= 0o777).ok_or_else(|| {
        let takes = "umask takes octal digits from 0 to 777, for what is taken away";
        Halt::usage(format!("{takes} from owner, group and others: `umask 027`, not `{mode}`"))
    })
}

fn echo(args: &[BString]) -> Result<BString, Halt> {
    match args.split_first() {
        Some((first, words)) if first == "-n" => size::join(words.iter(), b""),
        _ => size::join(args.iter(), b"\n"),
    }
}

fn exit(args: &[BString]) -> Result<Ending, Halt> {
    match args {
        [] => Ok(Ending::Succeeded),
        [code] => match code.to_str().ok().and_then(|code| code.trim().parse().ok()) {
            Some(0) => Ok(Ending::Succeeded),
            Some(code) => Ok(Ending::Exited(code)),
            None => Err(Halt::usage(format!("exit takes a number from 0 to 255, not `{code}`"))),
        },
        _ => Err(Halt::usage("exit takes one number")),
    }
}
