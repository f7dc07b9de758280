//! Runs of this shell in overlays over directories.
//!
//! This process waits for the shell, and is no interpreter.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, Result};
use ftsh_layers::{Attempt, Directories};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use ftsh_process as process;

/// This program.
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// Signals that are passed on to the shell or come to the whole process group.
const INTERRUPTS: [Signal; 4] = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT];

/// End of a shell.
pub(crate) struct EndedShell {
    pub status: ExitStatus,
    /// Signal, given by its number, that came to this process meanwhile.
    pub interrupt: Option<i32>,
}

impl EndedShell {
    /// Returns the exit status, as a parent shell would report it.
    pub(crate) fn code(&self) -> i32 {
        let signal = self.status.signal().map(|signal| 128 + signal);
        signal.or(self.status.code()).unwrap_or(1)
    }
}

/// Covers directories. With `writable`, all else except for these directories is read-only.
pub(crate) fn cover(places: &Directories, writable: Option<&[PathBuf]>) -> Result<Attempt> {
    let mark = format!("{:016x}", process::random()?);
    Ok(match writable {
        None => Attempt::begin(places, &mark)?,
        Some(writable) => Attempt::begin_alone(places, &mark, writable)?,
    })
}

/// Runs the shell in overlays, in the process group and the directory of this process. At the end, no
/// process of the script is left, since the overlays are about to go.
pub(crate) fn run(
    attempt: &Attempt,
    words: impl IntoIterator<Item = OsString>,
    prepare: impl FnOnce(&mut Command),
) -> Result<EndedShell> {
    let namespaces = attempt.namespaces().context("no namespaces")?;
    let directory = std::env::current_dir().context("the current directory")?;
    let mut command = namespaces.command(PROGRAM, &directory)?;
    command.args(words);
    prepare(&mut command);
    attend(|| command.spawn().context("cannot start the shell"))
}

/// Starts a child, waits for its end, and kills what the child leaves behind.
pub(crate) fn attend(start: impl FnOnce() -> Result<Child>) -> Result<EndedShell> {
    let waited: SigSet = INTERRUPTS.into_iter().chain([Signal::SIGCHLD]).collect();
    waited.thread_block()?;
    let earlier = process::adopt_orphans();
    let ended = wait(start()?, &waited);
    process::kill_children(&earlier);
    ended
}

/// Waits for the shell, and passes signals on.
fn wait(mut shell: Child, waited: &SigSet) -> Result<EndedShell> {
    let pid = Pid::from_raw(shell.id().cast_signed());
    let mut interrupt = None;
    loop {
        if let Some(status) = shell.try_wait()? {
            return Ok(EndedShell { status, interrupt });
        }
        let signal = waited.wait()?;
        if INTERRUPTS.contains(&signal) {
            interrupt.get_or_insert(signal as i32);
        }
        // The terminal sends the signals of keys to the whole group.
        if matches!(signal, Signal::SIGTERM | Signal::SIGHUP) {
            let _ = kill(pid, signal);
        }
    }
}
