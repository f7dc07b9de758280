//! `with`: a command beside a group, each a task of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Forker;
use crate::branches::{Beside, JoinFrame, JoinKind};
use crate::core::Flow;
use crate::effect::{Effect, TaskId};
use crate::endings::{Continuation, TaskEnding, Thrown};
use crate::frames::FrameKind;
use crate::outcome::FailureKind;
use crate::program::Address;
use crate::record::{Level, LogEvent};
use crate::scheduler::Timer;
use crate::tasks::{Task, TaskState, Tasks};
use crate::values::Value;

/// Time after which the group begins although the command still waits, as for the reader of a
/// named pipe that the group opens.
const MAX_START: Duration = Duration::from_secs(1);

impl Forker<'_> {
    /// Begins the command of a `with`, of this name and number of stages, which reads nothing.
    pub(crate) fn with(
        &mut self,
        task: &mut Task,
        name: (&Value, usize),
        (body, end): (Address, Address),
    ) -> Flow {
        let Some(io) = task.take_opened() else {
            return self.open_for_branches(task);
        };
        self.core.keep_output(task);
        let scope = self.core.new_scope(Some(task.scope));
        let companion = self.fork(task, 0, task.at + 1, io, scope);
        let (id, now) = (companion.id, self.core.now());
        if self.core.logs(Level::STRUCTURES) {
            let value = name.0.text().unwrap_or_default().to_string();
            let event = LogEvent::Iteration { kind: "with", name: "with".into(), value };
            let record = self.core.record(&companion, task.line(), event);
            let record = self.core.inside_branch(record, task, &"with".into(), name.0);
            self.core.request(Effect::Log(record));
        }
        let timer = self.core.arm(now + MAX_START, Timer::Group(task.id));
        let beside = Beside::new((name.0.clone(), name.1), body, (id, now), timer);
        let kind = JoinKind::Beside(Box::new(beside));
        let running = BTreeSet::from([id]);
        task.enter(FrameKind::Join(Box::new(JoinFrame { end, running, kind })));
        self.core.queue(id);
        self.core.parts().tasks.put(companion);
        Flow::Wait(TaskState::Children)
    }

    /// Handles a task that runs a program or waits for time, perhaps of the command of a `with`.
    pub(crate) fn companion_began(&mut self, task: TaskId) {
        if let Some(place) = self.core.tasks().get(task).map(|task| task.parent) {
            self.companion_began_at(task, place);
        }
    }

    /// Begins the group of a `with` once each stage of its command runs a program, waits for time or
    /// has ended. `task`, with its place, is such a stage or a task inside.
    pub(crate) fn companion_began_at(&mut self, task: TaskId, place: Option<(TaskId, usize)>) {
        let tasks = self.core.parts().tasks;
        let Some((parent, stage)) = tasks.parent_without_group(task, place) else { return };
        if let Some(JoinKind::Beside(beside)) =
            tasks.get_mut(parent).and_then(Task::top_join).map(|it| &mut it.kind)
            && beside.stage_began(stage)
        {
            self.begin_group(parent);
        }
    }

    /// Leaves out the group of the `with` of which `task` is the command, a pipeline with a stage that
    /// has failed. Returns true if the group had not begun.
    pub(super) fn leave_out_group(&mut self, task: &Task) -> bool {
        let is_cut = self.core.tasks().is_being_cut(task, 0);
        let parent = task.parent.and_then(|(it, _)| self.core.parts().tasks.get_mut(it));
        let waiting = parent.filter(|it| !is_cut && matches!(it.state, TaskState::Children));
        let Some(JoinKind::Beside(beside)) =
            waiting.and_then(Task::top_join).map(|it| &mut it.kind)
        else {
            return false;
        };
        let timer = if beside.is_pipeline(task.id) { beside.timer.take() } else { None };
        let is_left_out = timer.is_some();
        self.core.cancel(timer);
        is_left_out
    }

    /// Begins the group of the `with` of a task.
    pub(crate) fn begin_group(&mut self, task: TaskId) {
        let Some(mut task) = self.core.parts().tasks.take(task) else { return };
        if let Some(JoinKind::Beside(beside)) = task.top_join().map(|it| &mut it.kind)
            && beside.is_open()
        {
            let (at, timer) = (beside.body, beside.timer.take());
            self.core.cancel(timer);
            let (io, scope) = (task.io.clone(), self.core.new_scope(Some(task.scope)));
            let group = self.fork(&mut task, 1, at, io, scope);
            let id = group.id;
            if let Some(join) = task.top_join() {
                join.running.insert(id);
            }
            self.core.queue(id);
            self.core.parts().tasks.put(group);
        }
        self.core.parts().tasks.put(task);
    }
}

