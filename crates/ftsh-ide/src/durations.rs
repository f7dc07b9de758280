//! Durations of earlier attempts, as a script shows them to people.

use std::time::Duration;

use bstr::BStr;

use ftsh_machine::durations::estimate::{
    MIN_SUCCESSES, Sample, median, percentile, successes, usual_delay, usual_limit,
};
use ftsh_machine::durations::history::DurationHistory;
use ftsh_machine::durations::learned::LearnedLimit;
use ftsh_machine::learned_limits;
use ftsh_machine::outcome::Human;
use ftsh_syntax::Script;

/// Lookup of the durations of files.
pub trait Durations {
    /// Returns the recorded durations of a file; `None` without any.
    fn of_file(&self, path: &BStr) -> Option<DurationHistory>;
}

/// Durations of a system on which nothing was recorded.
pub struct NoDurations;

impl Durations for NoDurations {
    fn of_file(&self, _: &BStr) -> Option<DurationHistory> {
        None
    }
}

/// Summary of the durations of one learned limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationSummary {
    /// The limit.
    pub limit: LearnedLimit,
    /// Number of successful attempts.
    pub successes: usize,
    /// Median of the successful attempts.
    pub median: Option<Duration>,
    /// 95th percentile.
    pub percentile: Option<Duration>,
    /// Limit that the next attempt has; `None` if only the bound holds and is known at run time.
    pub now: Option<Duration>,
}

impl DurationSummary {
    /// Creates the summary of a limit with samples.
    pub fn new(limit: LearnedLimit, samples: &[Sample]) -> Self {
        let most = limit.most.unwrap_or(Duration::MAX);
        let estimate = if limit.is_hedge { usual_delay } else { usual_limit };
        let now = Some(estimate(samples, most)).filter(|now| *now < Duration::MAX);
        Self {
            successes: successes(samples),
            median: median(samples),
            percentile: percentile(samples),
            now,
            limit,
        }
    }

    /// Returns the summary in one line.
    pub fn sentence(&self) -> String {
        let Self { limit, successes, median, percentile, now } = self;
        let what = if limit.is_hedge { "the delay" } else { "the limit" };
        let now = match now {
            Some(now) => format!("{what} is now {}", Human(*now)),
            None => format!("{what} is the one after `or`"),
        };
        let count = match successes {
            0 => "no samples yet".to_owned(),
            1 => "1 sample".to_owned(),
            count => format!("{count} samples"),
        };
        let few = match successes {
            0..MIN_SUCCESSES => format!(", learned from {MIN_SUCCESSES} on"),
            _ => String::new(),
        };
        let lengths = match (median, percentile) {
            (Some(median), Some(percentile)) => {
                format!(", median {}, p95 {}", Human(*median), Human(*percentile))
            }
            _ => String::new(),
        };
        format!("{count}{lengths}; {now}{few}")
    }
}

/// Returns the summaries of a script without the files that it uses, in the order of the text.
pub fn summaries(script: &Script, history: Option<&DurationHistory>) -> Vec<DurationSummary> {
    let samples = |limit: &LearnedLimit| history.map(|it| it.samples(limit.key));
    let limits = learned_limits(script).into_iter();
    limits
        .map(|limit| DurationSummary::new(limit.clone(), &samples(&limit).unwrap_or_default()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftsh_machine::durations::estimate::SampleKind;

    fn sentence(text: &str, count: u64) -> String {
        let script = ftsh_syntax::parse("script", text).expect("a script");
        let key = learned_limits(&script)[0].key;
        let mut history = DurationHistory::default();
        for seconds in 0..count {
            let length = Duration::from_secs(59 + count - seconds);
            history.add(key, Sample { length, kind: SampleKind::Success });
        }
        let [summary] = <[_; 1]>::try_from(summaries(&script, Some(&history))).expect("a limit");
        summary.sentence()
    }

    #[test]
    fn a_sentence_has_the_samples_and_the_limit() {
        let text = "try 5 times each usual or 20 minutes\n  x\nend\n";
        insta::assert_snapshot!(sentence(text, 0), @"no samples yet; the limit is now 20 min, learned from 10 on");
        insta::assert_snapshot!(sentence(text, 1), @"1 sample, median 1 min, p95 1 min; the limit is now 20 min, learned from 10 on");
        insta::assert_snapshot!(sentence(text, 60), @"60 samples, median 1 min 29 s, p95 1 min 56 s; the limit is now 5 min 48 s");
        let text = "try 5 times each usual or $d\n  x\nend\n";
        insta::assert_snapshot!(sentence(text, 0), @"no samples yet; the limit is the one after `or`, learned from 10 on");
        insta::assert_snapshot!(sentence(text, 60), @"60 samples, median 1 min 29 s, p95 1 min 56 s; the limit is now 5 min 48 s");
        let text = "forany x in a b hedge after usual or 5 min\n  x\nend\n";
        insta::assert_snapshot!(sentence(text, 60), @"60 samples, median 1 min 29 s, p95 1 min 56 s; the delay is now 1 min 56 s");
    }
}
