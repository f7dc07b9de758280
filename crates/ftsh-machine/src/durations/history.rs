//! Samples of the learned limits of one file, and their text.
//!
//! A line has the key of a limit, the kind of a sample and its nanoseconds: `8f0c… + 1500000000`.
//! Lines that begin with `#` are comments.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

use super::{
    estimate::{MAX_SAMPLES, Sample, SampleKind},
    learned::LimitKey,
};

/// Samples by the key of their limit, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationHistory {
    samples: BTreeMap<LimitKey, VecDeque<Sample>>,
}

impl DurationHistory {
    /// Parses the text of a history; `None` if a line is damaged.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        if !text.is_empty() && !text.ends_with('\n') {
            return None;
        }
        let mut history = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            let key = LimitKey::parse(words.next()?)?;
            let kind = kind_of(words.next()?)?;
            let length = Duration::from_nanos(words.next()?.parse().ok()?);
            if words.next().is_some() {
                return None;
            }
            history.add(key, Sample { length, kind });
        }
        Some(history)
    }

    /// Adds a sample, and drops the oldest one above the maximum number.
    pub fn add(&mut self, key: LimitKey, sample: Sample) {
        let samples = self.samples.entry(key).or_default();
        if samples.len() == MAX_SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Removes the samples of a limit. Returns true if there were any.
    pub fn forget(&mut self, key: LimitKey) -> bool {
        self.samples.remove(&key).is_some()
    }

    /// Returns the samples of a limit, oldest first.
    pub fn samples(&self, key: LimitKey) -> Vec<Sample> {
        self.samples.get(&key).into_iter().flatten().copied().collect()
    }

    /// Returns true without any sample.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Returns the text of the whole history.
    pub fn text(&self) -> String {
        let lines = |(key, samples): (&LimitKey, &VecDeque<Sample>)| {
            samples.iter().map(|sample| line(*key, *sample)).collect::<String>()
        };
        self.samples.iter().map(lines).collect()
    }
}

/// Returns the line of a sample, with its end.
pub fn line(key: LimitKey, sample: Sample) -> String {
    let nanos = u64::try_from(sample.length.as_nanos()).unwrap_or(u64::MAX);
    let mut line = String::new();
    let _ = writeln!(line, "{key} {} {nanos}", sign_of(sample.kind));
    line
}

fn sign_of(kind: SampleKind) -> char {
    match kind {
        SampleKind::Success => '+',
        SampleKind::Cut => '-',
        SampleKind::Hang => '?',
    }
}

fn kind_of(sign: &str) -> Option<SampleKind> {
    Some(match sign {
        "+" => SampleKind::Success,
        "-" => SampleKind::Cut,
        "?" => SampleKind::Hang,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> LimitKey {
        LimitKey::parse(&format!("{number:016x}")).expect("a key")
    }

    #[test]
    fn the_text_of_a_history_gives_the_same_history() {
        let mut history = DurationHistory::default();
        let kinds = [SampleKind::Success, SampleKind::Cut, SampleKind::Hang];
        for (at, kind) in kinds.into_iter().cycle().take(9).enumerate() {
            let length = Duration::from_millis(at as u64 * 250);
            history.add(key(at as u64 % 2), Sample { length, kind });
        }
        let text = format!("# a comment\n{}", history.text());
        assert_eq!(DurationHistory::parse(text.as_bytes()), Some(history));
    }

    #[test]
    fn the_last_200_samples_are_kept() {
        let sample = |at| Sample { length: Duration::from_secs(at), kind: SampleKind::Success };
        let text: String = (0..500).map(|at| line(key(3), sample(at))).collect();
        let mut history = DurationHistory::parse(text.as_bytes()).expect("a history");
        assert_eq!(history.samples(key(3)).len(), MAX_SAMPLES);
        assert_eq!(history.samples(key(3)).first(), Some(&sample(300)));
        assert!(history.forget(key(3)) && !history.forget(key(3)) && history.is_empty());
    }

    #[test]
    fn a_damaged_line_makes_no_history() {
        let good = line(key(3), Sample { length: Duration::MAX, kind: SampleKind::Hang });
        assert!(DurationHistory::parse(good.as_bytes()).is_some());
        for wrong in ["x", "\n", "0 + 1\n", &good[..good.len() - 1], &good.replace('?', "!")] {
            assert_eq!(DurationHistory::parse(wrong.as_bytes()), None, "{wrong:?}");
            let both = format!("{good}{wrong}{good}");
            assert_eq!(DurationHistory::parse(both.as_bytes()), None, "{wrong:?}");
        }
        assert_eq!(DurationHistory::parse(b"\xff\n"), None);
        assert_eq!(DurationHistory::parse(b""), Some(DurationHistory::default()));
    }
}
