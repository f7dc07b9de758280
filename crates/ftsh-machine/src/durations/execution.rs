//! Limits of the attempts of one execution of a `try`.

use std::time::Duration;

use super::estimate::{Sample, SampleKind, usual_limit};

/// Factor of the limit after each cut. With a factor of 2, two good attempts of one execution are
/// cut now and then (`ftsh-lab limits`).
const LENIENCY: u32 = 4;

/// Limits of the attempts of one execution. Each cut makes the limit four times as long, up to the
/// bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedExecution {
    limit: Duration,
    most: Duration,
    /// Limits that cut attempts short.
    cuts: Vec<Duration>,
}

impl LimitedExecution {
    /// Creates the limits from earlier durations. `most` is the bound.
    pub fn new(samples: &[Sample], most: Duration) -> Self {
        Self { limit: usual_limit(samples, most), most, cuts: Vec::new() }
    }

    /// Returns the limit of the next attempt.
    pub fn next_limit(&self) -> Duration {
        let longer = |limit: Duration, _: &Duration| limit.saturating_mul(LENIENCY);
        self.cuts.iter().fold(self.limit, longer).min(self.most)
    }

    /// Notes an attempt that its limit cut short. A cut at the bound teaches nothing.
    pub fn note_cut(&mut self, limit: Duration) {
        if limit < self.most {
            self.cuts.push(limit);
        }
    }

    /// Returns the samples of the execution. `success` is the length of the successful attempt.
    ///
    /// An attempt cut short is a sample of twice its length. If a later attempt succeeded within the
    /// same limit, the attempt probably hung.
    pub fn samples(&self, success: Option<Duration>) -> Vec<Sample> {
        let cut = |limit: &Duration| {
            let is_hang = success.is_some_and(|success| success <= *limit);
            let kind = if is_hang { SampleKind::Hang } else { SampleKind::Cut };
            Sample { length: limit.saturating_mul(2), kind }
        };
        let success = success.map(|length| Sample { length, kind: SampleKind::Success });
        self.cuts.iter().map(cut).chain(success).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn limits_grow_up_to_the_bound() {
        let samples = [Sample { length: SECOND, kind: SampleKind::Success }; 50];
        let mut execution = LimitedExecution::new(&samples, 20 * SECOND);
        let mut limits = Vec::new();
        for _ in 0..4 {
            limits.push(execution.next_limit());
            execution.note_cut(execution.next_limit());
        }
        assert_eq!(limits, [3, 12, 20, 20].map(|seconds| seconds * SECOND));
        let cut = |seconds, kind| Sample { length: seconds * SECOND, kind };
        let (cut_6, cut_24) = (cut(6, SampleKind::Cut), cut(24, SampleKind::Cut));
        assert_eq!(execution.samples(None), [cut_6, cut_24]);
        let hang = cut(24, SampleKind::Hang);
        assert_eq!(execution.samples(Some(5 * SECOND)), [cut_6, hang, cut(5, SampleKind::Success)]);
    }
}
