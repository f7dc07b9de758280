//! The least and the most that delays can be.

use std::time::Duration;

use super::delay::{MOST_SLOTS, duration, nanos};
use super::{Kind, Policy};

/// Bounds of one delay and of the moment it ends, if attempts take no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The shortest that the delay can be.
    pub least: Duration,
    /// The longest that it can be; [`Duration::MAX`] if nothing bounds it.
    pub most: Duration,
    /// The earliest that it can end, after the first failure.
    pub earliest: Duration,
    /// The latest that it can end, after the first failure.
    pub latest: Duration,
}

/// The bounds of one delay after the other, for ever.
pub struct Bounds<'p> {
    policy: &'p Policy,
    /// How many were given.
    count: u32,
    /// T·Fⁿ, or what takes its place: slots, the window, the longest delay before.
    scale: f64,
    earliest: Duration,
    latest: Duration,
    /// When the window before ends, in nanoseconds after the first failure, and its length.
    window: (f64, f64),
}

impl Policy {
    /// What each delay can be.
    pub fn bounds(&self) -> Bounds<'_> {
        Bounds {
            policy: self,
            count: 0,
            scale: match self.kind {
                Kind::Slotted => 2.0,
                Kind::Windowed => nanos(self.from).max(1.0).min(self.longest_window()),
                Kind::Ethernet
                | Kind::Exponential
                | Kind::Full
                | Kind::Equal
                | Kind::Decorrelated
                | Kind::Normal
                | Kind::Proportional
                | Kind::Fixed
                | Kind::None => nanos(self.from).min(nanos(self.to)),
            },
            earliest: Duration::ZERO,
            latest: Duration::ZERO,
            window: (0.0, 0.0),
        }
    }

    /// The shortest that the first delay can be.
    pub fn least_first_delay(&self) -> Duration {
        self.bounds().next().map_or(Duration::ZERO, |bound| bound.least)
    }
}

impl Bounds<'_> {
    /// The bounds of the next delay in nanoseconds. The formulas are those of [`Kind`].
    fn advance(&mut self) -> (f64, f64) {
        let policy = self.policy;
        let (from, to) = (nanos(policy.from), nanos(policy.to));
        let value = self.scale;
        let (factor, longest) = match policy.kind {
            Kind::Decorrelated => (3.0, to),
            Kind::Slotted => (2.0, MOST_SLOTS),
            Kind::Windowed => (2.0, policy.longest_window()),
            Kind::Ethernet
            | Kind::Exponential
            | Kind::Full
            | Kind::Equal
            | Kind::Normal
            | Kind::Proportional
            | Kind::Fixed
            | Kind::None => (policy.by, to),
        };
        self.scale = (value * factor).min(longest);
        match policy.kind {
            Kind::Ethernet => (value, 2.0 * value),
            Kind::Exponential => (value, value),
            Kind::Full => (0.0, value),
            Kind::Equal => (value / 2.0, value),
            Kind::Decorrelated => (from, self.scale),
            // The first has no noise.
            Kind::Normal if self.count == 0 || policy.jitter == 0.0 => (value, value),
            Kind::Normal => (0.0, f64::INFINITY),
            Kind::Proportional => (value * (1.0 - policy.jitter), value * (1.0 + policy.jitter)),
            Kind::Slotted => (0.0, from * (value - 1.0)),
            Kind::Windowed => (0.0, self.window.1 + value),
            Kind::Fixed => (from, from),
            Kind::None => (0.0, 0.0),
        }
    }
}

impl Iterator for Bounds<'_> {
    type Item = Bound;

    fn next(&mut self) -> Option<Bound> {
        let length = self.scale;
        let (least, most) = self.advance();
        // Noise comes on top of the cap.
        let longest = match self.policy.kind {
            Kind::Normal | Kind::Proportional | Kind::Fixed => Duration::MAX,
            Kind::Ethernet
            | Kind::Exponential
            | Kind::Full
            | Kind::Equal
            | Kind::Decorrelated
            | Kind::Slotted
            | Kind::Windowed
            | Kind::None => self.policy.to,
        };
        let (least, most) = (duration(least).min(longest), duration(most).min(longest));
        if self.policy.kind == Kind::Windowed {
            let (start, _) = self.window;
            self.window = (start + length, length);
            (self.earliest, self.latest) = (duration(start), duration(start + length));
        } else {
            self.earliest = self.earliest.saturating_add(least);
            self.latest = self.latest.saturating_add(most);
        }
        self.count = self.count.saturating_add(1);
        Some(Bound { least, most, earliest: self.earliest, latest: self.latest })
    }
}
