//! `--preview DIR`: a run whose changes below directories are listed and dropped.
//!
//! The shell runs again, in overlays over the directories. This process waits for the shell, and is
//! no interpreter.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus};

use anyhow::{Context, Result, anyhow};
use ftsh_layers::{Attempt, Change, Directories, leftovers, sweep};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use super::messages::report;
use ftsh_machine::Outcome;
use ftsh_process as process;

/// First argument of the shell that runs in the overlays.
const INSIDE: &str = "--in-preview";

/// This program.
const PROGRAM: &str = "/proc/self/exe";

/// Returns true in the overlays, and removes the argument that tells it.
pub(super) fn is_inside(words: &mut Vec<OsString>) -> bool {
    let is_inside = words.first().is_some_and(|word| word == INSIDE);
    if is_inside {
        words.remove(0);
    }
    is_inside
}

/// Runs a command line in overlays over directories, and lists the changes.
pub(super) fn run(
    directories: &[OsString],
    words: impl Iterator<Item = OsString>,
) -> Result<Outcome> {
    let places = Directories::find(directories).map_err(|error| anyhow!("--preview: {error}"))?;
    // A preview that was killed leaves its layers.
    for left in places.directories().flat_map(leftovers) {
        let _ = sweep(&left);
    }
    let mark = format!("{:016x}", process::random()?);
    let attempt = Attempt::begin(&places, &mark).map_err(|error| anyhow!("--preview: {error}"))?;
    let status = run_within(&attempt, words)?;
    let changes = attempt.changes().map_err(|error| anyhow!("--preview: {error}"))?;
    report(&listed(&changes, &places));
    attempt.discard().map_err(|error| anyhow!("--preview: {error}"))?;
    Ok(match status.signal() {
        Some(signal) => Outcome::Interrupted(signal),
        None => Outcome::Exited(status.code().unwrap_or(1) as u8),
    })
}

/// Formats changes, one in a line, and a line that says what is not covered.
fn listed(changes: &[Change], places: &Directories) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let shown = |path: &Path| {
        let path = path.strip_prefix(&here).unwrap_or(path);
        if path.as_os_str().is_empty() { ".".to_owned() } else { path.display().to_string() }
    };
    let lines = changes.iter().map(|it| format!("{} {}\n", it.kind, shown(&it.path)));
    let covered: Vec<_> = places.directories().map(|it| format!("`{}`", shown(it))).collect();
    let covered = covered.join(", ");
    let note = format!("ftsh: {covered} is as before; what the run did elsewhere is done\n");
    lines.chain([note]).collect()
}

/// Runs the shell in the overlays, in the process group of this process.
fn run_within(attempt: &Attempt, words: impl Iterator<Item = OsString>) -> Result<ExitStatus> {
    let namespaces = attempt.namespaces().context("no namespaces")?;
    let directory = std::env::current_dir().context("the current directory")?;
    let mut command = namespaces.command(PROGRAM, &directory)?;
    command.arg(INSIDE).args(words);
    let waited =
        [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT];
    let waited: SigSet = waited.into_iter().collect();
    waited.thread_block()?;
    wait(command.spawn().context("cannot start the shell")?, &waited)
}

/// Waits for the shell, and passes signals on.
fn wait(mut shell: Child, waited: &SigSet) -> Result<ExitStatus> {
    let pid = Pid::from_raw(shell.id().cast_signed());
    loop {
        if let Some(status) = shell.try_wait()? {
            return Ok(status);
        }
        // The terminal sends the signals of keys to the whole group.
        if let Ok(signal @ (Signal::SIGTERM | Signal::SIGHUP)) = waited.wait() {
            let _ = kill(pid, signal);
        }
    }
}
