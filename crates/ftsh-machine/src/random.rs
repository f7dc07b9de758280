//! Random choices, reproducible by the seed.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// First random stream of remote branches. The run uses a stream, and a delay before its beginning
/// another one.
const FIRST_STREAM: u64 = 2;

/// Random generator, created when first needed. Most runs need none.
#[derive(Debug)]
pub(crate) struct Random {
    seed: u64,
    rng: Option<ChaCha8Rng>,
}

impl Random {
    /// Creates the source of a run's random choices.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, rng: None }
    }

    /// Returns the generator.
    pub(crate) fn rng(&mut self) -> &mut ChaCha8Rng {
        self.rng.get_or_insert_with(|| ChaCha8Rng::seed_from_u64(self.seed))
    }

    /// Returns an integer between two bounds, inclusive.
    pub(crate) fn draw(&mut self, from: i64, to: i64) -> i64 {
        self.rng().random_range(from..=to)
    }

    /// Returns true if a random choice has been made.
    pub(crate) fn has_drawn(&self) -> bool {
        self.rng.is_some()
    }

    /// Returns the seed for a branch on another machine.
    pub(crate) fn seed_of_branch(&self, branch: u64) -> u64 {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(FIRST_STREAM + branch);
        random.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let choices = |seed| {
            let mut random = Random::new(seed);
            assert!(!random.has_drawn());
            let choices = [(); 8].map(|()| random.draw(1, 1000));
            assert!(random.has_drawn());
            choices
        };
        assert_eq!(choices(3), choices(3));
        assert_ne!(choices(3), choices(4));
    }

    #[test]
    fn branches_have_seeds_of_their_own_which_draw_nothing() {
        let random = Random::new(3);
        assert_eq!(random.seed_of_branch(1), Random::new(3).seed_of_branch(1));
        assert_ne!(random.seed_of_branch(1), random.seed_of_branch(2));
        assert!(!random.has_drawn());
    }
}
