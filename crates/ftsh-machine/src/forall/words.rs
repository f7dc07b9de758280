//! Words of a `forall` that come from standard input, while its branches run.

use crate::effect::{OperationId, Query, TaskId};
use crate::event::{Refusal, Reply};
use crate::interface::requests::Requests;
use crate::outcome::FailureKind;
use crate::tasks::frame::{JoinFrame, JoinKind};
use crate::tasks::join::top_join;
use crate::tasks::table::Tasks;
use crate::tasks::task::Task;
use crate::values::items::Items;
use ftsh_syntax::slug::Slug;

/// Reason for which the branches end when no words can be read.
pub(crate) const NOT_READ: &str = "the words can't be read";

impl Requests {
    /// Asks for more words, if the branches that have begun use up all that have come. Takes the request
    /// back if no more are wanted.
    pub(crate) fn ask_for_words(&mut self, task: &mut Task) {
        let io = task.io.id();
        let Some(JoinKind::Branches { tally, .. }) = top_join(task).map(|join| &mut join.kind)
        else {
            return;
        };
        if tally.begins_no_more() {
            return self.leave_words(top_join(task));
        }
        let items = tally.items();
        if items.needs_input() && items.asked().is_some_and(|asked| asked.is_none()) {
            let operation = self.query(task, Query::InputPart(io));
            if let Some(asked) = incoming(top_join(task)).and_then(Items::asked) {
                *asked = Some(operation);
            }
        }
    }

    /// Takes a request for more words back.
    pub(crate) fn leave_words(&mut self, join: Option<&mut JoinFrame>) {
        if let Some(operation) = incoming(join).and_then(Items::asked).and_then(Option::take) {
            self.abandon(operation);
        }
    }
}

impl Tasks {
    /// True if the words of a task's branches come by this operation.
    pub(crate) fn is_fed_by(&mut self, task: TaskId, operation: OperationId) -> bool {
        let join = self.get_mut(task).and_then(|task| top_join(task));
        incoming(join).and_then(Items::asked).is_some_and(|asked| *asked == Some(operation))
    }
}

/// Adds the words that have come. Returns true if the loop fails because there are none.
pub(crate) fn words_came(task: &mut Task, result: Result<Reply, Refusal>) -> bool {
    let part = match result {
        Ok(Reply::Text(part)) => Ok(part),
        Ok(_) => Ok(Vec::new().into()),
        Err(refusal) => Err(task.refused(FailureKind::Io, refusal).named(Slug::Input)),
    };
    let Some(JoinKind::Branches { tally, .. }) = top_join(task).map(|join| &mut join.kind) else {
        return false;
    };
    if let Some(asked) = tally.items().asked() {
        *asked = None;
    }
    match part {
        Ok(part) => {
            tally.items().feed(&part);
            false
        }
        Err(thrown) => {
            tally.fail(thrown);
            true
        }
    }
}

/// Returns the words of a `forall`.
fn incoming(join: Option<&mut JoinFrame>) -> Option<&mut Items> {
    match &mut join?.kind {
        JoinKind::Branches { tally, .. } => Some(tally.items()),
        JoinKind::Hedge(_) | JoinKind::Stages(_) => None,
    }
}
