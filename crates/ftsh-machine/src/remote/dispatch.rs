//! Dispatch of branches to other machines, and the handling of their ends.
//!
//! A remote branch is a local task with a single wait. The branch is dispatched when its engine has
//! room, and dispatched again, to another machine, as long as it has not begun. After the
//! beginning, only a record of the end states the result. Without such a record the branch is lost,
//! and starts over only if its `forall` says so.

use std::sync::Arc;
use std::time::Duration;

use super::{Dispatcher, unpack::failure};
use crate::branches::JoinKind;
use crate::core::{Core, Flow};
use crate::effect::{Dispatch, Effect, ProcessId, TaskId};
use crate::elsewhere::{Avoided, DispatchTurn, RemoteFrame, RemoteState, RemoteTarget};
use crate::endings::{Logged, Retry, TaskEnding, Thrown};
use crate::event::{Blame, Returned};
use crate::frames::{Frame, FrameKind};
use crate::outcome::FailureKind;
use crate::packed::{BranchEnd, EndedBranch};
use crate::record::spans::SpanEvent;
use crate::record::{AvoidReason, Level, LogEvent};
use crate::scheduler::Timer;
use crate::tasks::{Task, TaskState, Tasks};
use crate::values::Value;
use ftsh_syntax::engine::EngineId;

/// Maximum number of refusals of a branch, by machines or a carrier, before the branch fails.
const MAX_REFUSALS: u32 = 10;
/// Exit status of a branch that its engine does not accept: a temporary failure.
const EX_TEMPFAIL: i32 = 75;

