//! Seeded random choices.

use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns a generator that is independent of later choices of this one.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.0.random())
    }

    pub(crate) fn seed(&mut self) -> u64 {
        self.0.random()
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.0.random::<f64>() < probability
    }

    /// Returns a number from `low` to `high`, both included.
    pub(crate) fn number(&mut self, low: usize, high: usize) -> usize {
        self.0.random_range(low..=high)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.0.random_range(0..from.len())]
    }

    /// Returns one of several weighted items.
    pub(crate) fn weighted<'a, T>(&mut self, from: &'a [(u32, T)]) -> &'a T {
        let all: u32 = from.iter().map(|(weight, _)| weight).sum();
        let mut point = self.0.random_range(0..all);
        let found = from.iter().find(|(weight, _)| match point.checked_sub(*weight) {
            Some(rest) => {
                point = rest;
                false
            }
            None => true,
        });
        found.map(|(_, item)| item).expect("a weight above 0")
    }

    /// Returns a length of time up to `most`, distributed evenly over orders of magnitude.
    pub(crate) fn time(&mut self, most: Duration) -> Duration {
        let scale = *self.pick(&[0.001, 0.03, 0.3, 1.0]);
        Duration::from_millis((most.as_millis() as f64 * scale * self.0.random::<f64>()) as u64)
    }
}
