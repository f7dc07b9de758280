//! Whether anybody still reads from the pipes that a command writes to.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;

use super::super::sys;
use super::plan::Plan;
use crate::machine::event::Status;

/// The readers of pipes.
#[derive(Debug, Default)]
pub struct Readers {
    /// The pipes, by descriptors that keep none of their ends open: readers see the end of what is
    /// written, and writers that nobody reads any more.
    pipes: Vec<OwnedFd>,
    /// What to believe where no pipe is known.
    believed_gone: bool,
}

impl Readers {
    /// Those of a builtin's pipe, whose writing says itself that they are gone; or of pipes that can't be
    /// looked at.
    pub fn told_of(is_piped: bool) -> Self {
        Self { pipes: Vec::new(), believed_gone: is_piped }
    }

    /// Those of the pipes that these descriptors, a bit for each, of a table to be made lead to. A pipe
    /// that can't be looked at is believed to have none.
    pub fn of(plan: &Plan, descriptors: u16) -> Self {
        let mut readers = Self::told_of(descriptors != 0);
        let mut seen = Vec::with_capacity(2);
        for (number, fd) in plan.known().into_iter().enumerate() {
            let Some(fd) = fd.filter(|_| descriptors & 1 << number != 0) else { continue };
            let raw = fd.as_fd().as_raw_fd();
            if !seen.contains(&raw) {
                seen.push(raw);
                readers.pipes.extend(open(fd, OFlag::O_PATH).and_then(sys::move_up));
            }
        }
        readers
    }

    /// Whether a writer that ended so died for want of them.
    pub fn are_missed(&self, status: Status) -> bool {
        status == Status::Signaled(libc::SIGPIPE) && self.are_gone()
    }

    /// Whether one of the pipes has no reader.
    fn are_gone(&self) -> bool {
        match self.pipes.as_slice() {
            [] => self.believed_gone,
            pipes => pipes.iter().any(|pipe| is_unread(pipe).unwrap_or(true)),
        }
    }
}

fn is_unread(pipe: &OwnedFd) -> io::Result<bool> {
    let writer = open(pipe, OFlag::O_WRONLY | OFlag::O_NONBLOCK)?;
    let mut polled = [PollFd::new(writer.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO)?;
    Ok(polled[0].revents().is_some_and(|it| it.contains(PollFlags::POLLERR)))
}

/// Opens again what is open. Not by std, which takes `O_PATH` for a kind of access with musl.
fn open(fd: &impl AsFd, flags: OFlag) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    Ok(nix::fcntl::open(path.as_str(), flags | OFlag::O_CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use super::super::plan::Step;
    use super::super::table::{Fd, FdTable};
    use super::*;

    const DIED: Status = Status::Signaled(libc::SIGPIPE);

    /// A pipe at descriptors 1 and 2 of a table, and its reader.
    fn piped(descriptors: u16) -> (Readers, io::PipeReader) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let fd = Fd::Owned(Arc::new(writer.into()));
        let plan = Plan {
            table: FdTable::default(),
            directory: None,
            umask: None,
            steps: vec![Step::Set(1, fd), Step::Copy { to: 2, from: 1 }],
            relayed: Vec::new(),
            replayed: Vec::new(),
        };
        (Readers::of(&plan, descriptors), reader)
    }

    #[test]
    fn they_are_missed_once_they_are_gone_and_not_before() {
        for descriptors in [1 << 1, 1 << 2, 3 << 1] {
            let (readers, reader) = piped(descriptors);
            assert_eq!(readers.pipes.len(), 1);
            assert!(!readers.are_missed(DIED));
            drop(reader);
            assert!(readers.are_missed(DIED));
            assert!(!readers.are_missed(Status::Signaled(libc::SIGTERM)));
        }
    }

    #[test]
    fn to_look_for_them_keeps_no_pipe_open() {
        let (readers, mut reader) = piped(1 << 1);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).expect("an end, as no writer is left");
        assert!(!readers.are_missed(DIED));
    }

    #[test]
    fn where_nothing_is_known_the_signal_is_believed() {
        assert!(Readers::told_of(true).are_missed(DIED));
        assert!(!Readers::told_of(false).are_missed(DIED));
        assert!(!piped(0).0.are_missed(DIED));
    }
}
