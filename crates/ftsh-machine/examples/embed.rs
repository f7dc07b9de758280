//! Runs a script whose commands are functions of this program.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the machine is pure; a driver reads a clock and waits"
)]

use std::collections::VecDeque;
use std::time::Instant;

use ftsh_machine::driver::{self, Driver};
use ftsh_machine::effect::{Action, Effect, FdChange, FdSource, OperationId};
use ftsh_machine::event::{CommandStatus, Event, Refusal, Reply, SpawnError, SpawnErrorKind};
use ftsh_machine::{Config, Machine, Outcome, Time};
use ftsh_syntax::diagnostic::render_all;

/// Command of the script: gets its words, and returns an exit status.
type Command<'a> = dyn FnMut(&[bstr::BString]) -> i32 + 'a;

/// World in which each command is a call of `command`.
struct Calls<'a> {
    begin: Instant,
    events: VecDeque<Event>,
    command: &'a mut Command<'a>,
}

impl Calls<'_> {
    /// Answers a request that this world does not support.
    fn refuse(&mut self, operation: OperationId) {
        let result = Err(Refusal::new("not supported here"));
        self.events.push_back(Event::Done { operation, result });
    }
}

/// Returns true if descriptors change only to `/dev/null`, as standard input does in branches.
fn is_null(redirects: &[FdChange]) -> bool {
    redirects.iter().all(|change| change.source == FdSource::Null)
}

impl Driver for Calls<'_> {
    fn now(&self) -> Time {
        Time::after(self.begin.elapsed())
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Run(run) | Effect::Exec(run) => {
                let process = run.process;
                let code = match &run.action {
                    _ if !is_null(&run.redirects) => Err(SpawnErrorKind::Redirect),
                    Action::Program { words, .. } => Ok((self.command)(words)),
                    Action::Print(text) => {
                        print!("{text}");
                        Ok(0)
                    }
                    Action::Copy | Action::ReadLine => Err(SpawnErrorKind::Builtin),
                };
                self.events.push_back(match code {
                    Ok(code) => {
                        let status = CommandStatus::Exited(code);
                        Event::Exited { process, status, line: None, reader_gone: false }
                    }
                    Err(kind) => {
                        let error = SpawnError::new(kind, "not supported here".into());
                        Event::SpawnFailed { process, error }
                    }
                });
            }
            // Commands end before `perform` returns, so nothing of a scope is left.
            Effect::Terminate(scope) => self.events.push_back(Event::Emptied { scope }),
            Effect::Dispatch(branch) => self.events.push_back(Event::no_engine(branch.process)),
            Effect::Open { operation, redirects, .. } if is_null(&redirects) => {
                let result = Ok(Reply::Truth(true));
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::Open { operation, .. }
            | Effect::Query { operation, .. }
            | Effect::Relay { operation, .. }
            | Effect::Commit { operation, .. }
            | Effect::CommitView { operation, .. } => self.refuse(operation),
            Effect::BeginView(begin) => self.refuse(begin.operation),
            Effect::Enter(entry) => self.refuse(entry.operation),
            // All other effects need no answer.
            _ => {}
        }
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        let event = self.events.pop_front();
        if event.is_none() {
            std::thread::sleep(until - self.now());
        }
        event
    }
}

/// Runs the text of a script, and calls `command` for each of its commands.
fn run(text: &str, command: &mut Command) -> Result<Outcome, String> {
    let script = ftsh_syntax::parse("script", text).map_err(|errors| render_all(&errors))?;
    let mut machine = Machine::new(&script, Vec::new(), Vec::new(), Config::default(), 1);
    let mut calls = Calls { begin: Instant::now(), events: VecDeque::new(), command };
    Ok(driver::run(&mut machine, &mut calls))
}

const SCRIPT: &str = r#"
try 3 times backoff fixed from 10 ms
    fetch orders
end
forall region in north south
    report "$region"
end
"#;

fn main() {
    let mut failures = 1;
    let outcome = run(SCRIPT, &mut |words| {
        println!("call {}", bstr::join(" ", words).escape_ascii());
        if words[0] == "fetch" && failures > 0 {
            failures -= 1;
            return 1;
        }
        0
    });
    println!("{outcome:?}");
}

#[test]
fn a_command_that_fails_is_called_again() {
    let mut calls = Vec::new();
    let outcome = run(SCRIPT, &mut |words| {
        calls.push(words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        i32::from(calls.len() == 1)
    });
    assert!(matches!(outcome, Ok(Outcome::Succeeded)), "{outcome:?}");
    assert_eq!(calls, ["fetch orders", "fetch orders", "report north", "report south"]);
}

#[test]
fn an_unsupported_request_is_a_failure_of_the_script() {
    let outcome = run("fetch > file", &mut |_| 0).expect("a script");
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert!(failure.to_string().contains("not supported here"), "{failure}");
}

#[test]
fn a_limit_cuts_a_delay_short() {
    let outcome = run("try for 10 ms backoff fixed from 1 hour\nfetch\nend", &mut |_| 1);
    assert!(matches!(outcome, Ok(Outcome::Failed(_))), "{outcome:?}");
}
