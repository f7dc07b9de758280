//! Results of the branches of sites, for the oracles that judge them.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::effect::{Action, ProcessId, Run, ScopeId, TaskId};
use ftsh_machine::event::CommandStatus;
use ftsh_machine::record::LogEvent;
use ftsh_machine::status::Doing;
use ftsh_machine::{Effect, Event};

use super::Look;
use crate::program::Site;

/// A branch of a site.
pub(super) struct Branch {
    pub variable: String,
    pub word: String,
    /// True for a branch of a hedged `forany`.
    hedged: bool,
    pub parent: Option<TaskId>,
    /// Family of its processes.
    pub scope: Option<ScopeId>,
    /// Result of a branch that has ended; none for a hedge.
    pub succeeded: Option<bool>,
    /// Order of its `@end` report.
    pub end: Option<usize>,
    pub canceled: bool,
}

/// Branches of all sites.
pub(super) struct Branches {
    sites: BTreeMap<String, Site>,
    all: BTreeMap<TaskId, Branch>,
    ends: BTreeMap<ProcessId, TaskId>,
    count: usize,
    /// Task that writes the output of branches for another task.
    letting_out: BTreeMap<ProcessId, TaskId>,
    /// Sites that tasks are in.
    open: BTreeSet<(TaskId, String)>,
    /// Tasks whose report could not be written since they began the site.
    pub refused: Vec<TaskId>,
}

/// Report of a program to oracles.
pub(super) fn said(effect: &Effect) -> Option<(&Run, Vec<String>)> {
    let Effect::Run(run) = effect else { return None };
    let Action::Print(text) = &run.action else { return None };
    let text = text.strip_prefix(b"@")?;
    let words = String::from_utf8_lossy(text);
    Some((&**run, words.split_whitespace().map(str::to_owned).collect()))
}

impl Branches {
    pub(super) fn new(sites: &BTreeMap<String, Site>) -> Self {
        Self {
            sites: sites.clone(),
            all: BTreeMap::new(),
            ends: BTreeMap::new(),
            count: 0,
            letting_out: BTreeMap::new(),
            open: BTreeSet::new(),
            refused: Vec::new(),
        }
    }

    pub(super) fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Log(record) => self.log(record.task, &record.event),
            Effect::Run(run) if matches!(run.action, Action::Copy) => {
                self.letting_out.insert(run.process, run.task);
            }
            _ => {}
        }
        let Some((run, words)) = said(effect) else { return };
        let branch = self.all.get_mut(&run.task);
        match (words[0].as_str(), branch) {
            ("branch", Some(branch)) => branch.scope = branch.scope.or(Some(run.scope)),
            ("end", Some(_)) => _ = self.ends.insert(run.process, run.task),
            ("start", _) => {
                let is_old = |branch: &Branch| {
                    branch.parent == Some(run.task) && branch.variable == words[1]
                };
                self.all.retain(|_, branch| !is_old(branch));
                self.refused.retain(|task| *task != run.task);
                self.open.insert((run.task, words[1].clone()));
            }
            _ => {}
        }
    }

    /// True if the task reports the end of the site for the first time. The report may fail as
    /// well.
    pub(super) fn is_over(&mut self, task: TaskId, words: &[String]) -> bool {
        matches!(words[0].as_str(), "done" | "failed" | "won" | "lost")
            && self.open.remove(&(task, words[1].clone()))
    }

    fn log(&mut self, task: Option<TaskId>, event: &LogEvent) {
        let Some(task) = task else { return };
        match (event, self.all.get_mut(&task)) {
            (LogEvent::Iteration { kind, name, value }, _) if self.sites.contains_key(name) => {
                let (variable, word) = (name.clone(), value.clone());
                let (hedged, canceled) = (*kind == "forany", false);
                let (parent, scope, succeeded, end) = (None, None, None, None);
                let branch =
                    Branch { variable, word, hedged, parent, scope, succeeded, end, canceled };
                self.all.insert(task, branch);
            }
            (LogEvent::BranchEnded { failure, .. }, Some(branch)) if !branch.hedged => {
                branch.succeeded = Some(failure.is_none());
            }
            (LogEvent::Canceled, Some(branch)) => branch.canceled = true,
            // A limit ended the sites of the previous attempt, and the next attempt may not reach
            // them.
            (LogEvent::Attempt { .. }, _) => self.open.retain(|(parent, _)| *parent != task),
            _ => {}
        }
    }

    pub(super) fn event(&mut self, event: &Event) {
        let (process, is_good) = match event {
            Event::Exited { process, status, .. } => (process, *status == CommandStatus::Exited(0)),
            Event::SpawnFailed { process, .. } => (process, false),
            _ => return,
        };
        if let Some(task) = self.letting_out.remove(process)
            && !is_good
        {
            self.refused.push(task);
        }
        if let Some(task) = self.ends.remove(process)
            && let Some(branch) = self.all.get_mut(&task)
            && is_good
            && !branch.canceled
        {
            self.count += 1;
            branch.end = Some(self.count);
        }
    }

    pub(super) fn look(&mut self, look: &Look) {
        let tasks = &look.tasks;
        for (task, branch) in &mut self.all {
            if branch.parent.is_none()
                && let Some(status) = tasks.get(task)
            {
                branch.parent = status.parent;
            }
        }
    }

    /// Returns the site of a variable with its branches, if they are known.
    pub(super) fn of(
        &self,
        parent: TaskId,
        variable: &str,
    ) -> Option<(&Site, Vec<(TaskId, &Branch)>)> {
        let site = self.sites.get(variable)?;
        let all = self.all.iter().filter(|(_, branch)| branch.variable == variable);
        let all: Vec<_> = all.map(|(task, branch)| (*task, branch)).collect();
        if all.iter().any(|(_, branch)| branch.parent.is_none()) {
            return None;
        }
        Some((site, all.into_iter().filter(|(_, it)| it.parent == Some(parent)).collect()))
    }

    /// Returns the sites with branches, each with its waiting task.
    pub(super) fn places(&self) -> Vec<(TaskId, String)> {
        let places =
            self.all.values().filter_map(|branch| Some((branch.parent?, branch.variable.clone())));
        let mut places: Vec<_> = places.collect();
        places.sort();
        places.dedup();
        places
    }
}

impl Branch {
    /// Returns the remaining processes of a branch that must be gone.
    pub(super) fn left(&self, task: TaskId, look: &Look) -> Result<(), String> {
        if look.tasks.contains_key(&task) {
            return Err(format!("the branch of `{}` is still there", self.word));
        }
        let Some(scope) = self.scope else { return Ok(()) };
        let families = look.families;
        let is_left = |start: &&super::families::Start| {
            families.is_within(start.scope, scope) && !families.is_spared(start.scope)
        };
        match families.starts.values().find(is_left) {
            Some(start) => Err(format!("`{}` outlives the branch of `{}`", start.text, self.word)),
            None => Ok(()),
        }
    }

    /// True if the branch continues normally.
    pub(super) fn is_busy(&self, task: TaskId, look: &Look) -> bool {
        let is_ending = |doing: &Doing| matches!(doing, Doing::Ending | Doing::CleaningUp);
        !self.canceled && look.tasks.get(&task).is_some_and(|task| !is_ending(&task.doing))
    }
}
