//! `--lock-busy replace`: ends the run that holds a lock.
//!
//! A signal goes through a pidfd, to a process with the number in the lock file, after all checks
//! have passed for this process. Another process with the number never receives the signal.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use ftsh_sys as sys;

/// Reason why a process is left alone.
pub(crate) type Stranger = &'static str;

/// Ends the run whose shell has this process id, by SIGTERM, if the run holds the lock.
pub(crate) fn end(pid: i32, lock: &File) -> Result<(), Stranger> {
    // Before the checks, so that no later process with the same id is signaled.
    let process = sys::pidfd_open(pid).map_err(|_| "its process cannot be reached")?;
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let owner = fs::metadata(&directory).map_err(|_| "its process cannot be examined")?.uid();
    if owner != geteuid().as_raw() {
        return Err("it is a run of another user");
    }
    if !runs_ftsh(&directory) {
        return Err("its process is not ftsh");
    }
    if !holds(&directory, lock) {
        return Err("its process does not hold the lock");
    }
    if is_around(pid) {
        return Err("this run is a part of it");
    }
    sys::terminate_process(process.as_fd()).map_err(|_| "its process cannot be signaled")
}

/// Returns true if a process runs a program with the name of this program.
fn runs_ftsh(process: &Path) -> bool {
    let name = |program: PathBuf| {
        let name = program.file_name()?.to_str()?.to_owned();
        // An update has replaced the file.
        Some(name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned())
    };
    let theirs = fs::read_link(process.join("exe")).ok().and_then(name);
    let ours = fs::read_link("/proc/self/exe").ok().and_then(name);
    theirs.is_some() && theirs == ours
}

/// Returns true if a descriptor of a process has the lock.
fn holds(process: &Path, lock: &File) -> bool {
    let Ok(ours) = lock.metadata() else { return false };
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors.flatten().any(|entry| {
        let is_same = fs::metadata(entry.path())
            .is_ok_and(|theirs| (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()));
        let info = || fs::read_to_string(process.join("fdinfo").join(entry.file_name()));
        let has_lock = |line: &str| line.starts_with("lock:") && line.contains("FLOCK");
        is_same && info().is_ok_and(|info| info.lines().any(has_lock))
    })
}

/// Returns true if a process is this process or a parent of it.
fn is_around(pid: i32) -> bool {
    let parent = |pid: &i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse::<i32>().ok().filter(|parent| *parent > 0)
    };
    let own = std::process::id().cast_signed();
    std::iter::successors(Some(own), parent).any(|parent| parent == pid)
}
