//! Estimate of a limit from the durations of earlier attempts.
//!
//! The limit of an attempt is a multiple of the 95th percentile of the last durations: 3 times the
//! percentile, since 2 times would cut 1.3 % of good attempts of a lognormal duration with σ = 1.2.
//! A percentile of few durations is uncertain, so the factor begins at 4.
//!
//! An attempt that the limit cut short is a sample as well, of twice its length: the limit may have
//! been too short. Hangs are cut short too, and 10 % of hangs would make up the whole percentile.
//! Therefore at most 1 % of the samples of the percentile are of such attempts. Work that became
//! slower shows in the newest samples: if several of them exceed the percentile, the longest of them
//! takes its place.

use std::time::Duration;

/// Number of samples kept for each limit.
pub const MAX_SAMPLES: usize = 200;

/// Number of successful attempts before a limit is estimated.
pub const MIN_SUCCESSES: usize = 10;

/// Number of successful attempts after which the factor is smallest.
const MANY_SUCCESSES: usize = 50;

/// Shortest limit of an attempt.
const SHORTEST: Duration = Duration::from_secs(1);

/// Number of samples for each sample of an attempt cut short that counts in the percentile.
const SAMPLES_PER_CUT: usize = 100;

/// Number of the newest samples in which slower work shows.
const NEWEST: usize = 16;

/// Number of newest samples above the percentile that show slower work.
const MIN_SLOWER: usize = 2;

/// Duration of an attempt, or twice the limit that cut an attempt short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Length of the sample.
    pub length: Duration,
    /// Origin of the sample.
    pub kind: SampleKind,
}

/// Origin of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
    /// A successful attempt.
    Success,
    /// An attempt cut short, after which a longer attempt succeeded or none did.
    Cut,
    /// An attempt cut short, after which a shorter attempt succeeded: probably a hang.
    Hang,
}

/// Returns the limit of an attempt: at most `most`, which holds until there are enough samples.
pub fn usual_limit(samples: &[Sample], most: Duration) -> Duration {
    let Some(percentile) = recent_percentile(samples) else { return most };
    let successes = successes(samples).clamp(MIN_SUCCESSES, MANY_SUCCESSES);
    let few = (MANY_SUCCESSES - successes) as f64 / (MANY_SUCCESSES - MIN_SUCCESSES) as f64;
    let limit = Duration::try_from_secs_f64(percentile.as_secs_f64() * (3.0 + few));
    limit.unwrap_or(most).max(SHORTEST).min(most)
}

/// Returns the delay of a hedge: at most `most`, which holds until there are enough samples.
pub fn usual_delay(samples: &[Sample], most: Duration) -> Duration {
    recent_percentile(samples).map_or(most, |delay| delay.max(Duration::from_nanos(1)).min(most))
}

/// Returns the number of successful attempts among samples.
pub fn successes(samples: &[Sample]) -> usize {
    samples.iter().filter(|sample| sample.kind == SampleKind::Success).count()
}

/// Returns the median of the successful attempts among samples.
pub fn median(samples: &[Sample]) -> Option<Duration> {
    let successes = samples.iter().filter(|sample| sample.kind == SampleKind::Success);
    quantile(successes.map(|sample| sample.length).collect(), 50)
}

/// Returns the 95th percentile of samples, with at most 1 % of attempts cut short.
pub fn percentile(samples: &[Sample]) -> Option<Duration> {
    let mut cuts = samples.len() / SAMPLES_PER_CUT;
    let counts = |sample: &&Sample| match sample.kind {
        SampleKind::Success => true,
        SampleKind::Cut | SampleKind::Hang => {
            let counts = cuts > 0;
            cuts = cuts.saturating_sub(1);
            counts
        }
    };
    quantile(samples.iter().rev().filter(counts).map(|sample| sample.length).collect(), 95)
}

/// Returns the percentile, or the longest of the newest samples if the work became slower; `None`
/// without enough samples.
fn recent_percentile(samples: &[Sample]) -> Option<Duration> {
    if successes(samples) < MIN_SUCCESSES {
        return None;
    }
    let percentile = percentile(samples)?;
    let newest = samples.iter().rev().filter(|sample| sample.kind != SampleKind::Hang);
    let newest = newest.take(NEWEST).map(|sample| sample.length);
    let slower = newest.filter(|length| *length > percentile).collect::<Vec<_>>();
    let longest = slower.iter().max().copied().filter(|_| slower.len() >= MIN_SLOWER);
    Some(longest.unwrap_or(percentile))
}

