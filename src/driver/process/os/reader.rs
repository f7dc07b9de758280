//! A process that reads pipes after the shell.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::read;

use super::super::sys;

/// No pipe holds more, unless a privileged process asked for it.
const LARGEST_PIPE: usize = 1 << 20;

/// Leaves a process behind that reads what daemons go on to write into non-blocking pipes, for a write
/// into a pipe that nobody reads would kill them. It ends with the last of them. Returns its id, or none
/// if nobody can write there any more.
pub fn leave_reader(pipes: &[BorrowedFd]) -> io::Result<Option<i32>> {
    let kept: Vec<BorrowedFd> = pipes.iter().copied().filter(|pipe| is_written(*pipe)).collect();
    if kept.is_empty() {
        return Ok(None);
    }
    let mut waited: Vec<PollFd> =
        kept.iter().map(|pipe| PollFd::new(*pipe, PollFlags::POLLIN)).collect();
    if let Some(pid) = sys::fork()? {
        return Ok(Some(pid));
    }
    sys::detach(&kept);
    while !waited.is_empty() {
        match poll(&mut waited, PollTimeout::NONE) {
            Ok(_) => waited.retain(|it| it.any() == Some(false) || is_written(it.as_fd())),
            Err(Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    sys::exit_now(0)
}

/// Reads what is there; returns true if somebody may still write.
fn is_written(pipe: BorrowedFd) -> bool {
    let mut bytes = [0; 1 << 14];
    let mut total = 0;
    while total < LARGEST_PIPE {
        match read(pipe, &mut bytes) {
            Ok(0) => return false,
            Ok(count) => total += count,
            Err(Errno::EINTR) => {}
            Err(error) => return error == Errno::EAGAIN,
        }
    }
    true // more came meanwhile
}
