//! Processes of filters of `json`: each ends with its query and with its shell.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::Ftsh;
use crate::support::processes::with_argument;
use crate::support::run::Running;

const ENDLESS: &str = "x=json(1, 'last(repeat(1))')";

/// Starts a script, waits for the process of its filter, and returns the process id of the shell
/// that started the process.
fn start(script: &str) -> (Running, String) {
    let run = Ftsh::script(script).stdin_stays_open().start();
    let mut shell = None;
    run.until("a filter", |run| {
        let shells = [Some(run.pid()), run.interpreter()];
        shell = shells.into_iter().flatten().map(|pid| pid.to_string()).find(|pid| runs(pid));
        shell.is_some()
    });
    (run, shell.unwrap_or_default())
}

/// Returns true if a process executes a filter for a shell.
fn runs(shell: &str) -> bool {
    with_argument(shell).iter().any(|process| process.command.contains("--filter"))
}

#[test]
fn filters_end_with_their_shell() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let (run, shell) = start(ENDLESS);
        let pid = shell.parse().map(Pid::from_raw).expect("a process id");
        kill(pid, signal).expect("the shell lives");
        run.eventually("the end of the filter", |_| !runs(&shell));
        run.wait();
    }
}

#[test]
fn filters_end_with_their_query() {
    let script = format!("try for 1 second or 1 time; {ENDLESS}; catch; read x; end");
    let (run, shell) = start(&script);
    run.until("the end of the filter", |_| !runs(&shell));
}