/// Returns the smallest length that this percentage of the lengths does not exceed.
fn quantile(mut lengths: Vec<Duration>, percent: usize) -> Option<Duration> {
    let rank = (lengths.len() * percent).div_ceil(100).checked_sub(1)?;
    lengths.sort_unstable();
    lengths.get(rank).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(10_000);

    fn sample(kind: SampleKind, seconds: u64) -> Sample {
        Sample { length: Duration::from_secs(seconds), kind }
    }

    fn successes_of(seconds: impl IntoIterator<Item = u64>) -> Vec<Sample> {
        seconds.into_iter().map(|it| sample(SampleKind::Success, it)).collect()
    }

    fn seconds(limit: Duration) -> u64 {
        limit.as_secs()
    }

    #[test]
    fn the_bound_holds_until_there_are_ten_successes() {
        let nine = successes_of([10; 9]);
        assert_eq!(usual_limit(&nine, MOST), MOST);
        let mut cut = nine.clone();
        cut.extend([sample(SampleKind::Cut, 10); 20]);
        assert_eq!(usual_limit(&cut, MOST), MOST);
        assert_eq!(usual_delay(&nine, MOST), MOST);
        assert_eq!(seconds(usual_limit(&successes_of([10; 10]), MOST)), 40);
        assert_eq!(seconds(usual_delay(&successes_of([10; 10]), MOST)), 10);
    }

    #[test]
    fn the_factor_falls_from_four_to_three() {
        let limits = [10, 30, 50, 200].map(|count| {
            let samples = successes_of(std::iter::repeat_n(100, count));
            seconds(usual_limit(&samples, MOST))
        });
        assert_eq!(limits, [400, 350, 300, 300]);
    }

    #[test]
    fn the_percentile_has_a_twentieth_of_the_samples_above_it() {
        let samples = successes_of((1..=200).rev());
        assert_eq!(percentile(&samples), Some(Duration::from_secs(190)));
        assert_eq!(median(&samples), Some(Duration::from_secs(100)));
        assert_eq!(seconds(usual_limit(&samples, MOST)), 570);
        assert_eq!((percentile(&[]), median(&[])), (None, None));
    }

    #[test]
    fn a_limit_is_at_least_a_second_and_at_most_the_bound() {
        let short = [Sample { length: Duration::from_millis(3), kind: SampleKind::Success }; 50];
        assert_eq!(usual_limit(&short, MOST), SHORTEST);
        assert_eq!(usual_limit(&short, SHORTEST / 2), SHORTEST / 2);
        assert_eq!(usual_delay(&short, MOST), Duration::from_millis(3));
        let long = successes_of([20_000; 50]);
        assert_eq!((usual_limit(&long, MOST), usual_delay(&long, MOST)), (MOST, MOST));
        let longest = [Sample { length: Duration::MAX, kind: SampleKind::Success }; 50];
        assert_eq!(usual_limit(&longest, MOST), MOST);
    }

    #[test]
    fn hangs_do_not_lengthen_the_limit_without_end() {
        let mut samples = Vec::new();
        for _ in 0..20 {
            samples.extend(successes_of([10; 9]));
            let limit = usual_limit(&samples, MOST);
            samples.push(Sample { length: limit * 2, kind: SampleKind::Hang });
        }
        assert_eq!(seconds(usual_limit(&samples, MOST)), 30);
    }

    #[test]
    fn slower_work_lengthens_the_limit_at_once() {
        let mut samples = successes_of([10; 60]);
        samples.extend(successes_of([50]));
        assert_eq!(seconds(usual_limit(&samples, MOST)), 30, "one may be an exception");
        samples.push(sample(SampleKind::Cut, 60));
        assert_eq!(seconds(usual_limit(&samples, MOST)), 180);
        samples.extend(successes_of([10; 16]));
        assert_eq!(seconds(usual_limit(&samples, MOST)), 30);
    }
}
