//! Calls and branches around a task, as steps of a trace.

use std::sync::Arc;

use super::Core;
use crate::branches::JoinKind;
use crate::effect::TaskId;
use crate::frames::{CallFrame, FrameKind};
use crate::outcome::shorten;
use crate::record::{LogRecord, Surroundings};
use crate::tasks::Task;
use crate::trace::{StepKind, Trace, TraceStep};
use crate::values::Value;
use ftsh_syntax::ast::Name;

/// A trace that grows outward from a failure.
#[derive(Debug, Default)]
pub(crate) struct TraceWalk {
    /// Steps collected up to now.
    pub trace: Trace,
    /// Number of tries passed.
    pub tries: usize,
}

impl TraceWalk {
    /// Passes all structures of a task, outward to its beginning.
    pub(crate) fn leave_structures(&mut self, task: &Task) {
        for frame in task.frames.iter().rev() {
            match &frame.kind {
                FrameKind::Call(call) => self.trace.push(call.step(self.tries)),
                FrameKind::Try(_) => self.tries += 1,
                _ => {}
            }
        }
    }

    /// Adds all calls and branches around a task to the trace of its failure.
    pub(crate) fn walk_out(&mut self, core: &Core, task: &Task) {
        self.leave_structures(task);
        self.walk_out_of_branch(core, task);
    }

    /// Adds the surroundings of a task, without its own structures.
    pub(crate) fn walk_out_of_branch<'a>(&mut self, core: &'a Core, mut task: &'a Task) {
        while let Some(parent) = core.tasks.parent(task) {
            self.leave_branch(core, parent, task.id);
            self.leave_structures(parent);
            task = parent;
        }
    }

    /// Passes from a task to its parent.
    pub(crate) fn leave_branch(&mut self, core: &Core, parent: &Task, child: TaskId) {
        self.trace.extend(core.branch_step(parent, child, self.tries));
    }
}

/// Joins the descriptions of the branches around a branch and of those from that branch inward.
fn nested(outer: Option<String>, inner: Option<String>) -> Option<String> {
    let all: Vec<_> = outer.into_iter().chain(inner).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

impl Core {
    /// Finds the branches and stages around a task.
    pub(crate) fn surroundings(&self, task: &Task) -> Surroundings {
        let mut found = Surroundings { depth: task.frames.len(), ..Surroundings::default() };
        let mut inner = task;
        while let Some(parent) = self.tasks.parent(inner) {
            if let Some(FrameKind::Join(join)) = parent.frames.last().map(|frame| &frame.kind) {
                found.is_stage |= inner.id == task.id && matches!(join.kind, JoinKind::Stages(_));
                if join.kind.is_grouped() {
                    found.group = Some(inner.id);
                }
            }
            if let Some(step) = self.branch_step(parent, inner.id, 0)
                && let Some((name, word)) = step.branch()
            {
                found.branch = nested(Some(format!("{name}={word}")), found.branch);
            }
            inner = parent;
        }
        found
    }

    /// Returns a record placed in a branch that its parent does not list, before the branch begins
    /// or after its end.
    pub(crate) fn inside_branch(
        &self,
        record: LogRecord,
        parent: &Task,
        variable: &Name,
        word: &Value,
    ) -> LogRecord {
        let own = format!("{variable}={}", self.shown_word(word));
        let outer = self.surroundings(parent);
        let is_grouped = parent.frames.last().is_some_and(
            |frame| matches!(&frame.kind, FrameKind::Join(join) if join.kind.is_grouped()),
        );
        let around = Surroundings {
            branch: nested(outer.branch, Some(own)),
            group: outer.group.or(record.task.filter(|_| is_grouped)),
            ..Surroundings::default()
        };
        LogRecord { around: Box::new(around), ..record }
    }

    /// Returns a branch's word for people, shortened and without secrets.
    pub(crate) fn shown_word(&self, word: &Value) -> String {
        // Secrets are hidden before the word is shortened.
        let word = word.brief().unwrap_or_default();
        shorten(&self.config.secrets.hide(&word))
    }

    /// Returns the step of a branch, if the task is a branch. The head adds the step of a remote
    /// branch.
    pub(crate) fn branch_step(
        &self,
        parent: &Task,
        child: TaskId,
        tries: usize,
    ) -> Option<TraceStep> {
        let join = parent.frames.last().and_then(|frame| match &frame.kind {
            FrameKind::Join(join) if !self.remote.is_root(parent.id) => Some(join),
            _ => None,
        });
        let (name, word) = match &join?.kind {
            JoinKind::Branches { code, tally, .. } => {
                (Arc::clone(&code.variable), tally.word(child)?)
            }
            JoinKind::Hedge(hedge) => (Arc::clone(&hedge.code.variable), hedge.word(child)?),
            JoinKind::Beside(beside) if beside.companion == child => ("with".into(), &beside.name),
            JoinKind::Beside(_) | JoinKind::Stages(_) => return None,
        };
        let word = self.shown_word(word);
        Some(TraceStep {
            kind: StepKind::Branch { name, word },
            file: Arc::clone(parent.program.source.name()),
            line: parent.line(),
            tries,
        })
    }
}

impl CallFrame {
    /// Returns the step of the call.
    fn step(&self, tries: usize) -> TraceStep {
        let line = self.return_to.checked_sub(1).and_then(|at| self.program.lines.get(at));
        TraceStep {
            kind: self.function.clone().map_or(StepKind::Source, StepKind::Function),
            file: Arc::clone(self.program.source.name()),
            line: line.copied().unwrap_or(0),
            tries,
        }
    }
}
