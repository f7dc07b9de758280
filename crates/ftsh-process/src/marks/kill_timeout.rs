//! Kill timeout of nested shells.
//!
//! An inner shell must finish before an outer shell kills the inner one. Each living shell
//! therefore reserves a part of the kill timeout for itself. Shells that have ended reserve
//! nothing: otherwise the timeout would shrink to zero where each shell leaves another one running.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use super::mark;

/// Time that each shell reserves: its own kill timeout is longer by this than that of the shells
/// inside.
const MARGIN: Duration = Duration::from_secs(5);

/// Requested time from SIGTERM to SIGKILL, minus the parts reserved by shells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillTimeout {
    asked: Duration,
    /// Number of shells that reserve a part.
    shells: u32,
}

impl KillTimeout {
    /// Creates a kill timeout of which no shell reserves a part.
    pub fn of(asked: Duration) -> Self {
        Self { asked, shells: 0 }
    }

    /// Environment variable with the kill timeout of a shell, in seconds.
    pub const VARIABLE: &str = "FTSH_KILL_TIMEOUT";

    /// Formats the remaining time as seconds with decimals, for the environment.
    pub fn written(self) -> String {
        let time = self.time();
        let text = format!("{}.{:09}", time.as_secs(), time.subsec_nanos());
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// Returns the remaining time.
    pub fn time(self) -> Duration {
        self.asked.saturating_sub(MARGIN * self.shells)
    }

    /// Returns the kill timeout of shells started by this shell.
    #[must_use]
    pub fn inside(self) -> Self {
        Self { shells: self.shells + 1, ..self }
    }

    /// Returns the kill timeout of this process, given the value of its environment variable. The
    /// result is longer than the value if shells around this process that reserved a part have
    /// ended.
    pub fn inherited(told: Duration) -> Self {
        let mark = std::env::var_os(mark::VARIABLE).unwrap_or_default();
        Self::told(told, mark.as_bytes(), mark::lives)
    }

    fn told(time: Duration, mark: &[u8], lives: impl Fn(&mark::Entry) -> bool) -> Self {
        let shells: Vec<mark::Entry> = mark::entries(mark).collect();
        let last = shells.last().and_then(|shell| shell.notes.split(';').find_map(Self::parse));
        match last {
            Some(last) if last.time() == time => {
                let keeping = shells.iter().rev().take(last.shells as usize);
                Self { shells: keeping.filter(|shell| lives(shell)).count() as u32, ..last }
            }
            // The variable was set by another program.
            _ => Self::of(time),
        }
    }

    /// Formats a note for the tag, from which [`KillTimeout::inherited`] restores the reserved
    /// parts.
    pub fn note(self) -> String {
        format!(";t={}/{}", self.asked.as_nanos(), self.shells)
    }

    fn parse(note: &str) -> Option<Self> {
        let (asked, shells) = note.strip_prefix("t=")?.split_once('/')?;
        Some(Self {
            asked: Duration::from_nanos(asked.parse().ok()?),
            shells: shells.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn told(seconds: u32, mark: &str, living: &[&str]) -> Duration {
        let lives = |shell: &mark::Entry| living.contains(&shell.run);
        KillTimeout::told(SECOND * seconds, mark.as_bytes(), lives).time()
    }

    #[test]
    fn only_shells_that_live_keep_their_part() {
        let outer = KillTimeout::of(SECOND * 12).inside();
        let (one, two) = (format!("1-a.0{}", outer.note()), outer.inside().note());
        assert_eq!(told(7, &one, &["1-a"]), SECOND * 7);
        assert_eq!(told(7, &one, &[]), SECOND * 12);
        let both = format!("{one},2-b.4;9.5=1.2.3.4{two}");
        assert_eq!(told(2, &both, &["1-a", "2-b"]), SECOND * 2);
        assert_eq!(told(2, &both, &["1-a"]), SECOND * 7);
        assert_eq!(told(2, &both, &[]), SECOND * 12);
    }

    #[test]
    fn what_was_asked_for_further_in_counts_from_there() {
        let mark = format!("1-a.0{},2-b.0{}", KillTimeout::of(SECOND * 30).inside().note(), {
            KillTimeout::of(SECOND * 8).inside().note()
        });
        assert_eq!(told(3, &mark, &["1-a", "2-b"]), SECOND * 3);
        assert_eq!(told(3, &mark, &["1-a"]), SECOND * 8);
        // The value differs from the tag: another program changed the variable.
        assert_eq!(told(4, &mark, &[]), SECOND * 4);
        assert_eq!(told(4, "nonsense", &[]), SECOND * 4);
    }

    #[test]
    fn there_is_never_less_than_nothing() {
        let deep = KillTimeout::of(SECOND * 7).inside().inside().inside();
        assert_eq!(deep.time(), Duration::ZERO);
        assert_eq!(deep.written(), "0");
        assert_eq!(KillTimeout::of(SECOND * 15 / 2).written(), "7.5");
        assert_eq!(told(0, &format!("1-a.0{}", deep.note()), &[]), SECOND * 7);
    }
}
