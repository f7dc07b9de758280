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

use super::super::os::locks::{self, Bytes, one};
use ftsh_sys as sys;

const INTERPRETER: Bytes = one(1 << 62);
const SUPERVISOR: Bytes = one((1 << 62) + 1);

/// Locks of a shell's processes. A shell without a supervisor holds both.
pub struct Lifelines {
    interpreter: Cell<Option<File>>,
    supervisor: Cell<Option<File>>,
}

/// State of a shell that holds the lock of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// No process: there is no shell, or it does not use these locks.
    Unseen,
    /// One process: the shell was partly killed, or is about to end.
    Dying,
    /// Both processes.
    Whole,
}

impl Lifelines {
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
pub fn life(file: &File) -> Life {
    let held = |bytes| matches!(locks::find(file.as_fd(), bytes), Ok(Some(_)));
    match (held(INTERPRETER), held(SUPERVISOR)) {
        (true, true) => Life::Whole,
        (false, false) => Life::Unseen,
        _ => Life::Dying,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_whole_as_long_as_both_of_its_processes_live() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let other = File::open(file.path()).expect("a file");
        assert_eq!(life(&other), Life::Unseen);
        let lifelines = Lifelines::of(file.as_file()).expect("locks");
        assert_eq!(life(&other), Life::Whole);
        // Reading and closing the file does not release the locks.
        drop(File::open(file.path()).expect("a file"));
        assert_eq!(life(&other), Life::Whole);
        lifelines.supervises();
        assert_eq!(life(&other), Life::Dying);
        lifelines.interprets();
        assert_eq!(life(&other), Life::Unseen);
        let lifelines = Lifelines::of(file.as_file()).expect("locks");
        lifelines.interprets();
        assert_eq!(life(&other), Life::Dying);
        drop(lifelines);
        assert_eq!(life(&other), Life::Unseen);
    }
}
