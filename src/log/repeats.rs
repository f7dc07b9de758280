//! Repeated failures. Most repetitions are counted instead of written.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::Human;
use ftsh_machine::record::{LogEvent, LogRecord};

/// Limits of the pause after a line. During a pause, the same failure is only counted. Each pause
/// is twice as long as the previous pause.
const SHORTEST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(1800);
/// Shortest time from the latest occurrence to its line that the line states.
const NOTABLE_DELAY: Duration = Duration::from_secs(1);
/// Limit on different failures in memory.
const MAX_FAILURES: usize = 100;

/// Task, line and message of a failure.
type FailureKey = (Option<TaskId>, u32, String);

/// Repeated failures by task, line and message.
#[derive(Default)]
pub(super) struct Repeats(HashMap<FailureKey, Repeat>);

struct Repeat {
    /// Time of the first occurrence.
    first: Timestamp,
    /// Time of the latest written line.
    written: Timestamp,
    /// Time from the latest written line to the next line.
    pause: Duration,
    /// Number of occurrences.
    count: u64,
    /// The latest.
    latest: LogRecord,
    /// Time of the latest occurrence, if not yet written.
    unwritten_since: Option<Timestamp>,
}

/// A line to be written.
pub(super) struct DueLine {
    /// Time of the line.
    pub at: Timestamp,
    /// Record of the failure.
    pub record: LogRecord,
    /// Words to add.
    pub words: String,
}

impl Repeats {
    /// True if the record holds a failure with possible repetitions.
    pub(super) fn counts(record: &LogRecord) -> bool {
        let is_failure = matches!(record.event, LogEvent::CommandFailed(_) | LogEvent::Failed(_));
        is_failure && !record.uncaught
    }

    /// Counts a failure. Returns the lines due now.
    pub(super) fn add(&mut self, now: Timestamp, record: &LogRecord) -> Vec<DueLine> {
        let mut lines = Vec::new();
        if self.0.len() >= MAX_FAILURES {
            lines = self.take(now, |_| true);
        }
        let message = record.event.failure().map(|it| it.message.clone()).unwrap_or_default();
        let repeat = self.0.entry((record.task, record.line, message)).or_insert_with(|| Repeat {
            first: now,
            written: now,
            pause: Duration::ZERO,
            count: 0,
            latest: record.clone(),
            unwritten_since: None,
        });
        repeat.count += 1;
        (repeat.latest, repeat.unwritten_since) = (record.clone(), Some(now));
        if elapsed(repeat.written, now) >= repeat.pause {
            repeat.written = now;
            repeat.pause = (2 * repeat.pause).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            lines.extend(repeat.line(now));
        }
        lines
    }

    /// Forgets the failures of the selected records. Returns the postponed lines, oldest first.
    pub(super) fn take(
        &mut self,
        now: Timestamp,
        which: impl Fn(&LogRecord) -> bool,
    ) -> Vec<DueLine> {
        let taken = self.0.extract_if(|_, repeat| which(&repeat.latest));
        let mut taken: Vec<_> = taken.map(|(_, repeat)| repeat).collect();
        taken.sort_by_key(|repeat| repeat.unwritten_since);
        taken.iter_mut().filter_map(|repeat| repeat.line(now)).collect()
    }
}

impl Repeat {
    /// Returns the line of the latest occurrence, unless written. A postponed line has the time of
    /// its writing, so that the times of a log ascend.
    fn line(&mut self, now: Timestamp) -> Option<DueLine> {
        let latest = self.unwritten_since.take()?;
        let time = Human(elapsed(self.first, latest));
        let ago = match elapsed(latest, now) {
            ago if ago < NOTABLE_DELAY => String::new(),
            ago => format!(", the last {} ago", Human(ago)),
        };
        let words = match self.count {
            1 => String::new(),
            count => format!(" ({count} times in {time}{ago})"),
        };
        Some(DueLine { at: now, record: self.latest.clone(), words })
    }
}

fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use ftsh_machine::FailureKind;
    use ftsh_machine::outcome::Failure;
    use ftsh_machine::time::Time;
    use ftsh_syntax::Source;

    fn failed(message: &str) -> LogRecord {
        let failure = Failure {
            source: Arc::new(Source::new("a", "")),
            line: 1,
            ..Failure::new(FailureKind::Exit, 1, message.into(), "false".into())
        };
        let event = LogEvent::CommandFailed(Box::new(failure));
        LogRecord::of_shell(Time::START, "a".into(), 1, event)
    }

    #[test]
    fn the_first_is_told_at_once_and_the_others_less_and_less_often() {
        let mut repeats = Repeats::default();
        let mut told = Vec::new();
        for second in (0..=3600).step_by(4) {
            let now = Timestamp::from_second(second).expect("a time");
            for line in repeats.add(now, &failed("no")) {
                told.push(format!("{second}{}", line.words));
            }
        }
        assert_eq!(
            told,
            [
                "0",
                "60 (16 times in 1 min)",
                "180 (46 times in 3 min)",
                "420 (106 times in 7 min)",
                "900 (226 times in 15 min)",
                "1860 (466 times in 31 min)",
            ]
        );
        assert_eq!(repeats.add(Timestamp::UNIX_EPOCH, &failed("other")).len(), 1);
        let end = Timestamp::from_second(3612).expect("a time");
        let rest = repeats.take(end, |_| true);
        let words: Vec<_> = rest.iter().map(|line| line.words.as_str()).collect();
        assert_eq!(words, [" (901 times in 1 h, the last 12 s ago)"]);
        assert_eq!(rest[0].at, end);
        assert!(repeats.take(end, |_| true).is_empty());
    }
}
