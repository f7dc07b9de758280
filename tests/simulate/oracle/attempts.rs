//! Attempts are within their limits, counted from 1, `every` apart, and not after the deadline.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::effect::TaskId;
use ftsh_machine::record::{LogEvent, LogRecord};
use ftsh_machine::{Effect, Time};

use super::{Oracle, Verdict};
use crate::program::{Limits, Promises};

/// Start of the first attempt, and number and start of the current one.
type Begun = (Time, Time, u64);

pub(super) struct Attempts {
    promises: BTreeMap<(String, u32), Limits>,
    /// Tries of a task by line, outer ones first.
    tries: BTreeMap<(TaskId, String, u32), Vec<Begun>>,
    /// Tries whose current attempt will be repeated.
    deferred: BTreeSet<(TaskId, String, u32)>,
}

impl Attempts {
    pub(super) fn new(promises: &Promises) -> Self {
        Self { promises: promises.tries.clone(), tries: BTreeMap::new(), deferred: BTreeSet::new() }
    }

    fn attempt(&mut self, record: &LogRecord, number: u64, promise: &Limits) -> Verdict {
        let Some(task) = record.task else { return Err("an attempt without a task".into()) };
        let place = (task, record.file.to_string(), record.line);
        let again = self.deferred.remove(&place);
        let tries = self.tries.entry(place).or_default();
        // A repeated first attempt after a deferral looks like a new `try`.
        if again
            && number > 1
            && let Some((began, last, _)) = tries.last_mut().filter(|last| last.2 == number)
        {
            if promise.limit.is_some_and(|limit| record.at >= *began + limit) {
                return Err(format!("attempt {number} at {:?} comes too late again", record.at));
            }
            *last = record.at;
        } else if number == 1 {
            tries.push((record.at, record.at, 1));
        } else {
            // Inner tries may have ended without a record.
            while tries.last().is_some_and(|last| last.2 + 1 != number) {
                tries.pop();
            }
            let Some((began, last, count)) = tries.last_mut() else {
                return Err(format!("attempt {number} doesn't follow on another"));
            };
            if let Some(every) = promise.every
                && record.at < *last + every
            {
                return Err(format!("attempt {number} at {:?} comes too soon", record.at));
            }
            if let Some(limit) = promise.limit
                && record.at >= *began + limit
            {
                return Err(format!("attempt {number} at {:?} comes too late", record.at));
            }
            (*last, *count) = (record.at, number);
        }
        if number > promise.most() {
            return Err(format!("attempt {number} of {}", promise.most()));
        }
        Ok(())
    }
}

impl Oracle for Attempts {
    fn name(&self) -> &'static str {
        "attempts"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        let Effect::Log(record) = effect else { return Ok(()) };
        let promise = self.promises.get(&(record.file.to_string(), record.line)).cloned();
        let wrong = |what| format!("line {}: {what}", record.line);
        match (&record.event, promise) {
            (LogEvent::Attempt { number, .. }, Some(promise)) => {
                self.attempt(record, *number, &promise).map_err(wrong)
            }
            (LogEvent::Deferred { .. }, Some(_)) => {
                let place = record.task.map(|task| (task, record.file.to_string(), record.line));
                self.deferred.extend(place);
                Ok(())
            }
            (LogEvent::Attempt { .. }, None) => Err(wrong("no try is here".into())),
            // The time may run out before a channel admits the first attempt.
            (LogEvent::TryFailed { attempts, .. }, Some(promise))
                if !(u64::from(!promise.through)..=promise.most()).contains(attempts) =>
            {
                Err(wrong(format!("failed after {attempts} attempts")))
            }
            _ => Ok(()),
        }
    }
}
