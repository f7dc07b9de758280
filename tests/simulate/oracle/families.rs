//! Who started what, inside which tries: what several oracles need to know.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::Deadline;
use ftsh_machine::effect::{Action, ProcessId, Run, ScopeId, TaskId};
use ftsh_machine::status::{Status, TaskStatus};
use ftsh_machine::{Effect, Event, Time};

/// A command that was started.
#[derive(Clone, Debug)]
pub struct Start {
    pub process: ProcessId,
    pub at: Time,
    pub task: TaskId,
    pub scope: ScopeId,
    pub text: String,
    /// The tries around it, innermost first.
    pub tries: Vec<Within>,
    /// When the `finally` group must end that it is in because something was cancelled.
    pub cleaning: Option<Deadline>,
    /// Whether it is in a `finally` group.
    pub in_finally: bool,
}

/// An attempt that a command was started in.
#[derive(Clone, Debug, PartialEq)]
pub struct Within {
    pub task: TaskId,
    pub file: String,
    pub line: u32,
    pub started: Time,
    pub attempt: u64,
    pub scope: ScopeId,
    /// Whether it is not of the attempt but of the condition after it.
    pub condition: bool,
    /// Whether its limits count for the command.
    pub counts: bool,
    /// Whether the command is in a `finally` group inside it.
    pub outlasted: bool,
}

#[derive(Default)]
pub struct Families {
    /// Commands whose tries aren't known yet.
    fresh: Vec<(Time, Run)>,
    /// Those that are alive.
    pub starts: BTreeMap<ProcessId, Start>,
    /// Commands whose end the machine was told of.
    pub ended: BTreeSet<ProcessId>,
    parents: BTreeMap<ScopeId, ScopeId>,
    /// Scopes that ended well.
    pub handed_over: BTreeSet<ScopeId>,
    /// Scopes that were told to end and aren't empty.
    ending: BTreeSet<ScopeId>,
    /// Scopes whose processes may be alive although they are said to be empty.
    spared: BTreeSet<ScopeId>,
    /// What is to stand in the shell's place.
    replaces: BTreeSet<ProcessId>,
    /// Whether it does: what runs besides stays, however it ends.
    pub is_replaced: bool,
}

impl Families {
    pub fn effect(&mut self, now: Time, effect: &Effect) {
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

    pub fn event(&mut self, event: &Event) {
        if let Event::Spawned { process, .. } | Event::Exited { process, .. } = event {
            self.is_replaced |= self.replaces.contains(process);
        }
        match event {
            Event::Exited { process, .. } => {
                self.ended.insert(*process);
            }
            Event::Emptied { scope } => {
                self.ending.remove(scope);
            }
            _ => {}
        }
    }

    /// Finds out about the commands started since the last look.
    pub fn look(&mut self, status: &Status, alive: &BTreeSet<ProcessId>) -> Vec<Start> {
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

    /// Whether a scope, or one around it, has been told to end.
    pub fn is_ending(&self, scope: ScopeId) -> bool {
        self.around(scope).any(|scope| self.ending.contains(&scope))
    }

    /// Whether a process of a scope may be alive although it was killed.
    pub fn is_spared(&self, scope: ScopeId) -> bool {
        self.around(scope).any(|scope| self.spared.contains(&scope))
    }

    /// Whether a scope is another one or was begun in it.
    pub fn is_within(&self, scope: ScopeId, outer: ScopeId) -> bool {
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
