//! Leaving a usable terminal, even if whoever changed it is killed.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, write};

use super::{family, sys};

/// A terminal that shows nothing for so many milliseconds isn't waited for.
const BRIEFLY: u16 = 1000;

/// How the terminal was when the shell started.
pub struct Repair {
    tty: OwnedFd,
    modes: Termios,
    /// What undoes what was asked of the terminal by escape sequences.
    sequence: &'static str,
}

impl Repair {
    /// Remembers how the terminal is, and the escape sequence to write to it later; none without a
    /// terminal.
    pub fn new(sequence: &'static str) -> Option<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let tty = sys::move_up(tty.into()).ok()?;
        let modes = tcgetattr(tty.as_fd()).ok()?;
        Some(Self { tty, modes, sequence })
    }

    /// Makes the terminal as it was, unless another group has it now.
    pub fn apply(&self) {
        let own = getpgrp();
        let current = tcgetpgrp(self.tty.as_fd()).map_or(0, Pid::as_raw);
        if current != own.as_raw() {
            if family::is_group_alive(current) {
                return;
            }
            sys::set_foreground(self.tty.as_fd(), own.as_raw());
        }
        // Nobody is left to be told of an error.
        let _ = sys::without_stopping(|| {
            let mut tty = [PollFd::new(self.tty.as_fd(), PollFlags::POLLOUT)];
            // Stopped by Ctrl-S, it might never take this.
            if !self.sequence.is_empty() && poll(&mut tty, BRIEFLY) == Ok(1) {
                let _ = write(self.tty.as_fd(), self.sequence.as_bytes());
            }
            tcsetattr(self.tty.as_fd(), SetArg::TCSANOW, &self.modes)
        });
    }
}
