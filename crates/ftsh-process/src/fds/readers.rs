//! Detection of a command whose output lost its readers.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{Mode, SFlag};
use nix::unistd::read;

use super::pipe_watches::{PipeWatch, PipeWatches};
use super::plan::Plan;
use crate::descriptors::Fd;
use ftsh_machine::event::CommandStatus;
use ftsh_sys as sys;

/// Exit status of a shell whose last command was killed by SIGPIPE.
const EXITED_BY_SIGPIPE: i32 = 128 + libc::SIGPIPE;

/// Readers of a command's outputs.
#[derive(Default)]
pub(crate) struct Readers {
    outputs: Vec<CommandOutput>,
    /// Set if the readers of an output must be assumed gone.
    believed_gone: bool,
}

enum CommandOutput {
    /// Descriptor inherited by the shell, which stays open.
    Inherited(sys::Inherited),
    /// Socket, kept open.
    Kept(Fd),
    /// Pipe, by an `O_PATH` descriptor that keeps no end open. Readers thus see the end of the
    /// output, and writers the loss of the readers.
    Pipe(OwnedFd, Option<PipeWatch>),
}

impl Readers {
    /// Returns the readers of a builtin's output. Its write error proves the loss of the readers,
    /// if the output feeds another stage.
    pub(crate) fn of_builtin(feeds: bool) -> Self {
        Self { outputs: Vec::new(), believed_gone: feeds }
    }

    /// Returns the readers of the outputs that a plan gives to these descriptors, one bit each.
    /// Without room for another descriptor, the readers of a pipe are assumed gone.
    pub(crate) fn of(
        plan: &Plan,
        descriptors: u16,
        pipe_watches: &PipeWatches,
        has_room: bool,
    ) -> Self {
        let mut readers = Self::default();
        let mut seen = Vec::with_capacity(2);
        for (number, fd) in plan.known().into_iter().enumerate() {
            let Some(fd) = fd.filter(|_| descriptors & 1 << number != 0) else { continue };
            let raw = fd.as_fd().as_raw_fd();
            if seen.contains(&raw) {
                continue;
            }
            seen.push(raw);
            match fd {
                Fd::Inherited(fd) => readers.outputs.push(CommandOutput::Inherited(*fd)),
                fd => match sys::fd_kind(fd.as_fd()).map(|kind| kind.file_type) {
                    Ok(SFlag::S_IFIFO) if !has_room => readers.believed_gone = true,
                    Ok(SFlag::S_IFIFO) => match open(fd, OFlag::O_PATH).and_then(sys::move_up) {
                        Ok(pipe) => {
                            let watch = pipe_watches.watch(&pipe);
                            readers.outputs.push(CommandOutput::Pipe(pipe, watch));
                        }
                        Err(_) => readers.believed_gone = true,
                    },
                    Ok(SFlag::S_IFSOCK) => readers.outputs.push(CommandOutput::Kept(fd.clone())),
                    _ => {}
                },
            }
        }
        readers
    }

    /// True if the exit status shows a death by SIGPIPE, of the command or of a command it ran, and
    /// the readers are gone.
    pub(crate) fn reader_gone(&self, status: CommandStatus) -> bool {
        let is_broken_pipe = matches!(
            status,
            CommandStatus::Signaled(libc::SIGPIPE) | CommandStatus::Exited(EXITED_BY_SIGPIPE)
        );
        is_broken_pipe && (self.believed_gone || self.outputs.iter().any(CommandOutput::is_unread))
    }
}

impl CommandOutput {
    /// True if the output had no reader when the command ended.
    fn is_unread(&self) -> bool {
        match self {
            Self::Inherited(fd) => is_broken(fd).unwrap_or(false),
            Self::Kept(socket) => is_broken(socket).unwrap_or(false),
            Self::Pipe(pipe, watch) => is_unread(pipe, watch.as_ref()).unwrap_or(true),
        }
    }
}

/// True if a pipe has no readers, and lost them before its last writer was closed. A reader that
/// has read to the end of the output may exit normally.
fn is_unread(pipe: &OwnedFd, watch: Option<&PipeWatch>) -> io::Result<bool> {
    let writer = open(pipe, OFlag::O_WRONLY | OFlag::O_NONBLOCK)?;
    if !is_broken(&writer)? {
        return Ok(false);
    }
    // Queried before `drop`, which closes a writer too. A writer that opened the pipe by name, and
    // was closed before the reader, looks like the last one, unless other writers exist.
    let may_have_ended = watch.is_some_and(PipeWatch::reader_followed);
    drop(writer);
    Ok(!may_have_ended || is_written(pipe)?)
}

