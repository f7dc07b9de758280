//! Properties of a start of the shell, and their restoration by the next start.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use nix::unistd::getuid;

use super::moment::since_1970;
use ftsh_journal::{Clocks, Journal, Started};
use ftsh_machine::Time;
use ftsh_process as process;
use ftsh_sys::os_error::plain;

/// Returns the times of the clocks.
///
/// # Errors
///
/// Fails if the id of the boot cannot be read: processes of an earlier start in this boot would be
/// taken for gone.
pub(super) fn clocks() -> Result<Clocks> {
    let boot = process::boot_id()
        .map_err(|error| anyhow!("can't read {}: {}", process::BOOT_ID, plain(&error)))?;
    Ok(Clocks { wall: since_1970(), since_boot: since_boot(), boot })
}

fn since_boot() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// Returns the time of an event since 1970, by the clock of the latest start before the event.
pub(super) fn moment_of(journal: &Journal, at: Time) -> Duration {
    let at = at.elapsed();
    let before = journal.starts.iter().rev().find(|start| start.elapsed <= at);
    before.map_or(journal.beginning.at + at, |start| start.at + at.saturating_sub(start.elapsed))
}

/// Describes this process as a start of a run after `elapsed`. The shell has the process id `pid`,
/// and its commands carry the tag `mark`.
pub(super) fn this(elapsed: Duration, pid: u32, mark: &str) -> Result<Started> {
    let Clocks { wall, since_boot, boot } = clocks()?;
    let directory = std::env::current_dir().map_err(|error| {
        anyhow!(
            "can't record the current directory, where the next start would resume the run: {}",
            plain(&error)
        )
    })?;
    Ok(Started {
        at: wall,
        since_boot,
        boot,
        elapsed,
        pid,
        interpreter: std::process::id(),
        mark: mark.into(),
        directory: directory.into_os_string().into_vec().into(),
        umask: process::umask(),
        ignored: process::ignored_signals(),
        user: getuid().as_raw(),
        version: env!("CARGO_PKG_VERSION").into(),
    })
}

/// Returns an error if this process may not resume the run of an earlier start.
pub(super) fn check(first: &Started) -> Result<()> {
    let user = getuid().as_raw();
    if first.user != user {
        bail!("it belongs to the user with the id {}, not {user}", first.user);
    }
    Ok(())
}

/// Restores directory, umask and ignored signals of an earlier start.
pub(super) fn assume(first: &Started) -> Result<()> {
    let directory = Path::new(std::ffi::OsStr::from_bytes(&first.directory));
    std::env::set_current_dir(directory).map_err(|error| {
        anyhow!("can't enter its directory `{}`: {}", directory.display(), plain(&error))
    })?;
    process::assume_umask(first.umask);
    process::ignore_only(&first.ignored);
    Ok(())
}
