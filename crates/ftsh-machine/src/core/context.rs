//! Deadlines and the context of child tasks.

use super::Core;
use crate::frames::FrameKind;
use crate::tasks::{ParentContext, Task, branch_results};
use crate::time::Deadline;

impl Core {
    /// Returns the tightest deadline around the current instruction of a task.
    ///
    /// A `finally` group may exceed the deadlines around the group by the group's share.
    pub(crate) fn deadline_of(&self, task: &Task) -> Deadline {
        let mut deadline = Deadline::NONE;
        let mut share = None;
        let mut place = Some(task);
        'around: while let Some(task) = place {
            for frame in task.frames.iter().rev() {
                match (&frame.kind, share) {
                    // Enclosing limits are part of the frame's own.
                    (FrameKind::Try(frame), None) => {
                        deadline = frame.present_deadline();
                        break 'around;
                    }
                    (FrameKind::Try(frame), Some(share)) => {
                        deadline = deadline.min(frame.own_limit() + share);
                    }
                    (FrameKind::Finally(group), _) => match group.limit {
                        Some(limit) => {
                            deadline = deadline.min(limit);
                            break 'around;
                        }
                        None => share = Some(self.config.kill_timeout / 2),
                    },
                    _ => {}
                }
            }
            let parent = task.parent.and_then(|(parent, _)| self.tasks.get(parent));
            if parent.is_none() {
                deadline = deadline.min(task.inherited.deadline + share.unwrap_or_default());
            }
            place = parent;
        }
        deadline
    }

    /// Returns the context for a new branch or stage of a task.
    pub(crate) fn child_context(&self, task: &Task) -> ParentContext {
        ParentContext {
            deadline: self.deadline_of(task),
            attempt: task.attempt(),
            failure: task.caught().cloned(),
            succeeded: task.is_after_success(),
            branches: branch_results(task).cloned(),
            depth: task.depth(),
            is_guarded: task.leaves_time_to_clean_up(),
            scratch: task.scratch().cloned(),
            view: task.view().cloned(),
        }
    }
}
