//! Ctrl-C, and again: who types it twice wants an end, whatever the command makes of it.
//!
//! The keys of a terminal are a command's own, as long as it has the terminal, and one that ignores
//! them would never end. A program that reads single keys, as an editor or a shell does, gets them
//! all: to it Ctrl-C is a key like others.

use std::time::{Duration, Instant};

use nix::sys::termios::LocalFlags;

use super::ProcessDriver;
use super::terminal::Terminal;
use super::witness::Witness;
use crate::machine::event::Event;

/// Keys that are typed within this time of each other are one wish.
const TWICE: Duration = Duration::from_secs(3);
/// So long a command may take to answer the second one, or to go on reading keys.
const GRACE: Duration = Duration::from_millis(200);

/// What was typed while a command had the terminal.
#[derive(Default)]
pub struct Keys {
    last: Option<Instant>,
    /// When the command is to be ended, and the key that says so.
    due: Option<(Instant, i32)>,
}

impl Keys {
    /// A key was typed.
    fn note(&mut self, signal: i32, now: Instant) {
        let last = self.last.replace(now);
        if self.due.is_none() && last.is_some_and(|last| now.duration_since(last) <= TWICE) {
            self.due = Some((now + GRACE, signal));
        }
    }

    /// When something is to be done.
    pub fn due(&self) -> Option<Instant> {
        self.due.map(|(due, _)| due)
    }

    /// The key, if its time has come.
    fn take_due(&mut self, now: Instant) -> Option<i32> {
        self.due.take_if(|(due, _)| *due <= now).map(|(_, signal)| signal)
    }
}

impl Terminal {
    /// Whether who has the terminal reads keys one by one.
    fn is_for_keys(&self) -> bool {
        self.modes().is_some_and(|modes| !modes.local_flags.contains(LocalFlags::ICANON))
    }
}

impl ProcessDriver {
    /// Takes note of the keys that are typed while a command has the terminal.
    pub(super) fn heed_keys(&mut self) {
        let Some(terminal) = &mut self.terminal else { return };
        let heard = terminal.witness_mut().map(Witness::heed);
        match heard {
            Some(Ok(signals)) => {
                let now = Instant::now();
                let apart = terminal.is_for_keys();
                let Some(keys) = terminal.keys() else { return };
                for signal in signals {
                    keys.note(signal, now);
                }
                if apart {
                    *keys = Keys::default();
                }
            }
            Some(Err(_)) => self.dismiss_witness(),
            None => {}
        }
    }

    /// Ends the command that two keys were typed at, if it hasn't answered the second one either.
    pub(super) fn insist(&mut self, now: Instant) {
        let Some(terminal) = &mut self.terminal else { return };
        let Some(signal) = terminal.keys().and_then(|keys| keys.take_due(now)) else { return };
        if terminal.is_for_keys() {
            return;
        }
        if let Some(witness) = terminal.witness_mut() {
            witness.forget(); // it is told here
        }
        // The first one, which only the command has got, and the second.
        self.ready.extend([Event::Interrupted(signal), Event::Interrupted(signal)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_second_key_of_a_moment_counts() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut keys = Keys::default();
        keys.note(libc::SIGINT, at(0));
        keys.note(libc::SIGINT, at(4_000));
        assert_eq!(keys.due(), None);
        keys.note(libc::SIGQUIT, at(5_000));
        keys.note(libc::SIGINT, at(5_001));
        assert_eq!(keys.take_due(at(5_100)), None);
        assert_eq!(keys.take_due(at(5_200)), Some(libc::SIGQUIT));
        assert_eq!((keys.take_due(at(9_000)), keys.due()), (None, None));
    }
}
