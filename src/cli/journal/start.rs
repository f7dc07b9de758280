//! What a start of the shell is made of, and taking on that of another one.

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

/// Returns the times of the clocks. Fails if the boot's id cannot be read: processes of an earlier start
/// in this boot would be taken for gone.
pub fn clocks() -> Result<Clocks> {
    let boot = process::boot_id()
        .map_err(|error| anyhow!("can't read {}: {}", process::BOOT_ID, plain(&error)))?;
    Ok(Clocks { wall: since_1970(), since_boot: since_boot(), boot })
}

fn since_boot() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// When something happened, since 1970, as the clock stood at the start before it.
pub fn moment_of(journal: &Journal, at: Time) -> Duration {
    let at = at.elapsed();
    let before = journal.starts.iter().rev().find(|start| start.elapsed <= at);
    before.map_or(journal.beginning.at + at, |start| start.at + at.saturating_sub(start.elapsed))
}

/// Describes this process, where a run has gone on for so long, as the shell `pid`, whose commands carry
/// this mark.
pub fn this(elapsed: Duration, pid: u32, mark: &str) -> Result<Started> {
    let Clocks { wall, since_boot, boot } = clocks()?;
    let directory = std::env::current_dir().map_err(|error| {
        anyhow!("can't record the current directory, where the run would go on: {}", plain(&error))
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

/// Whether this process may go on with what that one began.
pub fn check(first: &Started) -> Result<()> {
    let user = getuid().as_raw();
    if first.user != user {
        bail!("it is of the user with the id {}, not {user}", first.user);
    }
    Ok(())
}

/// Has this process be in the same directory, and take the same for granted, as that one.
pub fn assume(first: &Started) -> Result<()> {
    let directory = Path::new(std::ffi::OsStr::from_bytes(&first.directory));
    std::env::set_current_dir(directory).map_err(|error| {
        anyhow!("can't go to its directory `{}`: {}", directory.display(), plain(&error))
    })?;
    process::assume_umask(first.umask);
    process::ignore_only(&first.ignored);
    Ok(())
}
