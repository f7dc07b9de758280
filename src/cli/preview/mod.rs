//! `--preview DIR`: a run whose changes below directories are listed and dropped.
//!
//! The shell runs again, in overlays over the directories.

pub(super) mod covered;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use anyhow::{Result, anyhow};
use ftsh_layers::{Change, Directories};

use crate::cli::messages::report;
use ftsh_machine::Outcome;

/// First argument of the shell that runs in the overlays.
const INSIDE: &str = "--in-preview";

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
    for line in places.sweep() {
        report(&format!("ftsh: {line}\n"));
    }
    let attempt = covered::cover(&places, None).map_err(|error| anyhow!("--preview: {error}"))?;
    let status = covered::run(&attempt, [INSIDE.into()].into_iter().chain(words), |_| {})?.status;
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
