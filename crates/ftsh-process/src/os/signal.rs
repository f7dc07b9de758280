//! Signals to the shell, through a pipe that the loop polls.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, Signal};

use ftsh_sys as sys;

use ftsh_sys::Caught;

/// The signals that end the shell, unless they were ignored when it started.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// What a line editor wants to hear of itself: other threads must not take it away.
pub fn of_the_editor() -> SigSet {
    SigSet::from_iter([Signal::SIGINT, Signal::SIGWINCH])
}

/// What the handlers caught.
pub struct Signals {
    pipe: PipeReader,
    children: bool,
    /// What counts once, however it comes.
    pub interrupts: Interrupts,
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
        Ok(Self { pipe, children: false, interrupts: Interrupts::default() })
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

/// Tells a signal that came twice from one that was sent twice: a signal to the shell's group may
/// reach the interpreter directly and once more through its supervisor, and `timeout` sends one to
/// the shell and at once to the group.
#[derive(Default)]
pub struct Interrupts {
    /// Signals that came one way, and may come the other way, too.
    single: Vec<(i32, bool, Instant)>,
    /// The last one that was passed on by the supervisor and told the shell to end.
    ending: Option<(i32, Instant)>,
}

/// The second one comes at once, or late on a busy machine.
const TOGETHER: Duration = Duration::from_secs(2);

/// What is sent twice on purpose isn't sent as fast; what is sent at once may come so late on a busy
/// machine.
const AT_ONCE: Duration = Duration::from_millis(500);

impl Interrupts {
    /// Whether this one counts.
    pub fn count(&mut self, signal: i32, forwarded: bool) -> bool {
        self.count_at(Instant::now(), signal, forwarded)
    }

    fn count_at(&mut self, now: Instant, signal: i32, forwarded: bool) -> bool {
        self.single.retain(|(_, _, since)| now.duration_since(*since) < TOGETHER);
        let other =
            self.single.iter().position(|&(other, how, _)| other == signal && how != forwarded);
        let again = self
            .ending
            .is_some_and(|(last, when)| last == signal && now.duration_since(when) < AT_ONCE);
        if forwarded && is_ending(signal) && !again {
            self.ending = Some((signal, now));
        }
        if let Some(other) = other {
            self.single.remove(other);
            false
        } else if forwarded && again {
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

    const TERM: i32 = libc::SIGTERM;

    /// Which of these count: after so many milliseconds, what comes which way.
    fn counted(signals: &[(u64, i32, bool)]) -> Vec<bool> {
        let mut interrupts = Interrupts::default();
        let start = Instant::now();
        let count = |&(after, signal, forwarded): &(u64, i32, bool)| {
            interrupts.count_at(start + Duration::from_millis(after), signal, forwarded)
        };
        signals.iter().map(count).collect()
    }

    #[test]
    fn a_signal_that_comes_both_ways_counts_once() {
        assert_eq!(counted(&[(0, TERM, false), (1500, TERM, true)]), [true, false]);
        assert_eq!(counted(&[(0, TERM, true), (1, TERM, false)]), [true, false]);
        assert_eq!(counted(&[(0, TERM, false), (2500, TERM, true)]), [true, true]);
        assert_eq!(counted(&[(0, TERM, false), (1, libc::SIGINT, true)]), [true, true]);
        let twice = [(0, TERM, true), (0, TERM, false), (500, TERM, false), (501, TERM, true)];
        assert_eq!(counted(&twice), [true, false, true, false]);
    }

    #[test]
    fn a_signal_that_is_passed_on_twice_at_once_counts_once() {
        assert_eq!(counted(&[(0, TERM, true), (1, TERM, true)]), [true, false]);
        assert_eq!(counted(&[(0, TERM, true), (400, TERM, true)]), [true, false]);
        assert_eq!(counted(&[(0, TERM, true), (600, TERM, true)]), [true, true]);
        // To the shell, and to a group that the interpreter is in, too.
        for ways in [[true, false, true], [true, true, false], [false, true, true]] {
            let all = [(0, TERM, ways[0]), (1, TERM, ways[1]), (2, TERM, ways[2])];
            assert_eq!(counted(&all), [true, false, false], "{ways:?}");
        }
        // What is typed quickly is meant, and so is a question.
        assert_eq!(counted(&[(0, TERM, false), (1, TERM, false)]), [true, true]);
        assert_eq!(counted(&[(0, libc::SIGUSR1, true), (1, libc::SIGUSR1, true)]), [true, true]);
    }
}
