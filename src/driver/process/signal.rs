//! Signals to the shell, through a pipe that the loop polls.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use super::sys::{self, Caught};

/// The signals that end the shell, unless they were ignored when it started.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// What the handlers caught.
pub struct Signals {
    pipe: PipeReader,
    children: bool,
}

impl Signals {
    /// Catches what ends or stops the shell, or asks what it is doing. There can be only one such
    /// object in a process at a time.
    pub fn catch() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let pipe = PipeReader::from(sys::move_up(reader.into())?);
        let writer = sys::move_up(writer.into())?;
        sys::add_flags(pipe.as_fd(), OFlag::O_NONBLOCK)?;
        sys::add_flags(writer.as_fd(), OFlag::O_NONBLOCK)?;
        let signals: Vec<i32> = ENDING
            .into_iter()
            .chain([libc::SIGTSTP, libc::SIGUSR1])
            .filter(|&signal| !sys::is_ignored(signal))
            .collect();
        sys::catch(&signals, writer);
        sys::catch_children(false);
        Ok(Self { pipe, children: false })
    }

    /// Whether SIGCHLD is caught.
    pub fn catches_children(&self) -> bool {
        self.children
    }

    /// Catches SIGCHLD as well, or no longer. True if it wasn't caught before, so that something
    /// may have been missed.
    pub fn catch_children(&mut self, wanted: bool) -> bool {
        if wanted == self.children {
            return false;
        }
        self.children = wanted;
        sys::catch_children(wanted);
        wanted
    }

    /// Readable when a signal was caught.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Takes what was caught since the last call, oldest first.
    pub fn take(&mut self) -> Vec<Caught> {
        let mut caught = Vec::new();
        let mut bytes = [0; 64 * Caught::SIZE];
        while let Ok(count) = self.pipe.read(&mut bytes) {
            caught.extend(bytes[..count].as_chunks().0.iter().copied().map(Caught::from_bytes));
            if count < bytes.len() {
                break;
            }
        }
        caught
    }
}

/// Whether a signal tells the shell to end.
pub fn is_ending(signal: i32) -> bool {
    ENDING.contains(&signal)
}

/// Ends this process by a signal, so that its parent sees what happened.
pub fn die_by(signal: i32) -> ! {
    sys::die_by(signal)
}

/// Tells a signal that came twice from one that was sent twice: a signal to the shell's group
/// reaches the interpreter directly and once more through its supervisor.
#[derive(Default)]
pub struct Interrupts {
    /// Signals that came one way, and may come the other way, too.
    single: Vec<(i32, bool, Instant)>,
}

/// The second one comes at once, or late on a busy machine.
const TOGETHER: Duration = Duration::from_secs(2);

impl Interrupts {
    /// Whether this one counts.
    pub fn count(&mut self, signal: i32, forwarded: bool) -> bool {
        let now = Instant::now();
        self.single.retain(|(_, _, since)| now.duration_since(*since) < TOGETHER);
        let other =
            self.single.iter().position(|&(other, how, _)| other == signal && how != forwarded);
        if let Some(other) = other {
            self.single.remove(other);
            false
        } else {
            self.single.push((signal, forwarded, now));
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_both_ways_counts_once() {
        let mut interrupts = Interrupts::default();
        assert!(interrupts.count(15, false));
        assert!(!interrupts.count(15, true));
        assert!(interrupts.count(15, true));
        assert!(interrupts.count(15, true));
        assert!(!interrupts.count(15, false));
        assert!(interrupts.count(2, false));
    }
}
