//! The decision about another attempt after a failure, and the reason for its absence.
//!
//! A failure carries [`Retry`]: `giveup`, `defer`, half-committed files and atomic targets that
//! cannot be opened set it where they fail. Clauses of the `try` are fields of [`TryProgress`], and
//! answers that arrive later (of a condition, of a channel) are variants of [`Occasion`]. Only
//! [`TryProgress::verdict`] weighs them.

use std::time::Duration;

use crate::attempts::{TryFrame, TryPhase};
use crate::endings::Retry;
use crate::time::Time;

/// State of a `try` that the decision depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TryProgress {
    /// Number of attempts made so far.
    pub made: u64,
    /// Number of attempts that the head allows.
    pub allowed: Option<u64>,
    /// True if attempts fail again and again in a way that time does not mend.
    pub is_futile: bool,
    /// True if the current attempt is the last before the deadline.
    pub is_last: bool,
    /// True if the head has a condition, by `while`.
    pub has_condition: bool,
    /// Time before the deadline.
    pub left: Duration,
}

/// Event that decides about the next attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Occasion {
    /// An attempt failed.
    Failed(Retry),
    /// The condition of `while` failed instead of being true or false.
    ConditionFailed(Retry),
    /// The condition of `while` has this value.
    Condition(bool),
    /// The next attempt begins after this time at the earliest, by `every`.
    Due(Duration),
    /// The channel has no budget for a retry.
    NoBudget,
}

/// A decision about the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Another attempt follows, after a delay.
    Retry,
    /// Another attempt follows if the condition of `while` is true.
    Ask,
    /// The same attempt is made again, at the earliest after this time.
    Defer(Duration),
    /// No attempt follows: the `try` fails.
    Stop(StopReason),
    /// The `try` is left together with the pipeline stage or the script around it.
    Leave,
}

/// The reason why no attempt follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// Attempts in a row failed at one place in a way that time does not mend.
    Futile,
    /// The failure is marked as permanent, as by `giveup`.
    Permanent,
    /// The condition of `while` failed.
    ConditionFailed,
    /// The condition of `while` is false.
    ConditionFalse,
    /// All attempts that `times` allows are made.
    Times,
    /// No attempt fits before the deadline.
    Deadline,
    /// The channel has no budget.
    Budget,
}

impl TryProgress {
    /// Decides about the next attempt.
    pub(crate) fn verdict(self, occasion: Occasion) -> Verdict {
        let stop = match occasion {
            Occasion::Failed(Retry::BrokenPipe) | Occasion::ConditionFailed(Retry::BrokenPipe) => {
                return Verdict::Leave;
            }
            // A deferred attempt does not count. A later attempt can be the last again.
            Occasion::Failed(Retry::Deferred(by)) if by < self.left => return Verdict::Defer(by),
            Occasion::Failed(Retry::Deferred(_)) => Some(StopReason::Deadline),
            Occasion::Failed(retry) => self.stop_after_failure(retry),
            Occasion::ConditionFailed(_) => Some(StopReason::ConditionFailed),
            Occasion::Condition(true) => None,
            Occasion::Condition(false) => Some(StopReason::ConditionFalse),
            Occasion::Due(wait) => (wait >= self.left).then_some(StopReason::Deadline),
            Occasion::NoBudget => Some(StopReason::Budget),
        };
        match stop {
            Some(reason) => Verdict::Stop(reason),
            None if self.has_condition && matches!(occasion, Occasion::Failed(_)) => Verdict::Ask,
            None => Verdict::Retry,
        }
    }

    fn stop_after_failure(self, retry: Retry) -> Option<StopReason> {
        if self.is_last || self.left.is_zero() {
            Some(StopReason::Deadline)
        } else if retry == Retry::Never {
            Some(StopReason::Permanent)
        } else if self.allowed.is_some_and(|allowed| self.made >= allowed) {
            Some(StopReason::Times)
        } else if self.is_futile && !self.has_condition {
            // A script with a condition decides itself.
            Some(StopReason::Futile)
        } else {
            None
        }
    }
}

impl TryFrame {
    /// Returns the state that the decision about the next attempt depends on.
    pub(crate) fn attempts(&self, now: Time) -> TryProgress {
        TryProgress {
            made: self.attempt,
            allowed: self.clauses.attempts(),
            is_futile: self.futile.are_enough(),
            is_last: self.last,
            has_condition: self.code.condition.is_some(),
            left: self.deadline.remaining(now).unwrap_or(Duration::MAX),
        }
    }

