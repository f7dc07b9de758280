//! Execution of `forany … hedge after`: words run in parallel, and the first success wins. The next
//! word begins after a delay, or when a word fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::RngExt;

use super::{Forker, branches::positive};
use crate::amounts::{length, not_zero};
use crate::branches::{Hedge, JoinFrame, JoinKind};
use crate::core::{Flow, Step};
use crate::durations::estimate::{Sample, SampleKind};
use crate::effect::{Query, TaskId};
use crate::endings::{TaskEnding, TaskResidue};
use crate::event::Reply;
use crate::frames::{ForAnyFrame, FrameKind};
use crate::grouped_output::GroupedOutput;
use crate::items::Items;
use crate::loops::{pop_items, try_item};
use crate::outputs::BufferedOutput;
use crate::program::{DurationScale, Loop};
use crate::scheduler::Timer;
use crate::tasks::Task;
use crate::values::{Suspend, Value};
use ftsh_syntax::clauses::ForAnyClauses;
use ftsh_syntax::slug::Slug;

impl Forker<'_> {
    /// Begins a hedged `forany`.
    pub(crate) fn hedge(
        &mut self,
        task: &mut Task,
        code: &Arc<Loop>,
        clauses: &ForAnyClauses<DurationScale, ()>,
    ) -> Step {
        let Some(io) = task.take_opened() else {
            return Ok(self.open_for_branches(task));
        };
        task.reverse_top(Loop::forany_values(clauses));
        let clauses = clauses.try_map(
            task,
            |task, scale| length(task, *scale),
            |task, ()| task.pop()?.integer().map_err(Suspend::from),
        )?;
        let most = clauses.hedge_after.unwrap_or_default();
        not_zero(most)?;
        let after = match code.usual {
            Some(key) => self.core.durations().delay(&task.program.source, key, most),
            None => most,
        };
        let at_most = positive(clauses.at_most, "at most")?.unwrap_or(u64::MAX);
        let items = self.items_of_any(task, code, clauses.in_order)?;
        let hedge = Hedge::new(Arc::clone(code), io, items, after, at_most);
        self.core.keep_output(task);
        task.enter(FrameKind::Join(Box::new(JoinFrame {
            end: code.end,
            running: BTreeSet::new(),
            kind: JoinKind::Hedge(Box::new(hedge)),
        })));
        Ok(Flow::SpawnMore)
    }

    /// Begins the words that are due.
    pub(crate) fn more_hedges(&mut self, task: &mut Task) -> Flow {
        // The output of the winner is written after all other branches have ended.
        if top_hedge(task).is_some_and(|(running, _)| running == 0) {
            GroupedOutput::new(self.core).flush_ended(task);
        }
        while let Some((running, hedge)) = top_hedge(task)
            && hedge.begins(running)
        {
            if let Some(flow) = self.crowded(task) {
                return flow;
            }
            let Some((_, hedge)) = top_hedge(task) else { break };
            let Some(word) = hedge.next() else { break };
            let (code, io) = (Arc::clone(&hedge.code), hedge.io.clone());
            let (branch, buffered) =
                self.begin_branch(task, "forany", &code, (word.clone(), None), io);
            self.begin_hedge(task, branch, word, buffered);
        }
        self.joined(task)
    }

    /// Adds a branch that begins, and arms the timer of the next word.
    fn begin_hedge(
        &mut self,
        task: &mut Task,
        branch: TaskId,
        word: Value,
        buffered: Option<BufferedOutput>,
    ) {
        let (id, now) = (task.id, self.core.now());
        let Some((running, hedge)) = top_hedge(task) else { return };
        hedge.began(branch, word, buffered, now);
        self.core.cancel(hedge.timer.take());
        if hedge.has_more(running) {
            hedge.timer = Some(self.core.arm(now + hedge.after, Timer::Hedge(id)));
        }
    }

    /// Handles the end of a branch. The output of a branch is kept only if the branch has won.
    pub(crate) fn hedge_ended(
        &mut self,
        task: &mut Task,
        branch: TaskId,
        ending: &TaskEnding,
        residue: TaskResidue,
    ) -> Option<&'static str> {
        let why = self.record_hedge_result(task, branch, ending, Some(residue));
        if let Some(outputs) = top_hedge(task).and_then(|(_, hedge)| hedge.outputs.as_mut()) {
            outputs.forget(branch);
        }
        why
    }

    /// Records the end or the imminent end of a branch. The residue of the winner becomes the
    /// script's. Returns the reason for ending the other branches if they must end now.
    pub(crate) fn record_hedge_result(
        &mut self,
        task: &mut Task,
        branch: TaskId,
        ending: &TaskEnding,
        residue: Option<TaskResidue>,
    ) -> Option<&'static str> {
        let (result, why) = match (ending, residue) {
            (TaskEnding::Succeeded, Some(residue)) => (Ok(residue), "another word succeeded"),
            (TaskEnding::Succeeded, None) => {
                (Err(task.broken("a word leaves nothing")), "nothing left")
            }
            (TaskEnding::Failed(thrown), _) => (Err(thrown.clone()), "another word gave up"),
            (TaskEnding::Exited(code), _) => {
                let step = self.core.branch_step(task, branch, 0);
                (Err(task.exited("a branch", *code).inside(step)), "another word exited")
            }
        };
        let is_success = result.is_ok();
        let (_, hedge) = top_hedge(task)?;
        let learned = hedge.usual.zip(hedge.start(branch)).filter(|_| is_success);
        if !hedge.record_result(branch, result) {
            return None;
        }
        self.core.cancel(hedge.timer.take());
        if let Some((key, started)) = learned {
            let length = self.core.now() - started;
            let sample = Sample { length, kind: SampleKind::Success };
            self.core.add_durations(&task.program.source, key, &[sample]);
        }
        Some(why)
    }
}

