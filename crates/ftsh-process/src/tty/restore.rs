//! Leaving a usable terminal, even if whoever changed it is killed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::termios::{
    InputFlags, LocalFlags, OutputFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr,
    tcsetattr,
};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, write};

use ftsh_sys as sys;

/// A terminal that shows nothing for so many milliseconds isn't waited for.
const BRIEFLY: u16 = 1000;

/// How a line editor has set the terminal: whoever finds it like that finds what the editor left.
#[derive(Clone, Default)]
pub struct Edited(Arc<Mutex<Option<Termios>>>);

impl Edited {
    /// Takes note of how standard input is set now.
    pub fn note(&self) {
        *self.lock() = tcgetattr(io::stdin()).ok();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Termios>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the terminal is to be between commands, and when the shell is gone.
pub struct TerminalRestore {
    tty: OwnedFd,
    modes: Termios,
    edited: Edited,
    /// What undoes what was asked of the terminal by escape sequences.
    sequence: &'static str,
}

impl TerminalRestore {
    /// Remembers how the terminal is, and the escape sequence to write to it later; none without a
    /// terminal.
    pub fn new(sequence: &'static str) -> Option<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let tty = sys::move_up(tty.into()).ok()?;
        let modes = tcgetattr(tty.as_fd()).ok()?;
        Some(Self { tty, modes, edited: Edited::default(), sequence })
    }

    /// For a line editor, to say how it sets the terminal.
    pub fn edited(&self) -> Edited {
        self.edited.clone()
    }

    /// After a command of one who types: a terminal that can't be used any more is made as it was
    /// before. What else was set, on purpose, stays and is how it is from now on.
    pub fn settle(&mut self) {
        let foreground = tcgetpgrp(self.tty.as_fd()) == Ok(getpgrp());
        let Some(modes) = tcgetattr(self.tty.as_fd()).ok().filter(|_| foreground) else { return };
        if essence(&modes) == essence(&self.modes) {
            self.modes = modes;
        } else {
            let _ = tcsetattr(self.tty.as_fd(), SetArg::TCSANOW, &self.modes);
        }
    }

    /// Makes the terminal as it was, unless another group has it now, and has made it its own.
    pub fn apply(&self) {
        let own = getpgrp();
        let current = tcgetpgrp(self.tty.as_fd()).map_or(0, Pid::as_raw);
        if current != own.as_raw() {
            if !sys::is_group_alive(current) {
                sys::set_foreground(self.tty.as_fd(), own.as_raw());
            } else if tcgetattr(self.tty.as_fd()).ok().as_ref().map(settings)
                != self.edited.lock().as_ref().map(settings)
            {
                return;
            }
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

/// All that the kernel knows: what else C libraries have room for, some leave as they find it.
pub(super) fn settings(modes: &Termios) -> impl PartialEq + use<> {
    let flags = (modes.input_flags, modes.output_flags, modes.control_flags, modes.local_flags);
    (flags, modes.control_chars[..=SpecialCharacterIndices::VEOL2 as usize].to_vec())
}

/// Without these as they were, typing goes wrong: lines, their echo, keys that interrupt, line ends.
fn essence(modes: &Termios) -> (InputFlags, OutputFlags, LocalFlags) {
    let input = InputFlags::ICRNL | InputFlags::INLCR | InputFlags::IGNCR;
    let output = OutputFlags::OPOST | OutputFlags::ONLCR;
    let local = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG | LocalFlags::IEXTEN;
    (modes.input_flags & input, modes.output_flags & output, modes.local_flags & local)
}
