//! Form of a time limit in the environment: `SECONDS@BOOT:SECONDS`.
//!
//! The first number is the time since 1970, for other programs and for other machines. The second
//! number is the time on the clock of limits since the boot with this id. Only that clock is
//! immune to changes of the wall clock. The clock does not count the time in which the machine is
//! suspended, as in the shell's own limits.

use std::cell::OnceCell;
use std::sync::OnceLock;
use std::time::Duration;

use bstr::BString;
use nix::time::ClockId;

use crate::clock::{RunClock, boot_id, since_1970};
use ftsh_machine::time::Time;
use ftsh_syntax::duration::Unit;

/// Clocks that a time limit is passed on by.
#[derive(Clone, Debug)]
pub struct LimitClocks {
    /// Time since 1970.
    pub since_1970: Duration,
    /// Time since boot, without suspend.
    pub since_boot: Duration,
    /// Id of the boot; empty if unknown.
    pub boot: String,
}

impl LimitClocks {
    /// Reads the clocks.
    pub fn now() -> Self {
        static BOOT: OnceLock<String> = OnceLock::new();
        let boot = BOOT.get_or_init(|| boot_id().unwrap_or_default()).clone();
        let monotonic = ClockId::CLOCK_MONOTONIC.now().map(Duration::from);
        Self { since_1970: since_1970(), since_boot: monotonic.unwrap_or_default(), boot }
    }

    /// Returns the text of a limit that passes after `left`.
    pub(crate) fn passed_on(&self, left: Duration) -> BString {
        let seconds = |it: Duration| format!("{}.{:06}", it.as_secs(), it.subsec_micros());
        let wall = seconds(self.since_1970.saturating_add(left));
        if self.boot.is_empty() {
            return wall.into();
        }
        format!("{wall}@{}:{}", self.boot, seconds(self.since_boot.saturating_add(left))).into()
    }
}

/// Texts of the limits of a run. The same limit always has the same text.
#[derive(Default)]
pub(crate) struct LimitTexts(OnceCell<LimitClocks>);

impl LimitTexts {
    /// Returns the text of a limit at a time of the run.
    pub(crate) fn of(&self, moment: Time, clock: &RunClock) -> BString {
        let at_start = self.0.get_or_init(|| at_start(clock));
        at_start.passed_on(clock.since_start(moment))
    }
}

/// Returns what the clocks showed at the start of this process's part of the run, or slightly more.
fn at_start(clock: &RunClock) -> LimitClocks {
    // The order matters: an earlier limit would end nested shells before this one cancels them.
    let elapsed = clock.start.elapsed();
    let now = LimitClocks::now();
    LimitClocks {
        since_1970: now.since_1970.saturating_sub(elapsed),
        since_boot: now.since_boot.saturating_sub(elapsed),
        ..now
    }
}

/// Time limit from the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedDeadline {
    since_1970: Duration,
    /// Boot, and time since the boot.
    since_boot: Option<(String, Duration)>,
}

impl PassedDeadline {
    /// Parses a limit: a number of seconds since 1970, alone or with the time since a boot.
    pub fn parse(text: &str) -> Option<Self> {
        let seconds = |text: &str| Unit::Seconds.times(text);
        let Some((wall, rest)) = text.split_once('@') else {
            return Some(Self { since_1970: seconds(text)?, since_boot: None });
        };
        let (boot, since_boot) = rest.split_once(':')?;
        let since_boot = Some((boot.to_owned(), seconds(since_boot)?));
        Some(Self { since_1970: seconds(wall)?, since_boot })
    }

    /// Returns the time left; zero if the limit has passed. The wall clock counts only for limits
    /// from another boot, or without one.
    pub fn left(&self, clocks: &LimitClocks) -> Duration {
        match &self.since_boot {
            Some((boot, moment)) if *boot == clocks.boot => {
                moment.saturating_sub(clocks.since_boot)
            }
            _ => self.since_1970.saturating_sub(clocks.since_1970),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(since_1970: u64, since_boot: u64, boot: &str) -> LimitClocks {
        let [since_1970, since_boot] = [since_1970, since_boot].map(Duration::from_secs);
        LimitClocks { since_1970, since_boot, boot: boot.into() }
    }

    fn left(text: &str, clocks: &LimitClocks) -> Option<u64> {
        PassedDeadline::parse(text).map(|it| it.left(clocks).as_secs())
    }

    #[test]
    fn a_limit_is_never_passed_on_as_an_earlier_one() {
        for _ in 0..1000 {
            let before = LimitClocks::now();
            let at_start = at_start(&RunClock::start(Duration::ZERO));
            assert!(at_start.since_boot >= before.since_boot, "{before:?}, {at_start:?}");
        }
    }

    #[test]
    fn a_limit_survives_steps_of_the_wall_clock() {
        let text = clocks(1000, 50, "b-1").passed_on(Duration::from_millis(60_500)).to_string();
        assert_eq!(text, "1060.500000@b-1:110.500000");
        for wall in [0, 1000, 9000] {
            assert_eq!(left(&text, &clocks(wall, 60, "b-1")), Some(50), "{wall}");
            assert_eq!(left(&text, &clocks(wall, 111, "b-1")), Some(0), "{wall}");
        }
    }

    #[test]
    fn a_limit_of_another_boot_is_one_of_the_wall_clock() {
        let text = clocks(1000, 50, "b-1").passed_on(Duration::from_secs(60)).to_string();
        for boot in ["b-2", ""] {
            assert_eq!(left(&text, &clocks(1010, 9, boot)), Some(50), "{boot}");
            assert_eq!(left(&text, &clocks(1010, 900, boot)), Some(50), "{boot}");
        }
        assert_eq!(clocks(1000, 50, "").passed_on(Duration::from_secs(1)), "1001.000000");
    }

    #[test]
    fn a_number_alone_is_a_time_since_1970() {
        assert_eq!(left("1060.5", &clocks(1000, 5000, "b-1")), Some(60));
        for text in ["", "x", "1@", "1@b", "1@b:", "1@b:x", "x@b:1", "@b:1", "-1"] {
            assert_eq!(PassedDeadline::parse(text), None, "{text}");
        }
    }
}
