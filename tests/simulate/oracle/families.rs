//! Ancestry of commands, and the tries around them, for several oracles.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::Deadline;
use ftsh_machine::effect::{Action, ProcessId, Run, ScopeId, TaskId};
use ftsh_machine::status::{Status, TaskStatus};
use ftsh_machine::{Effect, Event, Time};

/// A command that was started.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub process: ProcessId,
    pub at: Time,
    pub task: TaskId,
    pub scope: ScopeId,
    pub text: String,
    /// Enclosing tries, innermost first.
    pub tries: Vec<Within>,
    /// Deadline of the enclosing `finally` group after a cancellation.
    pub cleaning: Option<Deadline>,
    /// True for a command in a `finally` group.
    pub in_finally: bool,
}

/// An attempt that contains a command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Within {
    pub task: TaskId,
    pub file: String,
    pub line: u32,
    pub started: Time,
    pub attempt: u64,
    pub scope: ScopeId,
    /// True if the command belongs to the condition after the attempt.
    pub condition: bool,
    /// True if the limits of the attempt apply to the command.
    pub counts: bool,
    /// True if the command is in a `finally` group inside the attempt.
    pub outlasted: bool,
}

#[derive(Default)]
pub(crate) struct Families {
    /// Commands whose tries are not known yet.
    fresh: Vec<(Time, Run)>,
    /// Living commands.
    pub starts: BTreeMap<ProcessId, Start>,
    /// Times at which the ends of commands were reported.
    pub ended: BTreeMap<ProcessId, Time>,
    parents: BTreeMap<ScopeId, ScopeId>,
    /// Scopes that ended successfully.
    pub handed_over: BTreeSet<ScopeId>,
    /// Terminated scopes that are not empty yet.
    ending: BTreeSet<ScopeId>,
    /// Scopes reported as empty whose processes may be alive.
    spared: BTreeSet<ScopeId>,
    /// Program that will replace the shell.
    replaces: BTreeSet<ProcessId>,
    /// True if the program has replaced the shell. Other processes then stay in any case.
    pub is_replaced: bool,
}

impl Families {
    pub(crate) fn effect(&mut self, now: Time, effect: &Effect) {
        if let Effect::Exec(run) = effect {
            self.replaces.insert(run.process);
        }
        match effect {
            Effect::Run(run) | Effect::Exec(run) => self.fresh.push((now, (**run).clone())),
            Effect::OpenScope { scope, parent, .. } => {
                self.parents.insert(*scope, *parent);
            }
            Effect::HandOver { scope, into } => {
                self.parents.insert(*scope, *into);
                self.handed_over.insert(*scope);
            }
            Effect::Terminate(scope) => {
                self.ending.insert(*scope);
                self.replaces.clear();
                self.is_replaced = false;
            }
            Effect::Kill { scope, strong: false } => {
                self.spared.insert(*scope);
            }
            _ => {}
        }
    }

    pub(crate) fn event(&mut self, now: Time, event: &Event) {
        if let Event::Spawned { process, .. } | Event::Exited { process, .. } = event {
            self.is_replaced |= self.replaces.contains(process);
        }
        match event {
            Event::Exited { process, .. } => {
                self.ended.insert(*process, now);
            }
            Event::Emptied { scope } => {
                self.ending.remove(scope);
            }
            _ => {}
        }
    }

    /// Examines the commands started since the last call.
    pub(crate) fn look(&mut self, status: &Status, alive: &BTreeSet<ProcessId>) -> Vec<Start> {
        self.starts.retain(|process, _| alive.contains(process));
        if self.fresh.is_empty() {
            return Vec::new();
        }
        let tasks: BTreeMap<TaskId, &TaskStatus> =
            status.tasks.iter().map(|task| (task.task, task)).collect();
        let mut started = Vec::new();
        for (at, run) in std::mem::take(&mut self.fresh) {
            let mut tries = Vec::new();
            let mut cleaning = None;
            let mut in_finally = false;
            let mut next = tasks.get(&run.task);
            while let Some(task) = next {
                tries.extend(task.tries.iter().map(|tried| Within {
                    task: task.task,
                    file: tried.file.to_string(),
                    line: tried.line,
                    started: tried.started,
                    attempt: tried.attempt,
                    scope: tried.scope,
                    condition: tried.condition,
                    counts: tried.counts && cleaning.is_none(),
                    outlasted: tried.outlasted || in_finally,
                }));
                in_finally |= task.in_finally;
                cleaning = cleaning.or(task.cleaning);
                next = task.parent.and_then(|parent| tasks.get(&parent));
            }
            let text = match &run.action {
                Action::Program { words, .. } => bstr::join(" ", words),
                other => format!("{other:?}").into(),
            };
            let text = String::from_utf8_lossy(&text).into_owned();
            let (process, task, scope) = (run.process, run.task, run.scope);
            let start = Start { process, at, task, scope, text, tries, cleaning, in_finally };
            if alive.contains(&process) {
                self.starts.insert(process, start.clone());
            }
            started.push(start);
        }
        started
    }

    /// True if a scope or an enclosing one was terminated.
    pub(crate) fn is_ending(&self, scope: ScopeId) -> bool {
        self.around(scope).any(|scope| self.ending.contains(&scope))
    }

    /// True if the processes of a scope were moved to the script, as by `keep`.
    pub(crate) fn is_kept(&self, scope: ScopeId) -> bool {
        self.handed_over.contains(&scope) && self.parents.get(&scope) == Some(&ScopeId::SCRIPT)
    }

    /// True if a process of a killed scope may be alive.
    pub(crate) fn is_spared(&self, scope: ScopeId) -> bool {
        self.around(scope).any(|scope| self.spared.contains(&scope))
    }

    /// True if a scope is another one or inside the other.
    pub(crate) fn is_within(&self, scope: ScopeId, outer: ScopeId) -> bool {
        self.around(scope).any(|scope| scope == outer)
    }

    fn around(&self, scope: ScopeId) -> impl Iterator<Item = ScopeId> {
        let up = |scope: &ScopeId| {
            self.parents
                .get(scope)
                .copied()
                .or((*scope != ScopeId::SCRIPT).then_some(ScopeId::SCRIPT))
        };
        std::iter::successors(Some(scope), up)
    }
}
