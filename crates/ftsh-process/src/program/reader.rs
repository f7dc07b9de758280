//! Process that reads from pipes after the end of the shell.

use std::io;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{read, write};

use super::detached::start_detached;

/// Largest size of a pipe, unless a privileged process has raised it.
const LARGEST_PIPE: usize = 1 << 20;

/// Non-blocking pipe whose writers may outlive the shell.
#[derive(Clone, Copy)]
pub(crate) struct DaemonPipe<'a> {
    /// Read end.
    pub reader: BorrowedFd<'a>,
    /// Destination of the bytes; none if they are discarded.
    pub target: Option<BorrowedFd<'a>>,
}

impl<'a> From<BorrowedFd<'a>> for DaemonPipe<'a> {
    fn from(reader: BorrowedFd<'a>) -> Self {
        Self { reader, target: None }
    }
}

/// Starts a process that reads from these pipes after the shell has ended. Without a reader,
/// SIGPIPE would kill daemons at their next write. The process ends with the last writer. Returns
/// its id, or none if no process can write to the pipes.
pub(crate) fn start_reader(pipes: &[DaemonPipe]) -> io::Result<Option<i32>> {
    let mut kept: Vec<DaemonPipe> = pipes.iter().copied().filter(|it| it.is_written()).collect();
    if kept.is_empty() {
        return Ok(None);
    }
    let needed: Vec<_> =
        kept.iter().flat_map(|it| [Some(it.reader), it.target]).flatten().collect();
    let work = || {
        while !kept.is_empty() {
            let waited = kept.iter().map(|it| PollFd::new(it.reader, PollFlags::POLLIN));
            let mut waited: Vec<PollFd> = waited.collect();
            match poll(&mut waited, PollTimeout::NONE) {
                Ok(_) => {
                    let mut ready = waited.iter().map(|it| it.any() != Some(false));
                    kept.retain(|it| !ready.next().unwrap_or(true) || it.is_written());
                }
                Err(Errno::EINTR) => {}
                Err(_) => break,
            }
        }
    };
    start_detached(c"ftsh-reader", &needed, work).map(Some)
}

impl DaemonPipe<'_> {
    /// Reads the available bytes. Returns true if a process may still write.
    fn is_written(self) -> bool {
        let mut bytes = [0; 1 << 14];
        let mut total = 0;
        while total < LARGEST_PIPE {
            match read(self.reader, &mut bytes) {
                Ok(0) => return false,
                Ok(count) => {
                    total += count;
                    self.write_on(&bytes[..count]);
                }
                Err(Errno::EINTR) => {}
                Err(error) => return error == Errno::EAGAIN,
            }
        }
        true // more bytes arrived meanwhile
    }

    /// Writes bytes to the target, and ignores errors.
    fn write_on(self, mut bytes: &[u8]) {
        let Some(target) = self.target else { return };
        while !bytes.is_empty() {
            match write(target, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::EINTR) => {}
                // Another process has set O_NONBLOCK on the target.
                Err(Errno::EAGAIN) => {
                    let mut waited = [PollFd::new(target, PollFlags::POLLOUT)];
                    let _ = poll(&mut waited, PollTimeout::NONE);
                }
                Err(_) => return,
            }
        }
    }
}