impl Dispatcher<'_> {
    /// Dispatches a branch when its turn has come.
    pub(crate) fn dispatch(&mut self, task: &mut Task) -> Flow {
        let Some((parent, elsewhere, word)) = self.core.parts().tasks.sender(task) else {
            return Flow::broken(task, "a branch that nobody sends");
        };
        if top_remote(task).is_none() {
            let files = task.files.take().map(|files| *files).unwrap_or_default();
            task.enter(FrameKind::Remote(Box::new(RemoteFrame::new(
                Arc::clone(&elsewhere),
                files,
            ))));
        }
        let engine = elsewhere.on.engine;
        let now = self.core.now();
        let shared = self.core.engine(engine);
        if let DispatchTurn::Later(until) = shared.turn(task.id, elsewhere.most_pending, now) {
            let timer = until.map(|until| self.core.arm(until, Timer::Wake(task.id)));
            return Flow::Wait(TaskState::Remote(RemoteState::Waiting(timer)));
        }
        let packed = match self.core.tasks().get(parent) {
            Some(parent) => self.packer().pack(parent, &word, (task.id, task.slot)),
            None => return Flow::broken(task, "a branch that nobody waits for"),
        };
        let mut branch = match packed {
            Ok(branch) => branch,
            Err(why) => return Flow::Throw(not_sent(task, engine, &why.to_string())),
        };
        let process = self.core.new_process(task);
        let trace = self.core.config().trace;
        branch.config.trace = trace.map(|trace| trace.elsewhere(process, task.id.0));
        let Some(frame) = top_remote(task) else { return Flow::broken(task, NOT_REMOTE) };
        branch.files.clone_from(&frame.files);
        frame.texts = branch.texts.iter().map(|text| Arc::clone(&text.source)).collect();
        frame.node = None;
        let shared = self.core.engine(engine);
        shared.record_dispatch(process);
        let Avoided { nodes: avoid, until: avoid_until } =
            shared.nodes.avoided(&frame.shunned, now);
        frame.avoided.clone_from(&avoid);
        self.core.open_scope(task.scope);
        self.core.request(Effect::Dispatch(Box::new(Dispatch {
            process,
            task: task.id,
            scope: task.scope,
            on: elsewhere.on.clone(),
            avoid,
            avoid_until,
            branch: Box::new(branch),
            io: task.io.id(),
            line: task.line(),
        })));
        task.since = now;
        Flow::Wait(TaskState::Remote(RemoteState::Sent(process)))
    }

    /// Avoids a machine for a while, after a branch failed there.
    fn avoid(
        &mut self,
        task: &Task,
        engine: EngineId,
        node: &str,
        elapsed: Duration,
        why: AvoidReason,
    ) {
        let now = self.core.now();
        let time = self.core.engine(engine).nodes.failed(node, elapsed, now);
        let event = || LogEvent::Avoided { node: node.to_owned(), why, time };
        self.core.log(task, event, Level::STRUCTURES);
    }

    /// Handles the record of a branch's end.
    fn branch_returned(
        &mut self,
        task: &mut Task,
        engine: EngineId,
        node: &str,
        elapsed: Duration,
        ended: EndedBranch,
    ) -> Flow {
        task.attempts += ended.attempts;
        self.core.log_at(task, task.line(), || SpanEvent::Elsewhere(ended.spans), Level::SPANS);
        let texts = top_remote(task).map(|frame| std::mem::take(&mut frame.texts));
        let mut sources = texts.unwrap_or_default();
        sources.extend(ended.texts);
        let now = self.core.now();
        let throw = |task: &Task, packed, retry| {
            let Some(failure) = failure(packed, &sources) else {
                return Flow::broken(task, "a record of no failure");
            };
            Flow::Throw(Thrown { failure, retry, logged: Logged::Not, answers: true })
        };
        match ended.end {
            BranchEnd::Succeeded => {
                self.core.engine(engine).nodes.succeeded(node, elapsed);
                Flow::Exiting(TaskEnding::Succeeded)
            }
            BranchEnd::Exited(code) => {
                self.avoid(task, engine, node, elapsed, AvoidReason::Failed);
                Flow::Exiting(TaskEnding::Exited(code))
            }
            BranchEnd::Failed { failure, again } => {
                self.avoid(task, engine, node, elapsed, AvoidReason::Failed);
                throw(task, failure, again)
            }
            BranchEnd::Canceled(signal) => {
                let signal = crate::outcome::signal_name(signal);
                self.branch_lost(task, Some(node), &format!("it was ended by {signal}"))
            }
            // The same limit is about to pass in this run, and produces the message.
            BranchEnd::OutOfTime(_)
                if self
                    .core
                    .deadline_of(task)
                    .remaining(now)
                    .is_some_and(|left| !left.is_zero()) =>
            {
                Flow::Wait(TaskState::Remote(RemoteState::OutOfTime))
            }
            BranchEnd::OutOfTime(failure) => throw(task, failure, Retry::AsUsual),
        }
    }

    /// Handles a branch whose result is unknown.
    fn branch_lost(&mut self, task: &mut Task, node: Option<&str>, why: &str) -> Flow {
        let now = self.core.now();
        let place = node.map(|node| format!(" on {node}")).unwrap_or_default();
        let message = format!("the result of the branch{place} is unknown: {why}");
        let thrown = task.thrown(FailureKind::Lost, 1, message, "");
        let Some(frame) = top_remote(task) else { return Flow::broken(task, NOT_REMOTE) };
        let engine = frame.elsewhere.on.engine;
        frame.lost += 1;
        let begun = frame.node.take().map_or(now, |(_, since)| since);
        if let Some(node) = node {
            frame.shunned.add(node, now);
        }
        let again = frame.lost <= frame.elsewhere.retry_lost;
        frame.failure = Some(Arc::clone(&thrown.failure));
        if let Some(node) = node {
            self.avoid(task, engine, node, now - begun, AvoidReason::Lost);
        }
        if !again {
            return Flow::Throw(thrown);
        }
        self.core.log_failure(task, &thrown.failure, Level::FAILURES, false);
        Flow::Continue
    }

    /// Handles a dispatched branch that has not begun, and can be dispatched again.
    fn not_begun(
        &mut self,
        task: &mut Task,
        engine: EngineId,
        node: Option<String>,
        why: &str,
        blame: Blame,
    ) -> Flow {
        let now = self.core.now();
        let thrown = not_sent(task, engine, why);
        let Some(frame) = top_remote(task) else { return Flow::broken(task, NOT_REMOTE) };
        frame.failure = Some(Arc::clone(&thrown.failure));
        let delay = match blame {
            Blame::Request => return Flow::Throw(thrown),
            Blame::Node => {
                let nodes = &self.core.engine(engine).nodes;
                if let Some(node) = &node {
                    frame.shunned.add(node, now);
                }
                // Each host of a list may be tried once, since the last may be the only good one.
                let is_new = node.as_ref().is_some_and(|node| !nodes.is_known(node));
                let lists_hosts = frame.elsewhere.on.lists_hosts();
                frame.refusals += u32::from(!(lists_hosts && is_new));
                let too_many = frame.refusals >= MAX_REFUSALS;
                // Another machine is tried at once. After a second refusal all machines may be
                // overloaded, except for machines known to accept branches.
                let is_pressed = frame.refusals > 1 && !nodes.has_good(&frame.shunned, now);
                let delay = (is_pressed && !too_many)
                    .then(|| frame.pauses.next_delay(now.elapsed(), self.random.rng()));
                if let Some(node) = &node {
                    self.avoid(task, engine, node, Duration::ZERO, AvoidReason::Refused);
                }
                if too_many {
                    return Flow::Throw(thrown);
                }
                delay
            }
            // Without excluded machines, no machine can ever run the branch.
            Blame::Exclusion if frame.avoided.is_empty() => return Flow::Throw(thrown),
            Blame::Exclusion => {
                let RemoteFrame { shunned, avoided, .. } = frame;
                self.core.engine(engine).nodes.forgive(shunned, avoided);
                None
            }
            Blame::Stale => return Flow::Continue,
            Blame::Engine => {
                // A program that never works must not be called forever.
                let counts = matches!(engine, EngineId::Carrier(_));
                frame.refusals += u32::from(counts);
                if counts && frame.refusals >= MAX_REFUSALS {
                    return Flow::Throw(thrown);
                }
                Some(self.core.engine(engine).record_failure(now, self.random.rng()))
            }
        };
        let idle = self.core.engine(engine).record_refusal(now);
        let event = LogEvent::NotSent { engine, node, why: why.into(), delay, idle };
        let level = event.level();
        self.core.log(task, || event, level);
        match delay {
            Some(delay) if blame == Blame::Node => {
                let timer = self.core.arm(now + delay, Timer::Wake(task.id));
                Flow::Wait(TaskState::Remote(RemoteState::Waiting(Some(timer))))
            }
            _ => Flow::Continue,
        }
    }

    /// Handles a branch whose dispatching shell has ended, in a resumed run.
    pub(crate) fn sender_lost(&mut self, task: &mut Task, process: ProcessId) -> Flow {
        if let Some(engine) = self.core.parts().remote.leave(task.id, Some(process)) {
            wake_waiting(self.core, engine);
        }
        task.state = TaskState::Ready;
        let node = top_remote(task).and_then(|frame| frame.node().map(ToOwned::to_owned));
        self.branch_lost(task, node.as_deref(), "the shell that dispatched it has ended")
    }

    /// Handles the beginning of a dispatched branch on a machine. Returns the engine of the branch.
    pub(crate) fn placed(&mut self, task: &mut Task, node: &str) -> Option<EngineId> {
        let now = self.core.now();
        self.core.log(task, || LogEvent::Placed { node: node.to_owned() }, Level::STRUCTURES);
        if let Some(tally) = self.core.parts().tasks.tally_around(task) {
            tally.placed(task.id, node);
        }
        task.since = now;
        let frame = top_remote(task)?;
        (frame.node, frame.failure) = (Some((node.to_owned(), now)), None);
        Some(frame.elsewhere.on.engine)
    }

    /// Handles a dispatched branch that is over or did not begin, and of which nothing is left.
    pub(crate) fn returned(
        &mut self,
        task: &mut Task,
        process: ProcessId,
        returned: Returned,
    ) -> Flow {
        let Some(used) = engine_of(task) else { return Flow::broken(task, NOT_REMOTE) };
        self.core.engine(used).remove_pending(process);
        task.state = TaskState::Ready;
        match returned {
            Returned::Ended { node, elapsed, ended } => {
                self.core.engine(used).record_success();
                self.branch_returned(task, used, &node, elapsed, *ended)
            }
            Returned::Lost { node, why } => self.branch_lost(task, node.as_deref(), &why),
            Returned::Files { node: _, why } => {
                self.core.engine(used).record_success();
                Flow::Throw(task.thrown(FailureKind::Io, 1, why, ""))
            }
            Returned::NotBegun { node, why, blame } => {
                self.not_begun(task, used, node, &why, blame)
            }
        }
    }
}

