//! Estimate of a limit from the durations of earlier attempts.
//!
//! The limit of an attempt is a multiple of the 95th percentile of the last durations: 3 times the
//! percentile, since 2 times would cut 1.3 % of good attempts of a lognormal duration with σ = 1.2.
//! A percentile of few durations is uncertain, so the factor begins at 4.
//!
//! An attempt that the limit cut short is a sample as well, of twice its length: the limit may have
//! been too short. Hangs are cut short too, and 10 % of hangs would make up the whole percentile.
//! Therefore the percentile is that of successful attempts, and other samples only show slower work.
//!
//! Work that became slower shows in the newest samples long before the percentile of all samples
//! follows. If the mean of the newest samples is above that of the earlier ones by more than a
//! standard error, the work is estimated from the newest samples: as lognormal, with their mean and
//! with the deviation of all samples. Differences of successive samples give the deviation, which a
//! change of the mean hardly affects. `ftsh-lab limits` measures the result.

use std::time::Duration;

/// Number of samples kept for each limit.
pub const MAX_SAMPLES: usize = 200;

/// Number of successful attempts before a limit is estimated.
pub const MIN_SUCCESSES: usize = 10;

/// Number of successful attempts after which the factor is smallest.
const MANY_SUCCESSES: usize = 50;

/// Shortest limit of an attempt.
const SHORTEST: Duration = Duration::from_secs(1);

/// Numbers of the newest samples in which slower work shows, soon or surely.
const NEWEST: [usize; 5] = [4, 8, 16, 32, 64];

/// Largest estimate from newest samples, as a multiple of the longest of them.
const MAX_BEYOND_LONGEST: f64 = 1.75;

/// The 95th percentile of the standard normal distribution.
const NORMAL_P95: f64 = 1.645;

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

/// Returns the 95th percentile of the successful attempts among samples.
pub fn percentile(samples: &[Sample]) -> Option<Duration> {
    let successes = samples.iter().filter(|sample| sample.kind == SampleKind::Success);
    quantile(successes.map(|sample| sample.length).collect(), 95)
}

/// Returns the percentile, or the estimate from the newest samples if the work became slower; `None`
/// without enough samples.
fn recent_percentile(samples: &[Sample]) -> Option<Duration> {
    if successes(samples) < MIN_SUCCESSES {
        return None;
    }
    percentile(samples).max(slower_percentile(samples))
}

/// Returns the 95th percentile of work that became slower, estimated from the newest samples.
fn slower_percentile(samples: &[Sample]) -> Option<Duration> {
    let samples = samples.iter().filter(|sample| sample.kind != SampleKind::Hang);
    let lengths = samples.map(|sample| sample.length.max(Duration::from_nanos(1)));
    let logs: Vec<f64> = lengths.map(|length| length.as_secs_f64().ln()).collect();
    let deviation = deviation(&logs);
    let estimate = |count: usize| {
        let (earlier, newest) = logs.split_at(logs.len().checked_sub(count)?);
        let error = deviation / (count as f64).sqrt();
        let is_slower = earlier.len() >= count && mean(newest) - mean(earlier) > error;
        let longest = newest.iter().copied().fold(f64::MIN, f64::max);
        let most = longest + MAX_BEYOND_LONGEST.ln();
        is_slower.then(|| (mean(newest) + NORMAL_P95 * deviation).min(most))
    };
    let longest = NEWEST.into_iter().filter_map(estimate).max_by(f64::total_cmp)?.exp();
    // Whole microseconds: logarithms of other machines may differ in the last digit.
    let micros = (longest * 1e6).round() as u64;
    Some(Duration::from_micros(micros))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation, from the differences of successive values.
fn deviation(values: &[f64]) -> f64 {
    let squares = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
    let count = values.len().saturating_sub(1).max(1);
    (squares.sum::<f64>() / (2 * count) as f64).sqrt()
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
        assert_eq!(seconds(usual_limit(&samples, MOST)), 57, "one may be an exception");
        samples.push(sample(SampleKind::Cut, 60));
        assert_eq!(seconds(usual_limit(&samples, MOST)), 89);
        samples.extend(successes_of([50; 2]));
        assert_eq!(seconds(usual_limit(&samples, MOST)), 199);
        samples.extend(successes_of([10; 80]));
        assert_eq!(seconds(usual_limit(&samples, MOST)), 30);
    }

    #[test]
    fn faster_work_and_hangs_lengthen_nothing() {
        let mut samples = successes_of([50; 60]);
        samples.extend(successes_of([10; 20]));
        assert_eq!(seconds(usual_limit(&samples, MOST)), 150);
        samples.extend([sample(SampleKind::Hang, 600); 8]);
        assert_eq!(seconds(usual_limit(&samples, MOST)), 150);
    }

    #[test]
    fn a_few_long_samples_lengthen_the_limit_by_their_length() {
        // Without a bound, the estimate from a few samples of two kinds of work could be hours.
        let mut samples = successes_of((0..190).map(|at| if at % 10 == 0 { 1000 } else { 1 }));
        samples.extend(successes_of([1000; 4]));
        assert_eq!(seconds(usual_limit(&samples, MOST)), 5250);
    }
}
