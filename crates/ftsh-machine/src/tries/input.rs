//! Standard input of tries: a retry may find its input already consumed.

use super::TryRunner;
use crate::core::Flow;
use crate::effect::Query;
use crate::event::{Refusal, Reply};
use crate::record::LogEvent;
use crate::tasks::{Task, TaskState};

impl TryRunner<'_> {
    /// Checks for the end of input at the beginning of an attempt. No check is needed if the input
    /// cannot end, or is kept for retries.
    pub(crate) fn check_input(&mut self, task: &mut Task) -> Flow {
        let may_end = task.io.may_end() && !task.is_atomic();
        let Some(frame) = task.top_try() else { return Flow::Continue };
        let one = frame.clauses.attempts() == Some(1);
        let keeps = frame.clauses.atomic || frame.clauses.same_input;
        if !may_end || one || keeps || frame.input == Some(false) {
            return Flow::Continue;
        }
        let operation = self.core.query(task, Query::InputEnded(task.io.id()));
        Flow::Wait(TaskState::CheckingInput(operation))
    }

    /// Handles the result of the check. The end of input after the first attempt is logged once.
    pub(crate) fn input_checked(
        &mut self,
        task: &mut Task,
        result: &Result<Reply, Refusal>,
    ) -> Flow {
        let ended = !matches!(result, Ok(Reply::Truth(false)));
        let Some(frame) = task.top_try() else { return Flow::Continue };
        let was_there = frame.input.replace(!ended) == Some(true);
        let (line, attempt) = (frame.code.line, frame.attempt);
        if was_there && matches!(result, Ok(Reply::Truth(true))) {
            let event = LogEvent::InputEnded(attempt);
            self.core.log_at(task, line, || event.clone(), event.level());
        }
        Flow::Continue
    }
}
