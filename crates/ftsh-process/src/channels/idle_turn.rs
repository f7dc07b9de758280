//! Detection of a turn that no waiter takes: a frozen shell cannot leave the queue.

use std::time::{Duration, Instant};

/// Time that each waiter has to take its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(1);
/// Earlier waiters beyond this number do not prolong the wait.
pub(super) const MAX_COUNTED: u64 = 10;

/// Turn of an earlier waiter, seen to be left unused.
#[derive(Debug, Default)]
pub(super) struct IdleTurn(Option<Observed>);

#[derive(Clone, Copy, Debug)]
struct Observed {
    /// Number of the waiter whose turn it is.
    head: u64,
    since: Instant,
    last: Instant,
}

impl IdleTurn {
    /// Records that the waiter `head` could go through at `now`. Returns true once each of the `earlier`
    /// waiters has had time to do so.
    pub(super) fn is_over(&mut self, head: u64, earlier: u64, now: Instant) -> bool {
        // A long gap between checks means that this shell was stopped too, perhaps with the others.
        let is_same = |seen: &Observed| seen.head == head && now - seen.last <= 2 * TURN_TIMEOUT;
        let since = self.0.filter(is_same).map_or(now, |seen| seen.since);
        self.0 = Some(Observed { head, since, last: now });
        now - since >= TURN_TIMEOUT.saturating_mul(earlier.try_into().unwrap_or(u32::MAX))
    }

    /// Records that no turn is unused.
    pub(super) fn reset(&mut self) {
        self.0 = None;
    }

    /// Returns the time until the next check. Checks are rare while no turn is unused, because each costs
    /// time.
    pub(super) fn next_check(&self, earlier: u64) -> Duration {
        match self.0 {
            Some(_) => TURN_TIMEOUT,
            None => TURN_TIMEOUT * earlier.clamp(1, MAX_COUNTED) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_earlier_waiter_has_a_second() {
        let begun = Instant::now();
        let at = |tenths: u64| begun + Duration::from_millis(100 * tenths);
        let mut turn = IdleTurn::default();
        let mut is_over = |head, earlier, tenths| turn.is_over(head, earlier, at(tenths));
        assert!(!is_over(1, 1, 0) && !is_over(1, 1, 9) && is_over(1, 1, 10));
        assert!(!is_over(1, 2, 19) && is_over(1, 2, 20), "the second may take it first");
        assert!(!is_over(2, 1, 25) && !is_over(2, 1, 34) && is_over(2, 1, 35), "another turn");
        assert!(!is_over(2, 1, 60) && is_over(2, 1, 70), "this shell was stopped itself");
        turn.reset();
        assert!(!turn.is_over(2, 1, at(80)));
    }

    #[test]
    fn checks_are_rare_while_no_turn_is_unused() {
        let mut turn = IdleTurn::default();
        let checks = [0, 1, 3, 500].map(|earlier| turn.next_check(earlier).as_secs());
        assert_eq!(checks, [1, 1, 3, MAX_COUNTED]);
        turn.is_over(1, 500, Instant::now());
        assert_eq!(turn.next_check(500), TURN_TIMEOUT);
    }
}