    /// Decides about the next attempt after a failure in this `try`.
    pub(crate) fn verdict(&self, now: Time, retry: Retry) -> Verdict {
        let occasion = match self.phase {
            TryPhase::Condition => Occasion::ConditionFailed(retry),
            TryPhase::Entering | TryPhase::Attempt | TryPhase::Delay => Occasion::Failed(retry),
        };
        self.attempts(now).verdict(occasion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the second of three attempts, ten seconds before the deadline.
    const SECOND_OF_THREE: TryProgress = TryProgress {
        made: 2,
        allowed: Some(3),
        is_futile: false,
        is_last: false,
        has_condition: false,
        left: Duration::from_secs(10),
    };

    const FAILED: Occasion = Occasion::Failed(Retry::AsUsual);

    fn stop(reason: StopReason) -> Verdict {
        Verdict::Stop(reason)
    }

    #[test]
    fn an_ordinary_failure_is_retried() {
        assert_eq!(SECOND_OF_THREE.verdict(FAILED), Verdict::Retry);
        let unlimited = TryProgress { allowed: None, made: u64::MAX, ..SECOND_OF_THREE };
        assert_eq!(unlimited.verdict(FAILED), Verdict::Retry);
    }

    #[test]
    fn times_deadline_and_permanent_failures_stop() {
        let third = TryProgress { made: 3, ..SECOND_OF_THREE };
        assert_eq!(third.verdict(FAILED), stop(StopReason::Times));
        let permanent = Occasion::Failed(Retry::Never);
        assert_eq!(SECOND_OF_THREE.verdict(permanent), stop(StopReason::Permanent));
        let last = TryProgress { is_last: true, ..SECOND_OF_THREE };
        assert_eq!(last.verdict(FAILED), stop(StopReason::Deadline));
        let late = TryProgress { left: Duration::ZERO, ..SECOND_OF_THREE };
        assert_eq!(late.verdict(FAILED), stop(StopReason::Deadline));
        assert_eq!(SECOND_OF_THREE.verdict(Occasion::NoBudget), stop(StopReason::Budget));
    }

    #[test]
    fn a_failure_that_time_does_not_mend_stops_unless_a_condition_decides() {
        let futile = TryProgress { is_futile: true, ..SECOND_OF_THREE };
        assert_eq!(futile.verdict(FAILED), stop(StopReason::Futile));
        assert_eq!(TryProgress { made: 3, ..futile }.verdict(FAILED), stop(StopReason::Times));
        assert_eq!(TryProgress { has_condition: true, ..futile }.verdict(FAILED), Verdict::Ask);
    }

    #[test]
    fn a_condition_is_evaluated_only_if_another_attempt_is_possible() {
        let asking = TryProgress { has_condition: true, ..SECOND_OF_THREE };
        assert_eq!(asking.verdict(FAILED), Verdict::Ask);
        assert_eq!(asking.verdict(Occasion::Condition(true)), Verdict::Retry);
        assert_eq!(asking.verdict(Occasion::Condition(false)), stop(StopReason::ConditionFalse));
        for retry in [Retry::AsUsual, Retry::Never, Retry::Deferred(SECOND)] {
            let occasion = Occasion::ConditionFailed(retry);
            assert_eq!(asking.verdict(occasion), stop(StopReason::ConditionFailed), "{retry:?}");
        }
        assert_eq!(TryProgress { made: 3, ..asking }.verdict(FAILED), stop(StopReason::Times));
        assert_eq!(asking.verdict(Occasion::Failed(Retry::Never)), stop(StopReason::Permanent));
    }

    #[test]
    fn a_deferral_depends_on_nothing_but_the_deadline() {
        let deferred = |by| Occasion::Failed(Retry::Deferred(by));
        let last = TryProgress { made: 3, is_last: true, has_condition: true, ..SECOND_OF_THREE };
        assert_eq!(last.verdict(deferred(9 * SECOND)), Verdict::Defer(9 * SECOND));
        assert_eq!(last.verdict(deferred(10 * SECOND)), stop(StopReason::Deadline));
    }

    #[test]
    fn every_needs_an_attempt_to_begin_before_the_deadline() {
        assert_eq!(SECOND_OF_THREE.verdict(Occasion::Due(9 * SECOND)), Verdict::Retry);
        assert_eq!(SECOND_OF_THREE.verdict(Occasion::Due(10 * SECOND)), stop(StopReason::Deadline));
        let late = TryProgress { left: Duration::ZERO, ..SECOND_OF_THREE };
        assert_eq!(late.verdict(Occasion::Due(Duration::ZERO)), stop(StopReason::Deadline));
    }

    #[test]
    fn a_broken_pipe_leaves_the_try() {
        let done = TryProgress { made: 3, is_last: true, left: Duration::ZERO, ..SECOND_OF_THREE };
        for occasion in
            [Occasion::Failed(Retry::BrokenPipe), Occasion::ConditionFailed(Retry::BrokenPipe)]
        {
            assert_eq!(done.verdict(occasion), Verdict::Leave);
        }
    }
}
