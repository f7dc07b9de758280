//! Records of the branches that succeeded, by `once in`.

use crate::effect::{Effect, OperationId};
use crate::event::{Refusal, Reply};
use crate::outcome::FailureKind;
use crate::pipelines::tally::Tally;
use crate::tasks::core::Core;
use crate::tasks::flow::Flow;
use crate::tasks::frame::JoinKind;
use crate::tasks::join::top_join;
use crate::tasks::table::Tasks;
use crate::tasks::task::Task;
use crate::unwind::ending::TaskEnding;
use ftsh_syntax::slug::Slug;

impl Core {
    /// Requests the record of a branch that succeeded. Returns the request and the number of bytes of
    /// the file that were read before, or none if the `forall` records nothing.
    pub(crate) fn record_word(&mut self, task: &Task) -> Option<(OperationId, u64)> {
        let directory = self.tasks.parent(task)?.directory.clone();
        let tally = self.tasks.tally_around(task)?;
        let word = tally.word(task.id)?.text().unwrap_or_default().into_owned();
        let (query, from) = tally.once()?.recording(&word);
        let operation = self.requests.new_operation(task);
        self.requests.push(Effect::Query { operation, directory, query });
        Some((operation, from))
    }

    /// Ends a branch whose word was recorded in the part of the file from an offset on. Without its
    /// record, the branch fails.
    pub(crate) fn word_recorded(
        &mut self,
        task: &mut Task,
        from: u64,
        result: Result<Reply, Refusal>,
    ) -> Flow {
        let part = match result {
            Ok(Reply::Text(part)) => part,
            Ok(_) => return Flow::Throw(task.broken("a record was answered by no text")),
            Err(refusal) => {
                let message = format!("the word was not recorded: {}", refusal.message);
                let refusal = Refusal { message, ..refusal };
                let thrown = task.refused(FailureKind::Io, refusal);
                return Flow::Throw(thrown.named(Slug::OnceFile));
            }
        };
        if let Some(once) = self.tasks.tally_around(task).and_then(Tally::once) {
            once.learn(from, &part);
        }
        if let Some(outer) = self.tasks.parent(task).map(|parent| parent.scope) {
            self.hand_over(task.scope, outer);
        }
        Flow::Exited(TaskEnding::Succeeded)
    }
}

impl Tasks {
    /// Returns the tally of a branch and its siblings.
    pub(crate) fn tally_around(&mut self, task: &Task) -> Option<&mut Tally> {
        let (parent, _) = task.parent?;
        match &mut top_join(self.get_mut(parent)?)?.kind {
            JoinKind::Branches { tally, .. } => Some(tally),
            JoinKind::Hedge(_) | JoinKind::Stages(_) => None,
        }
    }
}
