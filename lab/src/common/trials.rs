//! Parallel trials, with results independent of the number of threads.

use rand::SeedableRng;
use rayon::prelude::*;

use super::TrialProgress;

/// Random numbers of simulations: fast, small, and not for secrets.
pub type Random = rand_pcg::Pcg64Mcg;

/// Returns random numbers of a run's `seed` for one `place`, independent of other places.
pub fn random(seed: u64, place: &[u64]) -> Random {
    // SplitMix64 over the words: Steele, Lea, Flood, *Fast splittable pseudorandom number
    // generators*, 2014.
    let mix = |state: u64| {
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let golden = 0x9e37_79b9_7f4a_7c15_u64;
    let state = place.iter().fold(mix(seed.wrapping_add(golden)), |state, word| {
        mix(state.wrapping_add(golden) ^ mix(word.wrapping_add(golden)))
    });
    Random::seed_from_u64(state)
}

/// Does `work` for each of `cases` in parallel and returns the results in order. Random numbers
/// come from [`random`] with the number of the case as the place.
pub fn trials<C: Sync, T: Send>(
    cases: &[C],
    progress: &TrialProgress,
    work: impl Fn(&C) -> T + Sync,
) -> Vec<T> {
    cases
        .par_iter()
        .map(|case| {
            let result = work(case);
            progress.step();
            result
        })
        .collect()
}
