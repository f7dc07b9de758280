//! Repeated Ctrl-C, which ends a command even if the command ignores it.
//!
//! The command in the foreground receives the keys. A command that ignores them would otherwise
//! never end. A program that reads single keys, such as an editor or a shell, receives Ctrl-C as an
//! ordinary key.

use std::time::{Duration, Instant};

/// Maximum time between two keys that count as a repetition.
const TWICE: Duration = Duration::from_secs(3);
/// Time for a command to handle the second key, or to read further keys.
const GRACE: Duration = Duration::from_millis(200);

/// Keys typed while a command was in the foreground.
#[derive(Default)]
pub(crate) struct Keys {
    last: Option<Instant>,
    /// Time at which the command is to be killed, and the key.
    due: Option<(Instant, i32)>,
}

impl Keys {
    /// Records a key.
    pub(crate) fn note(&mut self, signal: i32, now: Instant) {
        let last = self.last.replace(now);
        if self.due.is_none() && last.is_some_and(|last| now.duration_since(last) <= TWICE) {
            self.due = Some((now + GRACE, signal));
        }
    }

    /// Returns the time at which the command is to be killed.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.map(|(due, _)| due)
    }

    /// Returns the key if the time has come.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<i32> {
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
