//! Clock of a run that another process continues.

use std::time::Duration;

use super::started::Started;
use ftsh_machine::Time;

/// Readings of the clocks of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Wall clock, since 1970; users can set the wall clock.
    pub wall: Duration,
    /// Monotonic clock, since the boot of the machine.
    pub since_boot: Duration,
    /// Id of the boot; empty if unknown.
    pub boot: String,
}

impl Clocks {
    /// Returns true if the machine has not rebooted since the start `last`.
    ///
    /// The monotonic clock is then comparable, and no user can have set the monotonic clock.
    pub fn are_those_of(&self, last: &Started) -> bool {
        self.boot == last.boot && !self.boot.is_empty()
    }
}

/// Returns the age of a run.
///
/// The last start of the run was `last`, and the last recorded moment is `latest`.
pub fn elapsed(last: &Started, latest: Time, now: &Clocks) -> Duration {
    let since = if now.are_those_of(last) {
        now.since_boot.saturating_sub(last.since_boot)
    } else {
        now.wall.saturating_sub(last.at)
    };
    last.elapsed.saturating_add(since).max(latest.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Returns a start at an age of 50 seconds, one day after the boot.
    fn last() -> Started {
        Started {
            at: seconds(1000 * DAY),
            since_boot: seconds(DAY),
            boot: "one".into(),
            elapsed: seconds(50),
            pid: 1,
            interpreter: 2,
            mark: String::new(),
            directory: "/".into(),
            umask: 0,
            ignored: Vec::new(),
            user: 0,
            version: String::new(),
        }
    }

    /// Returns the age of the run in seconds, `wall` seconds later by the wall clock and
    /// `since_boot` seconds after the boot.
    fn after(wall: i64, boot: &str, since_boot: u64) -> u64 {
        let wall = seconds((1000 * DAY).saturating_add_signed(wall));
        let now = Clocks { wall, since_boot: seconds(since_boot), boot: boot.into() };
        elapsed(&last(), Time::after(seconds(60)), &now).as_secs()
    }

    #[test]
    fn on_the_same_boot_nobody_can_set_the_clock() {
        assert_eq!(after(100, "one", DAY + 100), 150);
        assert_eq!(after(-1_000_000, "one", DAY + 100), 150);
        assert_eq!(after(1_000_000, "one", DAY + 100), 150);
    }

    #[test]
    fn after_a_reboot_the_wall_clock_decides() {
        assert_eq!(after(7200, "two", 30), 7250);
        assert_eq!(after(7200, "two", 3 * DAY), 7250);
    }

    #[test]
    fn it_never_goes_back() {
        assert_eq!(after(-7200, "two", 30), 60);
        assert_eq!(after(5, "two", 30), 60);
        assert_eq!(after(5, "one", DAY + 5), 60);
        // The monotonic clock cannot go backwards.
        assert_eq!(after(5, "one", DAY - 5), 60);
    }

    #[test]
    fn who_does_not_know_the_boot_goes_by_the_wall_clock() {
        let unknown = Started { boot: String::new(), ..last() };
        let now = Clocks { wall: seconds(1001 * DAY), since_boot: seconds(7), boot: String::new() };
        assert_eq!(elapsed(&unknown, Time::START, &now), seconds(DAY + 50));
    }
}