impl Tasks {
    /// Returns the parent of a remote branch, the engine, and the word of the branch.
    pub(super) fn sender(&self, task: &Task) -> Option<(TaskId, Arc<RemoteTarget>, Value)> {
        let (parent, _) = task.parent?;
        let FrameKind::Join(join) = &self.get(parent)?.frames.last()?.kind else {
            return None;
        };
        match &join.kind {
            JoinKind::Branches { elsewhere, tally, .. } => {
                Some((parent, Arc::clone(elsewhere.as_ref()?), tally.word(task.id)?.clone()))
            }
            JoinKind::Hedge(_) | JoinKind::Beside(_) | JoinKind::Stages(_) => None,
        }
    }
}

/// Makes the tasks waiting for an engine check their turns again.
pub(crate) fn wake_waiting(core: &mut Core, engine: EngineId) {
    for id in core.engine(engine).wake() {
        let parts = core.parts();
        let Some(task) = parts.tasks.get_mut(id) else { continue };
        if let TaskState::Remote(RemoteState::Waiting(timer)) = task.state {
            parts.scheduler.cancel(timer);
            task.state = TaskState::Ready;
            parts.scheduler.queue(id);
        }
    }
}

/// Ends the wait of a task for a remote branch.
pub(crate) fn forget_remote(core: &mut Core, task: TaskId, remote_branch: RemoteState) {
    let process = match remote_branch {
        RemoteState::Sent(process) => Some(process),
        RemoteState::Waiting(timer) => {
            core.cancel(timer);
            None
        }
        RemoteState::OutOfTime => None,
    };
    process.map(|process| core.end_process(process));
    if let Some(engine) = core.parts().remote.leave(task, process) {
        wake_waiting(core, engine);
    }
}

const NOT_REMOTE: &str = "a branch that is not remote has returned";

fn not_sent(task: &Task, engine: EngineId, why: &str) -> Thrown {
    let message = format!("{} did not run the branch: {why}", engine.name());
    task.thrown(FailureKind::Engine, EX_TEMPFAIL, message, "")
}

/// Returns the engine of a remote branch.
pub(crate) fn engine_of(task: &mut Task) -> Option<EngineId> {
    top_remote(task).map(|frame| frame.elsewhere.on.engine)
}

fn top_remote(task: &mut Task) -> Option<&mut RemoteFrame> {
    match task.frames.last_mut() {
        Some(Frame { kind: FrameKind::Remote(frame), .. }) => Some(frame),
        _ => None,
    }
}
