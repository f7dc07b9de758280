//! Restoration of a usable terminal, even after the process that changed it was killed.

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

/// Time limit for output to the terminal, in milliseconds.
const OUTPUT_TIMEOUT: u16 = 1000;

/// Modes set by the line editor. A terminal with these modes was left by the editor.
#[derive(Clone, Default)]
pub struct Edited(Arc<Mutex<Option<Termios>>>);

impl Edited {
    /// Records the current modes of standard input.
    pub fn note(&self) {
        *self.lock() = tcgetattr(io::stdin()).ok();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Termios>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Modes of the terminal between commands and after the end of the shell.
pub struct TerminalRestore {
    tty: OwnedFd,
    modes: Termios,
    edited: Edited,
    /// Escape sequence that undoes earlier ones.
    sequence: &'static str,
}

impl TerminalRestore {
    /// Records the modes of the terminal and an escape sequence for its restoration; none without a
    /// terminal.
    pub fn new(sequence: &'static str) -> Option<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let tty = sys::move_up(tty.into()).ok()?;
        let modes = tcgetattr(tty.as_fd()).ok()?;
        Some(Self { tty, modes, edited: Edited::default(), sequence })
    }

    /// Returns the record of the line editor's modes, which the editor updates.
    pub fn edited(&self) -> Edited {
        self.edited.clone()
    }

    /// Repairs the terminal after a command at a prompt. If lines, echo or interrupting keys no
    /// longer work, the modes are restored. Other changes are taken for intended and recorded.
    pub fn repair(&mut self) {
        let foreground = tcgetpgrp(self.tty.as_fd()) == Ok(getpgrp());
        let Some(modes) = tcgetattr(self.tty.as_fd()).ok().filter(|_| foreground) else { return };
        if essence(&modes) == essence(&self.modes) {
            self.modes = modes;
        } else {
            let _ = tcsetattr(self.tty.as_fd(), SetArg::TCSANOW, &self.modes);
        }
    }

    /// Restores the terminal, unless another group is in the foreground and has set modes of its
    /// own.
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
        // Errors are ignored: no other descriptor is available for a message.
        let _ = sys::without_stopping(|| {
            let mut tty = [PollFd::new(self.tty.as_fd(), PollFlags::POLLOUT)];
            // After Ctrl-S, the terminal might never accept the sequence.
            if !self.sequence.is_empty() && poll(&mut tty, OUTPUT_TIMEOUT) == Ok(1) {
                let _ = write(self.tty.as_fd(), self.sequence.as_bytes());
            }
            tcsetattr(self.tty.as_fd(), SetArg::TCSANOW, &self.modes)
        });
    }
}

/// Returns the settings known to the kernel. C libraries leave room for others, which they may not
/// initialize.
pub(super) fn settings(modes: &Termios) -> impl PartialEq + use<> {
    let flags = (modes.input_flags, modes.output_flags, modes.control_flags, modes.local_flags);
    (flags, modes.control_chars[..=SpecialCharacterIndices::VEOL2 as usize].to_vec())
}

/// Returns the settings without which typing fails: line editing, echo, interrupting keys, line
/// ends.
fn essence(modes: &Termios) -> (InputFlags, OutputFlags, LocalFlags) {
    let input = InputFlags::ICRNL | InputFlags::INLCR | InputFlags::IGNCR;
    let output = OutputFlags::OPOST | OutputFlags::ONLCR;
    let local = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG | LocalFlags::IEXTEN;
    (modes.input_flags & input, modes.output_flags & output, modes.local_flags & local)
}
