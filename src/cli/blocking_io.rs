//! Standard input and output that another process may have made non-blocking.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use ftsh_process as process;

/// A descriptor of the shell whose operations wait where a non-blocking one would fail.
pub(super) struct BlockingIo<T>(pub T);

impl<T: AsFd> BlockingIo<T> {
    fn until_done<R>(
        &mut self,
        events: PollFlags,
        mut action: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        // The Rust runtime opens /dev/null in place of a closed standard descriptor.
        if process::was_closed(self.0.as_fd().as_raw_fd()) {
            return Err(Errno::EBADF.into());
        }
        loop {
            match action(&mut self.0) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(self.0.as_fd(), events)], PollTimeout::NONE)?;
                }
                result => return result,
            }
        }
    }
}

impl<T: AsFd + Read> Read for BlockingIo<T> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.until_done(PollFlags::POLLIN, |it| it.read(room))
    }
}

impl<T: AsFd + Write> Write for BlockingIo<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_done(PollFlags::POLLOUT, |it| it.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.until_done(PollFlags::POLLOUT, Write::flush)
    }
}