impl Tasks {
    /// Returns the parent of the command of a `with` whose group has not begun, and the stage of the
    /// command in which a task is. A `$(…)` in the words of the command runs before the command.
    fn parent_without_group(
        &self,
        mut task: TaskId,
        mut place: Option<(TaskId, usize)>,
    ) -> Option<(TaskId, usize)> {
        let (mut stage, mut in_words) = (0, false);
        loop {
            let frames = self.get(task).map_or(&[][..], |task| &task.frames);
            // The outermost one counts: a function of the command has begun before its own words.
            let outermost = frames.iter().find_map(|frame| match frame.kind {
                FrameKind::WordCall(_) => Some(true),
                FrameKind::Call(_) => Some(false),
                _ => None,
            });
            in_words = outermost.unwrap_or(in_words);
            let (parent, index) = place?;
            let around = self.get(parent)?;
            if matches!(around.state, TaskState::Children)
                && let Some(beside) = beside(around)
                && beside.companion == task
                && beside.timer.is_some()
            {
                return (!in_words).then_some((parent, stage));
            }
            (task, place, stage) = (parent, around.parent, index);
        }
    }

    /// Returns true for the group of a `with`, which a jump leaves.
    pub(crate) fn is_group_of_with(&self, task: &Task) -> bool {
        self.parent(task).and_then(beside).is_some_and(|beside| beside.companion != task.id)
    }

    /// Returns true for a task in the group of a `with`.
    pub(crate) fn is_inside_with(&self, task: &Task) -> bool {
        self.and_around(task).any(|task| self.is_group_of_with(task))
    }

    /// Returns true for a task in the command of a `with`.
    pub(crate) fn is_inside_command_of_with(&self, task: &Task) -> bool {
        let is_command = |task: &Task| {
            self.parent(task).and_then(beside).is_some_and(|it| it.companion == task.id)
        };
        self.and_around(task).any(is_command)
    }

    /// Returns true if `exit` in the task ends the run.
    pub(crate) fn exits_run(&self, task: &Task) -> bool {
        self.and_around(task).all(|task| task.parent.is_none() || self.is_group_of_with(task))
    }

    /// Returns true if `exit` in the task would leave a `finally` group, which nothing may.
    pub(crate) fn exit_leaves_finally(&self, task: &Task) -> bool {
        for task in self.and_around(task) {
            if task.is_in_finally() {
                return true;
            }
            if !self.is_group_of_with(task) {
                break;
            }
        }
        false
    }

    /// Returns the failure of the command of a `with` that ends with success.
    pub(crate) fn companion_ended(&self, task: &Task) -> Option<Thrown> {
        let beside = beside(self.parent(task)?).filter(|it| it.companion == task.id)?;
        let name = beside.name.text().unwrap_or_default().to_string();
        let message = format!("`{name}` ended before the group of its `with`");
        Some(task.thrown(FailureKind::Companion, 1, message, &name))
    }

    /// Ends the group of a `with`, after which the parent jumps.
    pub(crate) fn leave_group(&mut self, task: &Task, then: Continuation) -> Flow {
        let parent = task.parent.and_then(|(parent, _)| self.get_mut(parent));
        if let Some(JoinKind::Beside(beside)) =
            parent.and_then(Task::top_join).map(|it| &mut it.kind)
        {
            beside.leaves.get_or_insert(then);
        }
        Flow::Exiting(TaskEnding::Succeeded)
    }
}

fn beside(task: &Task) -> Option<&Beside> {
    match &task.frames.last()?.kind {
        FrameKind::Join(join) => match &join.kind {
            JoinKind::Beside(beside) => Some(beside),
            JoinKind::Branches { .. } | JoinKind::Hedge(_) | JoinKind::Stages(_) => None,
        },
        _ => None,
    }
}