/// Makes the next word of a hedged `forany` begin as soon as there is room.
pub(crate) fn next_word_is_due(task: &mut Task) {
    if let Some((_, hedge)) = top_hedge(task) {
        hedge.timer = None;
        hedge.make_due();
    }
}

/// Returns the innermost structure if it is a hedged `forany`, with the number of running branches.
fn top_hedge(task: &mut Task) -> Option<(usize, &mut Hedge)> {
    let join = task.top_join()?;
    match &mut join.kind {
        JoinKind::Hedge(hedge) => Some((join.running.len(), hedge)),
        JoinKind::Branches { .. } | JoinKind::Beside(_) | JoinKind::Stages(_) => None,
    }
}

impl Forker<'_> {
    pub(crate) fn for_any(
        &mut self,
        task: &mut Task,
        code: &Arc<Loop>,
        clauses: &ForAnyClauses<DurationScale, ()>,
    ) -> Step {
        let query = Query::Input(task.io.id(), 0);
        if code.is_input && task.answer(&query).is_none() {
            return Err(Suspend::Pending(query));
        }
        if clauses.hedge_after.is_some() {
            return self.hedge(task, code, clauses);
        }
        let items = self.items_of_any(task, code, clauses.in_order)?;
        let mut frame = ForAnyFrame { code: Arc::clone(code), items, tried: 0 };
        try_item(self.core, task, &mut frame);
        task.enter(FrameKind::ForAny(Box::new(frame)));
        Ok(Flow::Continue)
    }

    /// Returns the list of a `forany`, positioned at its first word.
    pub(crate) fn items_of_any(
        &mut self,
        task: &mut Task,
        code: &Loop,
        in_order: bool,
    ) -> Result<Items, Suspend> {
        let mut items = pop_items(task, code)?;
        if let Some(Reply::Text(text)) = task.answer(&Query::Input(task.io.id(), 0)) {
            items.feed(text);
            items.feed(b"");
        }
        if items.is_empty() {
            return Err(Suspend::expression(Slug::NoAlternative, "the list of forany is empty"));
        }
        if !in_order {
            let first = self.random.rng().random_range(0..items.len());
            items.rewind(first);
        }
        Ok(items)
    }
}
