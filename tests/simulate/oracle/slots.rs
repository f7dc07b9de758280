//! No two running branches have the same `$slot`, which is at most the width. With `finish running`
//! no branch begins after a failure.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::effect::TaskId;
use ftsh_machine::record::{LogEvent, LogRecord};
use ftsh_machine::{Effect, FailureKind, Time};

use super::branches::said;
use super::{Judged, Oracle, Verdict};
use crate::program::{Promises, Site};

/// Branches of a site.
#[derive(Default)]
struct Running {
    begun: BTreeSet<TaskId>,
    slots: BTreeMap<TaskId, usize>,
    has_failed: bool,
}

pub(super) struct Slots {
    sites: BTreeMap<String, Site>,
    /// Running branches by the task that waits for them.
    running: BTreeMap<TaskId, Running>,
    /// Waiting task and site of each branch.
    branches: BTreeMap<TaskId, (TaskId, String)>,
    judged: Judged,
}

impl Slots {
    pub(super) fn new(promises: &Promises) -> Self {
        Self {
            sites: promises.sites.clone(),
            running: BTreeMap::new(),
            branches: BTreeMap::new(),
            judged: Judged::default(),
        }
    }

    fn log(&mut self, record: &LogRecord) -> Verdict {
        let (Some(task), Some(parent)) = (record.task, record.parent) else { return Ok(()) };
        match &record.event {
            LogEvent::Iteration { kind: "forall", name, value } => {
                let Some(site) = self.sites.get(name) else { return Ok(()) };
                let running = self.running.entry(parent).or_default();
                if site.finish_running && running.has_failed {
                    return Err(format!("`{value}` of {name} begins after a failure"));
                }
                running.begun.insert(task);
                self.branches.insert(task, (parent, name.clone()));
            }
            LogEvent::BranchEnded { failure, .. } if self.branches.contains_key(&task) => {
                let running = self.running.entry(parent).or_default();
                running.begun.remove(&task);
                running.slots.remove(&task);
                running.has_failed |=
                    failure.is_some_and(|(kind, _)| kind != FailureKind::Canceled);
            }
            _ => {}
        }
        Ok(())
    }

    /// Judges the slot that a branch reports.
    fn branch(&mut self, task: TaskId, slot: &str) -> Verdict {
        let Some((parent, name)) = self.branches.get(&task) else { return Ok(()) };
        let running = self.running.entry(*parent).or_default();
        let width = self.sites[name].at_most.unwrap_or(self.sites[name].words.len());
        let slot = slot.parse().map_err(|_| format!("a branch of {name} has the slot `{slot}`"))?;
        if !(1..=width).contains(&slot) {
            return Err(format!("slot {slot} of {name} is beyond {width}"));
        }
        let is_same = |(other, taken): (&TaskId, &usize)| *other != task && *taken == slot;
        if running.begun.contains(&task) {
            if running.slots.iter().any(is_same) {
                return Err(format!("two running branches of {name} have slot {slot}"));
            }
            running.slots.insert(task, slot);
        }
        self.judged.count("slots");
        Ok(())
    }
}

impl Oracle for Slots {
    fn name(&self) -> &'static str {
        "slots"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        if let Effect::Log(record) = effect {
            self.log(record)?;
        }
        let Some((run, words)) = said(effect) else { return Ok(()) };
        match words[0].as_str() {
            "start" => _ = self.running.remove(&run.task),
            "branch" if words.len() > 1 => self.branch(run.task, &words[1])?,
            _ => {}
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
