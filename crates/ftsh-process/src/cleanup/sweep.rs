//! Removal of files according to the notes of a run.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use nix::dir::Dir;
use nix::fcntl::{AtFlags, OFlag, readlinkat};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::kind::NoteKind;
use crate::user_directory;
use ftsh_machine::record::Level;
use ftsh_sys::os_error::plain;
use ftsh_sys::{FileLock, LockKind};

/// Name of the directory with all runs, in the user's directory.
pub(super) const RUNS: &str = "runs";

/// Age after which a note whose file cannot be removed is deleted.
const NOTE_TIMEOUT: Duration = Duration::from_secs(7 * 86_400);

/// Result of a cleanup.
#[derive(Debug, Default)]
pub(crate) struct CleanupReport {
    /// Lines for the log about files that could not be removed, and about commits.
    pub lines: Vec<(Level, String)>,
    /// Notes of jobs that the shell left elsewhere.
    pub jobs: Vec<PathBuf>,
}

/// Reports a file that could not be removed.
pub(crate) fn not_removed(path: &Path, error: &io::Error) -> (Level, String) {
    (Level::FAILURES, format!("cannot remove `{}`: {}", path.display(), plain(error)))
}

/// Removes the files named by the notes of a run, and the notes, except for notes of jobs. `just_now`
/// is true if the shell has just ended. Reports the files given up.
pub(super) fn clean(run: BorrowedFd, just_now: bool) -> CleanupReport {
    clean_and(run, just_now, |_| false)
}

/// Removes like [`clean`], and also notes of jobs if `take` has taken the jobs over.
fn clean_and(
    run: BorrowedFd,
    just_now: bool,
    mut take: impl FnMut(&Path) -> bool,
) -> CleanupReport {
    let mut left = CleanupReport::default();
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let Ok(mut notes) = Dir::openat(run, ".", flags, Mode::empty()) else { return left };
    for note in notes.iter() {
        // The iterator repeats an error forever. The next shell handles the remaining notes.
        let Ok(note) = note else { return left };
        let name = note.file_name();
        let Some(kind) = NoteKind::of(name.to_bytes()) else { continue };
        let Ok(path) = readlinkat(run, name) else { continue };
        let file = Path::new(&path);
        if kind == NoteKind::Job {
            left.jobs.push(file.to_owned());
            if !take(file) {
                continue;
            }
        } else if (just_now || kind.lasts()) && !kind.is_gone(file) {
            match kind.remove_reporting(file, &mut |text| left.lines.push((Level::ENDING, text))) {
                Ok(()) => {}
                Err(error) if !just_now && is_older(run, name, NOTE_TIMEOUT) => {
                    left.lines.push(not_removed(file, &error));
                }
                Err(_) => continue,
            }
        }
        let _ = unlinkat(run, name, UnlinkatFlags::NoRemoveDir);
    }
    left
}

/// True if a note is older than `age`.
fn is_older(run: BorrowedFd, name: &CStr, age: Duration) -> bool {
    fstatat(run, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|note| {
        let made = UNIX_EPOCH + Duration::from_secs(u64::try_from(note.st_mtime).unwrap_or(0));
        made.elapsed().is_ok_and(|since| since > age)
    })
}

/// Removes the directory of a run, and the directory of all runs if empty.
pub(super) fn remove_run(run: &Path) {
    if std::fs::remove_dir(run).is_ok()
        && let Some(runs) = run.parent()
    {
        let _ = std::fs::remove_dir(runs);
    }
}

/// Number of runs tested on the event loop. With more, a worker tests all.
const MAX_TESTED_RUNS: usize = 32;

/// Returns true if a killed shell may have left something. The directories are on a local file system,
/// in memory where there is a `/run`, so the test cannot block.
pub(super) fn has_stale_runs() -> bool {
    has_free_run(&user_directory::path().join(RUNS))
}

/// Returns true if `runs` may hold the directory of a killed shell: one that no shell has locked.
/// Removes `runs` if it is empty. A missing `runs` costs one system call.
pub(super) fn has_free_run(runs: &Path) -> bool {
    // In `/tmp`, a link could lead to another file system.
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let Ok(mut found) = Dir::open(runs, flags, Mode::empty()) else { return false };
    let names = found.iter().map_while(Result::ok).map(|run| run.file_name().to_owned());
    let mut names = names.filter(|name| ![c".", c".."].contains(&name.as_c_str())).enumerate();
    let mut is_empty = true;
    let has_free = names.any(|(at, name)| {
        is_empty = false;
        let name = OsStr::from_bytes(name.to_bytes());
        at == MAX_TESTED_RUNS || lock(&runs.join(name)).is_some()
    });
    if is_empty {
        let _ = std::fs::remove_dir(runs);
    }
    has_free
}

/// Locks the directory of a run. Returns none if the shell of the run is alive.
fn lock(run: &Path) -> Option<FileLock> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY);
    FileLock::lock(options.open(run).ok()?, LockKind::ExclusiveNow).ok()
}

/// Removes files of the user's shells that were killed together with their supervisors. Reports the
/// files given up. Notes of jobs go after `take` has taken the jobs over.
pub(super) fn sweep_stale_runs(mut take: impl FnMut(&Path)) -> Vec<(Level, String)> {
    let mut left = Vec::new();
    let runs = user_directory::path().join(RUNS);
    // A sweep does not create the directory. An existing one must be as private as one created by
    // this shell.
    if !runs.symlink_metadata().is_ok_and(|it| it.is_dir())
        || user_directory::make_private(&runs).is_err()
    {
        return left;
    }
    for run in std::fs::read_dir(&runs).into_iter().flatten().flatten() {
        let path = run.path();
        if let Some(directory) = lock(&path) {
            let took = |job: &Path| {
                take(job);
                true
            };
            left.extend(clean_and(directory.as_fd(), false, took).lines);
            remove_run(&path);
        }
    }
    left
}

/// Removes files of the interpreter that held these locks, and cancels its jobs elsewhere. The notes
/// of jobs go last, so that the next shell cancels the jobs if this process is killed.
pub(crate) fn sweep_interpreter(locks: &[OwnedFd], cancel: impl Fn(&[PathBuf])) {
    for lock in locks {
        cancel(&clean(lock.as_fd(), true).jobs);
        clean_and(lock.as_fd(), true, |_| true);
        // Path of the run's directory. Where the system does not report the path, the empty
        // directory stays.
        let own = format!("/proc/self/fd/{}", lock.as_raw_fd());
        if let Ok(path) = std::fs::read_link(own) {
            remove_run(&path);
        }
    }
}