/// True if a pipe without readers may still be written.
fn is_written(pipe: &OwnedFd) -> io::Result<bool> {
    let reader = open(pipe, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?;
    match read(&reader, &mut [0]) {
        Err(Errno::EAGAIN) => Ok(true),
        result => Ok(result? > 0),
    }
}

/// True if a write would fail for lack of a reader.
fn is_broken(writer: impl AsFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(writer.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO)?;
    let broken = PollFlags::POLLERR | PollFlags::POLLHUP;
    Ok(polled[0].revents().is_some_and(|it| it.intersects(broken)))
}

/// Opens an open file again. Does not use std, which with musl takes `O_PATH` for an access mode.
fn open(fd: &impl AsFd, flags: OFlag) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    Ok(nix::fcntl::open(path.as_str(), flags | OFlag::O_CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use super::*;
    use crate::descriptors::FdTable;
    use crate::fds::plan::PlanStep;

    const DIED: CommandStatus = CommandStatus::Signaled(libc::SIGPIPE);

    /// Creates a pipe at descriptors 1 and 2 of a table. Returns its readers and its read end.
    fn piped(descriptors: u16) -> (Readers, io::PipeReader) {
        let (readers, reader, _) = written(descriptors);
        (readers, reader)
    }

    /// Also returns the plan, which holds the writer.
    fn written(descriptors: u16) -> (Readers, io::PipeReader, Plan) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let fd = Fd::Owned(Arc::new(writer.into()));
        let plan = Plan {
            table: FdTable::default(),
            directory: crate::paths::TaskDirectory::default(),
            umask: None,
            steps: vec![PlanStep::Set(1, fd), PlanStep::Copy { to: 2, from: 1 }],
            relayed: Vec::new(),
            replayed: Vec::new(),
        };
        (Readers::of(&plan, descriptors, &PipeWatches::default(), true), reader, plan)
    }

    #[test]
    fn a_lost_reader_explains_sigpipe() {
        for descriptors in [1 << 1, 1 << 2, 3 << 1] {
            let (readers, reader, plan) = written(descriptors);
            assert_eq!(readers.outputs.len(), 1);
            assert!(!readers.reader_gone(DIED));
            drop(reader);
            assert!(readers.reader_gone(DIED));
            drop(plan);
            assert!(readers.reader_gone(DIED));
            assert!(readers.reader_gone(CommandStatus::Exited(141)));
            assert!(!readers.reader_gone(CommandStatus::Exited(1)));
            assert!(!readers.reader_gone(CommandStatus::Signaled(libc::SIGTERM)));
        }
    }

    #[test]
    fn the_check_keeps_no_pipe_open() {
        let (readers, mut reader) = piped(1 << 1);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).expect("an end, as no writer is left");
        assert!(!readers.reader_gone(DIED));
    }

    #[test]
    fn a_reader_at_the_end_of_input_is_not_lost() {
        let (readers, reader, plan) = written(1 << 1);
        drop(plan);
        drop(reader);
        assert!(!readers.reader_gone(DIED));
    }

    #[test]
    fn a_lost_reader_is_found_though_the_pipe_was_opened_by_name() {
        let (readers, reader, plan) = written(1 << 1);
        let Some(Fd::Owned(writer)) = plan.known()[1].cloned() else { panic!("a writer") };
        drop(open(&writer, OFlag::O_WRONLY).expect("the same pipe"));
        drop(reader);
        assert!(readers.reader_gone(DIED), "somebody may still write");
        drop(open(&writer, OFlag::O_WRONLY | OFlag::O_NONBLOCK).expect("the same pipe"));
        drop((plan, writer));
        assert!(readers.reader_gone(DIED), "a writer was closed last");
    }

    #[test]
    fn a_socket_without_a_peer_has_no_reader() {
        let (here, there) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let readers = |output| Readers { outputs: vec![output], believed_gone: false };
        let kept = readers(CommandOutput::Kept(Fd::Owned(Arc::new(here.into()))));
        assert!(!kept.reader_gone(DIED));
        drop(there);
        assert!(kept.reader_gone(DIED));
    }

    #[test]
    fn a_builtin_determines_the_loss_by_its_error() {
        assert!(Readers::of_builtin(true).reader_gone(DIED));
        assert!(!Readers::of_builtin(false).reader_gone(DIED));
        assert!(!piped(0).0.reader_gone(DIED));
    }
}
