//! The current activity of a task, for the failure of work that is cut short.

use std::sync::Arc;
use std::time::Duration;

use super::{Core, trace::TraceWalk};
use crate::branches::JoinKind;
use crate::effect::Watch;
use crate::endings::Thrown;
use crate::event::MemoryUse;
use crate::frames::FrameKind;
use crate::outcome::{BranchResults, Failure, FailureKind, Human, TrySummary, shorten};
use crate::tasks::{Task, TaskState};
use ftsh_syntax::Source;
use ftsh_syntax::ast::Name;
use ftsh_syntax::size::HumanBytes;

/// Activity that is cut short by a limit.
#[derive(Debug, Default)]
pub(crate) struct RunningWork {
    /// Running command, if any.
    pub command: String,
    /// Duration of the command.
    pub elapsed: Option<Duration>,
    /// True for a `sleep`, or a delay between attempts.
    pub sleeps: bool,
    /// Channel for which an attempt waits.
    pub waits_for: Option<Name>,
    /// Source text and line.
    pub place: Option<(Arc<Source>, u32)>,
    /// Enclosing tries, innermost first.
    pub tries: Vec<TrySummary>,
    /// Enclosing calls and branches.
    pub walk: TraceWalk,
    /// Failure of the innermost `try` that has failed before.
    pub earlier: Option<Arc<Failure>>,
    /// Results of the branches of the outermost `forall`.
    pub branches: Option<Arc<BranchResults>>,
}

impl RunningWork {
    /// Creates the failure of this work. `caught` is the failure that a `catch` around it handles.
    pub(crate) fn failure(
        self,
        task: &Task,
        kind: FailureKind,
        code: i32,
        message: String,
        caught: Option<Arc<Failure>>,
    ) -> Arc<Failure> {
        let (source, line) =
            self.place.unwrap_or_else(|| (Arc::clone(&task.program.source), task.line()));
        Arc::new(Failure {
            elapsed: self.elapsed,
            source,
            line,
            tries: self.tries,
            trace: self.walk.trace,
            earlier: self.earlier.or(caught),
            branches: self.branches,
            ..Failure::new(kind, code, message, self.command)
        })
    }
}

impl Thrown {
    /// Adds the surroundings of a task to the trace of its failure.
    pub(crate) fn add_trace(&mut self, core: &Core, task: &Task) {
        let failure = Arc::make_mut(&mut self.failure);
        let trace = std::mem::take(&mut failure.trace);
        let mut walk = TraceWalk { trace, tries: failure.tries.len() };
        walk.walk_out(core, task);
        failure.trace = walk.trace;
    }
}

impl Core {
    /// Returns the current activity of a task, or of its first child task.
    pub(crate) fn running(&self, task: &Task) -> RunningWork {
        let mut running = self.running_below(task);
        running.walk.walk_out_of_branch(self, task);
        running.branches = self.tasks.current_branch_results(task);
        running
    }

    /// Returns the current activity of a task, without the surroundings of the task.
    fn running_below(&self, task: &Task) -> RunningWork {
        let mut running = match &task.state {
            TaskState::Command(command) => RunningWork {
                command: command.text.clone(),
                elapsed: Some(self.now() - command.started),
                place: Some((Arc::clone(&task.program.source), task.line())),
                ..RunningWork::default()
            },
            TaskState::Entering(entering) => RunningWork {
                waits_for: Some(Arc::clone(&entering.channel)),
                place: task
                    .tries()
                    .next()
                    .map(|frame| (Arc::clone(&task.program.source), frame.code.line)),
                ..RunningWork::default()
            },
            TaskState::Sleeping(_) => RunningWork { sleeps: true, ..RunningWork::default() },
            TaskState::Children | TaskState::Forking | TaskState::AwaitingCleanup => {
                let mut children = task.children();
                // The command of a `with` usually runs as long as the group and explains nothing.
                if let Some(FrameKind::Join(join)) = task.frames.last().map(|frame| &frame.kind)
                    && let JoinKind::Beside(beside) = &join.kind
                {
                    children.sort_by_key(|child| *child == beside.companion);
                }
                let first = children.into_iter().find_map(|child| self.tasks.get(child));
                first.map_or_else(RunningWork::default, |child| {
                    let mut running = self.running_below(child);
                    running.walk.leave_branch(self, task, child.id);
                    running
                })
            }
            _ => RunningWork::default(),
        };
        running.place.get_or_insert_with(|| (Arc::clone(&task.program.source), task.line()));
        running.walk.leave_structures(task);
        let tries = task.placed_tries();
        running.tries.extend(tries.map(|(frame, source)| frame.tried(source, self.now())));
        // An earlier limit explains nothing, but its own cause may.
        let earlier = |failure: &Arc<Failure>| match failure.kind {
            kind if kind.is_limit() => failure.earlier.clone(),
            _ => Some(Arc::clone(failure)),
        };
        let remote_branch = task.frames.last().and_then(|frame| match &frame.kind {
            FrameKind::Remote(remote_branch) => remote_branch.failure.clone(),
            _ => None,
        });
        running.earlier = running.earlier.or(remote_branch);
        let earlier = || task.tries().find_map(|frame| frame.failure.as_ref().and_then(earlier));
        running.earlier = running.earlier.or_else(earlier);
        running
    }

