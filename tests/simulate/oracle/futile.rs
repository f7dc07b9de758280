//! A failure that time does not mend is attempted three times in a row at most.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::Failure;
use ftsh_machine::record::LogEvent;
use ftsh_machine::{Effect, Time};
use ftsh_syntax::slug::Slug;

use super::{Judged, Oracle, Verdict};
use crate::program::Promises;

/// File and line of a `try`.
type Place = (String, u32);

/// File, line and message of a failure.
type Story = (String, u32, String);

pub(super) struct Futile {
    promises: Promises,
    /// Last failure of each task, if time does not mend it.
    failed: BTreeMap<TaskId, Option<Story>>,
    /// Tasks with a `finally` group since the last delay. A failure before the group takes
    /// precedence, so the last failure says nothing.
    grouped: BTreeSet<TaskId>,
    /// Failures before delays of a `try`, with their number in a row.
    repeated: BTreeMap<(TaskId, Place), (Story, u32)>,
    judged: Judged,
}

impl Futile {
    pub(super) fn new(promises: &Promises) -> Self {
        Self {
            promises: promises.clone(),
            failed: BTreeMap::new(),
            grouped: BTreeSet::new(),
            repeated: BTreeMap::new(),
            judged: Judged::default(),
        }
    }

    /// Counts the failure before a delay.
    fn delayed(&mut self, task: TaskId, place: Place) -> Verdict {
        if self.promises.tries.get(&place).is_none_or(|limits| limits.conditional) {
            return Ok(());
        }
        let line = place.1;
        let key = (task, place);
        let Some(story) = self.failed.remove(&task).flatten() else {
            self.repeated.remove(&key);
            return Ok(());
        };
        let before = self.repeated.remove(&key).filter(|(before, _)| *before == story);
        let count = before.map_or(1, |(_, count)| count + 1);
        if count > 1 {
            self.judged.count("failures that time does not mend");
        }
        if count > 2 {
            return Err(format!("line {line}: another attempt follows on three times {story:?}"));
        }
        self.repeated.insert(key, (story, count));
        Ok(())
    }
}

impl Oracle for Futile {
    fn name(&self) -> &'static str {
        "futile"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        let Effect::Log(record) = effect else { return Ok(()) };
        let Some(task) = record.task else { return Ok(()) };
        let place = || (record.file.to_string(), record.line);
        match &record.event {
            LogEvent::Finally => _ = self.grouped.insert(task),
            LogEvent::Attempt { number: 1, .. } => {
                self.failed.remove(&task);
                self.repeated.remove(&(task, place()));
            }
            // A caught failure is over. What fails after it may fail in another task.
            LogEvent::Attempt { .. } | LogEvent::Catch => _ = self.failed.remove(&task),
            LogEvent::Delay { .. } => {
                if self.grouped.remove(&task) {
                    self.failed.remove(&task);
                }
                return self.delayed(task, place());
            }
            event => {
                if let Some(story) = event.failure().map(story) {
                    self.failed.insert(task, story);
                }
            }
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}

/// Returns the story of a failure that time does not mend.
fn story(failure: &Failure) -> Option<Story> {
    let name = failure.command.split(' ').next().unwrap_or_default();
    let is_lasting = match failure.slug {
        Slug::UnsetVariable | Slug::UnknownFunction | Slug::TextOperand => true,
        Slug::NotFound => !name.contains('/'),
        _ => false,
    };
    is_lasting.then(|| (failure.file().to_string(), failure.line, failure.message.clone()))
}
