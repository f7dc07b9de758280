//! Ctrl-C, and again: who types it twice wants an end, whatever the command makes of it.
//!
//! The keys of a terminal are a command's own, as long as it has the terminal, and one that ignores
//! them would never end. A program that reads single keys, as an editor or a shell does, gets them
//! all: to it Ctrl-C is a key like others.

use std::time::{Duration, Instant};

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
    pub fn note(&mut self, signal: i32, now: Instant) {
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
    pub fn take_due(&mut self, now: Instant) -> Option<i32> {
        self.due.take_if(|(due, _)| *due <= now).map(|(_, signal)| signal)
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
