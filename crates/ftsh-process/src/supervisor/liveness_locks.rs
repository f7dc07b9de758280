//! Locks that show which processes of a shell are alive.
//!
//! Both processes of a shell hold the lock of a file, which is free after the end of both. Other
//! shells that wait for the lock need more information. If both processes live, the wait may take
//! forever. If one is dead, the other is cleaning up. Each process therefore also locks one byte of
//! its own, at an offset beyond the end of any file.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::locks::{self, Bytes, one};
use ftsh_sys as sys;

const INTERPRETER: Bytes = one(1 << 62);
const SUPERVISOR: Bytes = one((1 << 62) + 1);

/// Locks of a shell's processes. A shell without a supervisor holds both.
pub struct LivenessLocks {
    interpreter: Cell<Option<File>>,
    supervisor: Cell<Option<File>>,
}

/// State of a shell that holds the lock of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellLiveness {
    /// No process: there is no shell, or it does not use these locks.
    Unlocked,
    /// One process: the shell was partly killed, or is about to end.
    Partial,
    /// Both processes.
    Alive,
}

impl LivenessLocks {
    /// Locks bytes of a writable file, until the value is dropped. Must be called before
    /// `supervise`.
    pub fn of(file: &File) -> io::Result<Self> {
        let take = |bytes| {
            // A new open file description has its own locks.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let own = OpenOptions::new().read(true).write(true).open(path)?;
            let own = File::from(sys::move_up(own.into())?);
            locks::try_lock(own.as_fd(), bytes)?;
            Ok::<_, io::Error>(Cell::new(Some(own)))
        };
        Ok(Self { interpreter: take(INTERPRETER)?, supervisor: take(SUPERVISOR)? })
    }

    /// Keeps only the lock of the interpreter.
    pub(super) fn interprets(&self) {
        self.supervisor.take();
    }

    /// Keeps only the lock of the supervisor.
    pub(super) fn supervises(&self) {
        self.interpreter.take();
    }
}

/// Returns the state of the shell that holds the lock of a file.
pub fn liveness(file: &File) -> ShellLiveness {
    let held = |bytes| matches!(locks::find(file.as_fd(), bytes), Ok(Some(_)));
    match (held(INTERPRETER), held(SUPERVISOR)) {
        (true, true) => ShellLiveness::Alive,
        (false, false) => ShellLiveness::Unlocked,
        _ => ShellLiveness::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_show_which_processes_live() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let other = File::open(file.path()).expect("a file");
        assert_eq!(liveness(&other), ShellLiveness::Unlocked);
        let liveness_locks = LivenessLocks::of(file.as_file()).expect("locks");
        assert_eq!(liveness(&other), ShellLiveness::Alive);
        // Reading and closing the file does not release the locks.
        drop(File::open(file.path()).expect("a file"));
        assert_eq!(liveness(&other), ShellLiveness::Alive);
        liveness_locks.supervises();
        assert_eq!(liveness(&other), ShellLiveness::Partial);
        liveness_locks.interprets();
        assert_eq!(liveness(&other), ShellLiveness::Unlocked);
        let liveness_locks = LivenessLocks::of(file.as_file()).expect("locks");
        liveness_locks.interprets();
        assert_eq!(liveness(&other), ShellLiveness::Partial);
        drop(liveness_locks);
        assert_eq!(liveness(&other), ShellLiveness::Unlocked);
    }
}
