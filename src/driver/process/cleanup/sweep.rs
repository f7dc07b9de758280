//! Doing what the notes of a run say.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::dir::Dir;
use nix::fcntl::{Flock, FlockArg, OFlag, readlinkat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::kind::Kind;
use crate::user_directory;

/// The directory of the runs, in the user's own.
pub const RUNS: &str = "runs";

/// Removes what the notes in a run's directory name, and the notes. They may be old, or its shell ended
/// `just_now`.
pub fn clean(run: BorrowedFd, just_now: bool) {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let Ok(mut notes) = Dir::openat(run, ".", flags, Mode::empty()) else { return };
    for note in notes.iter() {
        // The iterator repeats an error for ever. Notes that stay are left to the next shell.
        let Ok(note) = note else { return };
        let name = note.file_name();
        let Some(kind) = Kind::of(name.to_bytes()) else { continue };
        let Ok(path) = readlinkat(run, name) else { continue };
        if !(just_now || kind.lasts()) || kind.remove(Path::new(&path)).is_ok() {
            let _ = unlinkat(run, name, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Removes a run's directory, and that of all runs if it was the last.
pub fn forget(run: &Path) {
    if std::fs::remove_dir(run).is_ok()
        && let Some(runs) = run.parent()
    {
        let _ = std::fs::remove_dir(runs);
    }
}

/// Whether there is anything that a killed shell may have left.
pub fn may_have_remains() -> bool {
    user_directory::path().join(RUNS).symlink_metadata().is_ok()
}

/// Removes what the user's other shells left that were killed together with their supervisors.
pub fn clean_up_after_others() {
    let runs = user_directory::path().join(RUNS);
    // It isn't made for this; else it must be what this shell would have made.
    if !runs.symlink_metadata().is_ok_and(|it| it.is_dir())
        || user_directory::make_private(&runs).is_err()
    {
        return;
    }
    for run in std::fs::read_dir(&runs).into_iter().flatten().flatten() {
        let path = run.path();
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY);
        // Whoever holds it lives.
        if let Ok(directory) = options.open(&path)
            && let Ok(directory) = Flock::lock(directory, FlockArg::LockExclusiveNonblock)
        {
            clean(directory.as_fd(), false);
            forget(&path);
        }
    }
}

/// Removes what an interpreter left that held these locks.
pub fn clean_up_after_interpreter(locks: &[OwnedFd]) {
    for lock in locks {
        clean(lock.as_fd(), true);
        // The run's directory; unknown where the system doesn't say, and then it stays, empty.
        let own = format!("/proc/self/fd/{}", lock.as_raw_fd());
        if let Ok(path) = std::fs::read_link(own) {
            forget(&path);
        }
    }
}
