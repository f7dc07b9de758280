//! Clocks that run at different rates.

use std::time::Duration;

use ftsh_machine::Time;

/// Clock that shows the time since the start of the world, at its own rate.
#[derive(Clone, Copy, Debug)]
pub struct NodeClock {
    counts: u32,
    meanwhile: u32,
}

impl NodeClock {
    /// Exact clock.
    pub const RIGHT: Self = Self { counts: 1, meanwhile: 1 };

    /// Creates a clock that advances by `counts` seconds in `meanwhile` seconds. A zero counts as
    /// 1.
    pub fn new(counts: u32, meanwhile: u32) -> Self {
        Self { counts: counts.max(1), meanwhile: meanwhile.max(1) }
    }

    /// Returns the time that the clock shows.
    pub fn shows(self, at: Time) -> Duration {
        let nanos = at.elapsed().as_nanos() * u128::from(self.counts) / u128::from(self.meanwhile);
        duration(nanos)
    }

    /// Returns the first moment at which the clock shows a time.
    pub fn moment(self, shown: Duration) -> Time {
        let nanos = shown.as_nanos() * u128::from(self.meanwhile);
        Time::after(duration(nanos.div_ceil(u128::from(self.counts))))
    }
}

fn duration(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    match u64::try_from(nanos / SECOND) {
        Ok(seconds) => Duration::new(seconds, (nanos % SECOND) as u32),
        Err(_) => Duration::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_shown_at_its_moment_and_not_before() {
        for clock in
            [NodeClock::RIGHT, NodeClock::new(12, 13), NodeClock::new(13, 12), NodeClock::new(7, 3)]
        {
            for nanos in [0, 1, 2, 3, 999, 1_000_000_007, 86_400_000_000_001] {
                let shown = Duration::from_nanos(nanos);
                let moment = clock.moment(shown);
                assert!(clock.shows(moment) >= shown, "{clock:?} {nanos}");
                let before = moment.elapsed().checked_sub(Duration::from_nanos(1));
                let before = before.map(|before| clock.shows(Time::after(before)));
                assert!(before.is_none_or(|before| before < shown), "{clock:?} {nanos}");
            }
        }
        assert_eq!(NodeClock::new(12, 13).moment(Duration::MAX), Time::NEVER);
    }
}
