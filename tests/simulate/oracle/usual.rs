//! A learned limit is at least three times the durations of most earlier attempts, is four times as
//! long after each attempt that it cut short, and never exceeds its bound. No sample is shorter than the time
//! for which the attempt was allowed to run.

use std::collections::BTreeMap;
use std::time::Duration;

use ftsh_machine::durations::estimate::{Sample, SampleKind, successes};
use ftsh_machine::durations::history::DurationHistory;
use ftsh_machine::durations::learned::LimitKey;
use ftsh_machine::effect::{DurationsOf, OperationId, Query, TaskId};
use ftsh_machine::event::Reply;
use ftsh_machine::learned_limits;
use ftsh_machine::record::{LogEvent, LogRecord};
use ftsh_machine::{Effect, Event, Time};
use ftsh_syntax::Script;

use super::{Judged, Oracle, Verdict};
use crate::program::{Limits, Promises, SCRIPT};

/// Shortest limit of an attempt, unless the bound is shorter.
const SHORTEST: Duration = Duration::from_secs(1);

/// Attempt with a learned limit.
#[derive(Clone, Copy)]
struct Attempt {
    began: Time,
    limit: Duration,
}

pub(super) struct Usual {
    promises: BTreeMap<(String, u32), Limits>,
    keys: BTreeMap<u32, LimitKey>,
    history: DurationHistory,
    query: Option<OperationId>,
    /// Last attempts by task and line.
    last: BTreeMap<(TaskId, u32), Attempt>,
    /// All limits of attempts of a line.
    limits: BTreeMap<u32, Vec<Attempt>>,
    judged: Judged,
}

impl Usual {
    pub(super) fn new(script: &Script, promises: &Promises) -> Self {
        let usual = promises.tries.iter().filter(|(_, limits)| limits.usual && !limits.headless);
        let keys = learned_limits(script).into_iter().map(|limit| (limit.line, limit.key));
        Self {
            promises: usual.map(|(place, limits)| (place.clone(), limits.clone())).collect(),
            keys: keys.collect(),
            history: DurationHistory::default(),
            query: None,
            last: BTreeMap::new(),
            limits: BTreeMap::new(),
            judged: Judged::default(),
        }
    }

    /// Judges the limit of an attempt that begins.
    fn begins(&mut self, record: &LogRecord, number: u64, until: Time) -> Verdict {
        let (line, limit) = (record.line, until - record.at);
        let place = (record.file.to_string(), line);
        let Some(promise) = self.promises.get(&place) else { return Ok(()) };
        let (Some(bound), Some(task)) = (promise.each, record.task) else { return Ok(()) };
        let wrong = |what: &str| Err(format!("line {line}: the limit {limit:?} {what}"));
        if limit > bound {
            return wrong("is longer than its bound");
        }
        if limit < SHORTEST.min(bound) {
            return wrong("is too short");
        }
        let attempt = Attempt { began: record.at, limit };
        let before = self.last.insert((task, line), attempt).filter(|_| number > 1);
        let is_of_script = place.0 == SCRIPT;
        if let Some(before) = before {
            let longer = before.limit.saturating_mul(4).min(bound);
            let was_cut = record.at >= before.began + before.limit;
            if !was_cut && limit != before.limit {
                return wrong("changes without a cut");
            }
            if limit != before.limit && limit != longer {
                return wrong("is not four times that of the last attempt");
            }
            if limit > before.limit {
                self.judged.count("usual: grows");
            }
        } else if is_of_script && !promise.through && number == 1 {
            let samples = self.keys.get(&line).map(|key| self.history.samples(*key));
            let samples = samples.unwrap_or_default();
            if successes(&samples) < 10 {
                if limit != bound {
                    return wrong("is learned from too few durations");
                }
                self.judged.count("usual: bound");
            } else {
                if limit < least(&samples).max(SHORTEST).min(bound) {
                    return wrong("is too short for earlier durations");
                }
                self.judged.count("usual: learned");
            }
        }
        self.limits.entry(line).or_default().push(attempt);
        Ok(())
    }

    /// Judges a sample that is recorded.
    fn recorded(&self, now: Time, key: LimitKey, sample: Sample) -> Verdict {
        let Some((line, _)) = self.keys.iter().find(|(_, known)| **known == key) else {
            return Err(format!("a sample of an unknown limit {key}"));
        };
        let Some(attempts) = self.limits.get(line) else { return Ok(()) };
        let is_one = attempts.iter().any(|attempt| match sample.kind {
            SampleKind::Success => attempt.began + sample.length == now,
            SampleKind::Cut | SampleKind::Hang => {
                attempt.limit * 2 == sample.length && attempt.began + attempt.limit <= now
            }
        });
        if is_one { Ok(()) } else { Err(format!("line {line}: no attempt has {sample:?}")) }
    }
}

/// Returns three times the length that 95 % of the successful attempts do not exceed.
fn least(samples: &[Sample]) -> Duration {
    let successes = samples.iter().filter(|sample| sample.kind == SampleKind::Success);
    let mut lengths: Vec<Duration> = successes.map(|sample| sample.length).collect();
    lengths.sort_unstable();
    let rank = (lengths.len() * 95).div_ceil(100);
    lengths[rank - 1] * 3
}

impl Oracle for Usual {
    fn name(&self) -> &'static str {
        "usual"
    }

    fn effect(&mut self, now: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::Query { operation, query: Query::Durations(DurationsOf::Script), .. } => {
                self.query = Some(*operation);
            }
            Effect::RecordDurations(name, lines) if *name == "script" => {
                let added = DurationHistory::parse(lines).ok_or("the lines are no history")?;
                for key in self.keys.values().copied().collect::<Vec<_>>() {
                    for sample in added.samples(key) {
                        self.recorded(now, key, sample)?;
                        self.history.add(key, sample);
                    }
                }
            }
            Effect::Log(record) => {
                if let LogEvent::Attempt { number, each: Some(until), .. } = &record.event {
                    return self.begins(record, *number, *until);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        if let Event::Done { operation, result: Ok(Reply::Durations(answer)) } = event
            && self.query == Some(*operation)
        {
            self.history =
                DurationHistory::parse(&answer.history).ok_or("the answer is no history")?;
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