    /// Returns the current activity inside the first `keep` structures. Tries among those
    /// structures are omitted, because they continue.
    pub(crate) fn running_inside(&self, task: &Task, keep: usize) -> RunningWork {
        let mut running = self.running(task);
        let around = task.frames.iter().take(keep);
        let around = around.filter(|frame| matches!(frame.kind, FrameKind::Try(_))).count();
        running.tries.truncate(running.tries.len() - around);
        running
    }
}

/// Condition that the processes of a scope met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// No progress for the time of `stalled`.
    Stalled,
    /// More memory than the size of `memory`.
    Memory(MemoryUse),
}

fn over_memory(limit: u64, memory: &MemoryUse) -> String {
    let MemoryUse { used, largest, size } = memory;
    let (used, limit, size) = (HumanBytes(*used), HumanBytes(limit), HumanBytes(*size));
    format!(
        "used {used} of memory, more than {limit}; the largest process is `{largest}` with {size}"
    )
}

impl RunningWork {
    /// Creates the failure of work whose processes met a condition.
    pub(crate) fn breached(
        self,
        task: &Task,
        conditions: Watch,
        breach: &Breach,
        caught: Option<Arc<Failure>>,
    ) -> Arc<Failure> {
        let (kind, code, predicate) = match breach {
            Breach::Stalled => {
                let time = conditions.stalled.unwrap_or_default();
                (FailureKind::Stalled, 124, format!("made no progress for {}", Human(time)))
            }
            Breach::Memory(memory) => {
                let limit = conditions.memory.unwrap_or_default();
                (FailureKind::Memory, 137, over_memory(limit, memory))
            }
        };
        let message = match self.command.as_str() {
            "" => format!("the processes {predicate}"),
            command => format!("`{}` {predicate}", shorten(command)),
        };
        self.failure(task, kind, code, message, caught)
    }

    /// Returns the failure of a `try` whose deadline passes during an attempt. `by` names the limit if
    /// there are several.
    pub(crate) fn timeout(
        self,
        task: &Task,
        limit: Option<Duration>,
        by: &str,
        caught: Option<Arc<Failure>>,
    ) -> Arc<Failure> {
        let at_end = || " at the deadline of the run".into();
        let mut after = limit.map_or_else(at_end, |limit| match self.elapsed {
            // The command began long after the limited structure.
            Some(ran) if limit.saturating_sub(ran) > START_TOLERANCE.max(limit / 20) => {
                format!(" after {}, at the end of {}", Human(ran), Human(limit))
            }
            _ => format!(" after {}", Human(limit)),
        });
        after += by;
        let message = match self.command.as_str() {
            "" => match &self.waits_for {
                Some(channel) => {
                    format!("ran out of time{after}, waiting for the channel `{channel}`")
                }
                None if self.sleeps => format!("`sleep` ran out of time{after}"),
                None => format!("ran out of time{after}"),
            },
            command => format!("`{}` ran out of time{after}", shorten(command)),
        };
        self.failure(task, FailureKind::Timeout, 124, message, caught)
    }

    /// Creates the failure of work that was in progress when the shell ended.
    pub(crate) fn lost(
        self,
        task: &Task,
        what: &str,
        caught: Option<Arc<Failure>>,
    ) -> Arc<Failure> {
        let message = match self.command.as_str() {
            "" => format!("{what} was in progress when the shell ended"),
            command => format!("`{}` was running when the shell ended", shorten(command)),
        };
        let work = Self { elapsed: None, ..self };
        work.failure(task, FailureKind::Lost, 1, message, caught)
    }
}

/// Tolerance for the time that starting a command takes.
const START_TOLERANCE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_process_is_named() {
        let memory = MemoryUse { used: 2_140_000_000, largest: "cc1".into(), size: 900_000_000 };
        let text = "used 2.14 GB of memory, more than 2 GB; \
                    the largest process is `cc1` with 900 MB";
        assert_eq!(over_memory(2_000_000_000, &memory), text);
    }
}
