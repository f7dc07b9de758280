//! Who has a file as long as a shell lives, and whether that is all of a shell or what is left of one.
//!
//! A lock that both processes of a shell hold is free when nothing of it is left. Who waits for it wants
//! to know more: whether both live, and it may take for ever, or one is dead and the other one ends what
//! is left. So each has a lock of its own besides, on a byte that no file is long enough to have.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::super::os::locks::{self, Bytes, one};
use ftsh_sys as sys;

const INTERPRETER: Bytes = one(1 << 62);
const SUPERVISOR: Bytes = one((1 << 62) + 1);

/// What shows in a file that the processes of this shell live. Where there is but one, it has both.
pub struct Lifelines {
    interpreter: Cell<Option<File>>,
    supervisor: Cell<Option<File>>,
}

/// What can be seen of a shell that has a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Nothing: there is none, or it shows nothing.
    Unseen,
    /// It was killed in part, or is about to end.
    Dying,
    /// It goes on.
    Whole,
}

impl Lifelines {
    /// In a file that can be written to, until this is dropped. To be had before the shell splits in two.
    pub fn of(file: &File) -> io::Result<Self> {
        let take = |bytes| {
            // Opened once more, with locks of its own.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let own = OpenOptions::new().read(true).write(true).open(path)?;
            let own = File::from(sys::move_up(own.into())?);
            locks::try_lock(own.as_fd(), bytes)?;
            Ok::<_, io::Error>(Cell::new(Some(own)))
        };
        Ok(Self { interpreter: take(INTERPRETER)?, supervisor: take(SUPERVISOR)? })
    }

    /// This process is the interpreter, and there is another one.
    pub(super) fn interprets(&self) {
        self.supervisor.take();
    }

    /// This process is the supervisor.
    pub(super) fn supervises(&self) {
        self.interpreter.take();
    }
}

/// Looks at a file that another shell may have.
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
        // Whoever looks at the file or closes it changes nothing.
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
