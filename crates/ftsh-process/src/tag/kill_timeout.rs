//! Kill timeout of nested shells.
//!
//! An inner shell must finish before an outer shell kills the inner one. Each living shell
//! therefore reserves a part of the kill timeout for itself. Shells that have ended reserve
//! nothing: otherwise the timeout would shrink to zero where each shell leaves another one running.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use super::scope_tag::{ScopeTag, TagEntry, entries, lives};

/// Time that each shell reserves: its own kill timeout is longer by this than that of the shells
/// inside.
const MARGIN: Duration = Duration::from_secs(5);

/// Requested time from SIGTERM to SIGKILL, minus the parts reserved by shells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillTimeout {
    requested: Duration,
    /// Number of shells that reserve a part.
    reserving: u32,
}

impl KillTimeout {
    /// Creates a kill timeout of which no shell reserves a part.
    pub fn of(requested: Duration) -> Self {
        Self { requested, reserving: 0 }
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
        self.requested.saturating_sub(MARGIN * self.reserving)
    }

    /// Returns the kill timeout of shells started by this shell.
    #[must_use]
    pub fn inside(self) -> Self {
        Self { reserving: self.reserving + 1, ..self }
    }

    /// Returns the kill timeout of this process, given the value of its environment variable. The
    /// result is longer than the value if shells around this process that reserved a part have
    /// ended.
    pub fn inherited(time: Duration) -> Self {
        let tag = std::env::var_os(ScopeTag::VARIABLE).unwrap_or_default();
        Self::from_tag(time, tag.as_bytes(), lives)
    }

    fn from_tag(time: Duration, tag: &[u8], lives: impl Fn(&TagEntry) -> bool) -> Self {
        let shells: Vec<TagEntry> = entries(tag).collect();
        let last = shells.last().and_then(|shell| shell.notes.split(';').find_map(Self::parse));
        match last {
            Some(last) if last.time() == time => {
                let keeping = shells.iter().rev().take(last.reserving as usize);
                Self { reserving: keeping.filter(|shell| lives(shell)).count() as u32, ..last }
            }
            // The variable was set by another program.
            _ => Self::of(time),
        }
    }

    /// Formats a note for the tag, from which [`KillTimeout::inherited`] restores the reserved
    /// parts.
    pub fn note(self) -> String {
        format!(";t={}/{}", self.requested.as_nanos(), self.reserving)
    }

    fn parse(note: &str) -> Option<Self> {
        let (requested, reserving) = note.strip_prefix("t=")?.split_once('/')?;
        Some(Self {
            requested: Duration::from_nanos(requested.parse().ok()?),
            reserving: reserving.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn remaining(seconds: u32, tag: &str, living: &[&str]) -> Duration {
        let lives = |shell: &TagEntry| living.contains(&shell.run);
        KillTimeout::from_tag(SECOND * seconds, tag.as_bytes(), lives).time()
    }

    #[test]
    fn only_living_shells_reserve_a_part() {
        let outer = KillTimeout::of(SECOND * 12).inside();
        let (one, two) = (format!("1-a.0{}", outer.note()), outer.inside().note());
        assert_eq!(remaining(7, &one, &["1-a"]), SECOND * 7);
        assert_eq!(remaining(7, &one, &[]), SECOND * 12);
        let both = format!("{one},2-b.4;9.5=1.2.3.4{two}");
        assert_eq!(remaining(2, &both, &["1-a", "2-b"]), SECOND * 2);
        assert_eq!(remaining(2, &both, &["1-a"]), SECOND * 7);
        assert_eq!(remaining(2, &both, &[]), SECOND * 12);
    }

    #[test]
    fn an_inner_timeout_replaces_the_outer_one() {
        let tag = format!("1-a.0{},2-b.0{}", KillTimeout::of(SECOND * 30).inside().note(), {
            KillTimeout::of(SECOND * 8).inside().note()
        });
        assert_eq!(remaining(3, &tag, &["1-a", "2-b"]), SECOND * 3);
        assert_eq!(remaining(3, &tag, &["1-a"]), SECOND * 8);
        // The value differs from the tag: another program changed the variable.
        assert_eq!(remaining(4, &tag, &[]), SECOND * 4);
        assert_eq!(remaining(4, "nonsense", &[]), SECOND * 4);
    }

    #[test]
    fn the_time_is_never_negative() {
        let deep = KillTimeout::of(SECOND * 7).inside().inside().inside();
        assert_eq!(deep.time(), Duration::ZERO);
        assert_eq!(deep.written(), "0");
        assert_eq!(KillTimeout::of(SECOND * 15 / 2).written(), "7.5");
        assert_eq!(remaining(0, &format!("1-a.0{}", deep.note()), &[]), SECOND * 7);
    }
}
