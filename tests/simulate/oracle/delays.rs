//! Delays are within the bounds of their policy and last as long as they should.

use std::collections::BTreeMap;

use ftsh_machine::effect::TaskId;
use ftsh_machine::record::{LogEvent, LogRecord};
use ftsh_machine::{Config, Effect, Time};
use ftsh_syntax::backoff::Policy;

use super::{Oracle, Verdict};
use crate::program::Promises;

pub(super) struct Delays {
    /// Delays by file and line; none with `every`.
    policies: BTreeMap<(String, u32), Option<Policy>>,
    /// Time and number of the next attempt.
    due: BTreeMap<(TaskId, String, u32), (Time, u64)>,
}

/// Number of delays after which the bounds stay constant.
const MANY: usize = 1000;

impl Delays {
    pub(super) fn new(promises: &Promises, config: &Config) -> Self {
        let policies = promises.tries.iter().map(|(place, promise)| {
            let policy = match &promise.policy {
                Some(policy) => policy.parse().expect("a policy"),
                None => config.backoff.clone(),
            };
            (place.clone(), promise.every.is_none().then_some(policy))
        });
        Self { policies: policies.collect(), due: BTreeMap::new() }
    }

    fn check(&self, record: &LogRecord, delay: std::time::Duration, attempt: u64) -> Verdict {
        let place = (record.file.to_string(), record.line);
        let Some(Some(policy)) = self.policies.get(&place) else { return Ok(()) };
        // Bounds assume that attempts take no time.
        let depends_on_elapsed = policy.kind.description().depends_on_elapsed;
        let count = if depends_on_elapsed { MANY } else { attempt as usize - 2 };
        let bound = policy.bounds().nth(count.min(MANY)).expect("bounds have no end");
        let least = if depends_on_elapsed { delay } else { bound.least };
        if delay < least || delay > bound.most {
            return Err(format!("{delay:?} before attempt {attempt} is not within {bound:?}"));
        }
        Ok(())
    }
}

impl Oracle for Delays {
    fn name(&self) -> &'static str {
        "delays"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        let Effect::Log(record) = effect else { return Ok(()) };
        let Some(task) = record.task else { return Ok(()) };
        let place = (task, record.file.to_string(), record.line);
        let wrong = |what| format!("line {}: {what}", record.line);
        match &record.event {
            LogEvent::Delay { delay, attempt, last } => {
                self.due.insert(place, (record.at + *delay, *attempt));
                if *last { Ok(()) } else { self.check(record, *delay, *attempt).map_err(wrong) }
            }
            LogEvent::Deferred { delay, attempt } => {
                self.due.insert(place, (record.at + *delay, *attempt));
                Ok(())
            }
            LogEvent::Attempt { number, .. } => {
                let due = self.due.remove(&place);
                // Inner tries of the task were canceled.
                self.due.retain(|place, _| place.0 != task);
                match due {
                    Some((due, attempt)) if attempt == *number && record.at < due => {
                        Err(wrong(format!("attempt {number} at {:?}, before {due:?}", record.at)))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
