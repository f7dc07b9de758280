//! The branches of a `forall`: their start, and the handling of their ends.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use bstr::BString;

use super::Forker;
use crate::branches::{JoinFrame, JoinKind, Next, Once, Tally};
use crate::core::{Flow, Step};
use crate::effect::{FdChange, FdSource, Query, TaskId};
use crate::elsewhere::{MAX_REMOTE_BRANCHES, RemoteTarget};
use crate::endings::TaskEnding;
use crate::frames::FrameKind;
use crate::grouped_output::{GroupedOutput, tag_output};
use crate::invocation::{IoTable, Opening};
use crate::loops::{iterate, pop_items, take_answer};
use crate::outcome::FailureKind;
use crate::outputs::{BufferedOutput, MAX_BUFFERED_BRANCHES, OutputBuffers, escape_field};
use crate::program::{Address, Loop};
use crate::record::{Level, LogEvent};
use crate::remote::query_for_packing;
use crate::supply::{ask_for_words, passes_gate, resource_gate};
use crate::tasks::{Task, TaskState};
use crate::unwind::Unwinder;
use crate::values::{Suspend, Value};
use ftsh_syntax::clauses::{ForAllClauses, OutputMode};
use ftsh_syntax::slug::Slug;

/// Maximum number of branches started in a turn, so that a deadline can cut a long list.
const BATCH: usize = 100;

/// Number of tasks from which a `forall` with running branches starts no further ones. Ending more
/// tasks would take too long when a limit passes.
const CROWDED_TASKS: usize = 50_000;
/// Maximum number of tasks. Reached only by recursion, where each `forall` has a single branch.
const MAX_TASKS: usize = 2 * CROWDED_TASKS;

impl Forker<'_> {
    /// Begins a `forall`: opens the descriptors shared by all branches, then starts the branches.
    pub(crate) fn for_all(
        &mut self,
        task: &mut Task,
        code: &Arc<Loop>,
        clauses: &ForAllClauses<(), ()>,
        dispatch: Address,
    ) -> Step {
        // Branches of a remote branch run on the same node.
        let is_remote = self.core.remote().root().is_none()
            && (clauses.on.is_some() || self.core.config().on.is_some());
        if is_remote || self.core.remote().packs_branches() {
            query_for_packing(task)?;
        }
        let reading = clauses.once_in.map(|()| reading(task)).transpose()?;
        // The values stay on the stack: the instruction is executed again with the table.
        let Some(io) = task.take_opened() else {
            return Ok(self.open_for_branches(task));
        };
        task.reverse_top(Loop::forall_values(clauses));
        let ForAllClauses {
            at_most,
            at_least,
            output,
            keep_going,
            finish_running,
            on,
            retry_lost,
            while_free,
            while_load,
            once_in,
        } = clauses.try_map(
            task,
            |task, ()| task.pop()?.integer().map_err(Suspend::from),
            |task, ()| one_word(&task.pop()?),
        )?;
        let at_most = positive(at_most, "at most")?;
        let at_least = positive(at_least, "at least")?;
        let retry_lost = positive(retry_lost, "retry lost")?;
        let gate = resource_gate(while_free.as_ref(), while_load.as_ref())?;
        let at_most = at_most.or(is_remote.then_some(MAX_REMOTE_BRANCHES));
        let on = on.or_else(|| self.core.config().on.clone()).filter(|_| is_remote);
        let elsewhere = on.clone().map(|on| {
            let most_pending =
                at_most.unwrap_or(MAX_REMOTE_BRANCHES).try_into().unwrap_or(usize::MAX);
            let retry_lost = retry_lost.unwrap_or(0);
            Arc::new(RemoteTarget { on, at: dispatch, most_pending, retry_lost })
        });
        let once = reading.zip(once_in.clone()).map(|(reading, path)| {
            let content = take_answer(task, &reading).unwrap_or_default();
            Box::new(Once::new(path, task.umask, &content))
        });
        let clauses = ForAllClauses {
            at_most,
            at_least,
            output,
            keep_going,
            finish_running,
            on,
            retry_lost,
            while_free,
            while_load,
            once_in,
        };
        // A bad list fails before a relay begins, which only the join frame would end.
        let items = pop_items(task, code)?;
        let (outputs, relay) = match output {
            Some(OutputMode::Grouped { in_order }) => {
                (Some(Box::new(OutputBuffers::new(in_order))), None)
            }
            Some(OutputMode::Tagged) => {
                (None, Some(GroupedOutput::new(self.core).begin_relay(task, io.id())))
            }
            None => (None, None),
        };
        let mut tally = Box::new(Tally::new(items, once, self.core.now()));
        tally.decide(&clauses);
        let kind = JoinKind::Branches {
            code: Arc::clone(code),
            clauses: Box::new(clauses),
            io,
            tally,
            outputs,
            relay,
            elsewhere,
            gate,
        };
        self.core.keep_output(task);
        task.enter(FrameKind::Join(Box::new(JoinFrame {
            end: code.end,
            running: BTreeSet::new(),
            kind,
        })));
        Ok(Flow::SpawnMore)
    }

    /// Starts some of the allowed branches. A list may be too long to start all branches at once. Sets
    /// `decided` to the reason for ending the other branches if they must end.
    pub(crate) fn more_branches(
        &mut self,
        task: &mut Task,
        decided: &mut Option<&'static str>,
    ) -> Flow {
        if let Some(JoinKind::Hedge(_)) = task.top_join().map(|it| &it.kind) {
            return self.more_hedges(task);
        }
        GroupedOutput::new(self.core).flush_ended(task);
        for _ in 0..BATCH {
            ask_for_words(self.core, task);
            self.core.parts().scheduler.count_branch();
            if let Some(flow) = self.crowded(task) {
                return flow;
            }
            if !passes_gate(self.core, task) {
                return self.joined(task);
            }
            let Some((code, next, io, remote_branch)) = next_branch(task) else {
                GroupedOutput::new(self.core).finish_relay(task);
                return self.joined(task);
            };
            let value = match next {
                Next::Begins(value) => value,
                Next::Skipped(value, place) => {
                    self.skip(task, &code, &value, place);
                    let is_decided = has_enough(task);
                    if is_decided {
                        *decided = Some(TaskEnding::Succeeded.reason());
                    }
                    continue;
                }
            };
            let word = value.clone();
            let now = self.core.now();
            let slot = task.top_join().and_then(|join| join.kind.take_slot());
            let (branch, buffered) = self.begin_branch(task, "forall", &code, (value, slot), io);
            if let Some(remote_branch) = remote_branch.filter(|_| code.begin == code.body)
                && let Some(task) = self.core.parts().tasks.get_mut(branch)
            {
                task.at = remote_branch;
            }
            self.pack_begun(task, &word, branch);
            let buffered = buffered.map(|buffered| {
                let word = escape_field(self.core.shown_word(&word).as_bytes());
                (buffered, format!("{}={word}", code.variable))
            });
            if let Some(JoinKind::Branches { tally, outputs, gate, .. }) =
                task.top_join().map(|it| &mut it.kind)
            {
                tally.began(branch, word, slot, now);
                // This branch changes what is free, so the next one waits for another answer.
                if let Some(gate) = gate {
                    gate.close();
                }
                for (it, (buffered, label)) in outputs.iter_mut().zip(buffered) {
                    it.begin(branch, buffered, label);
                }
            }
        }
        Flow::SpawnMore
    }

    /// Delays or fails a task that cannot start another branch because of the number of tasks.
    pub(crate) fn crowded(&mut self, task: &mut Task) -> Option<Flow> {
        if self.core.tasks().count() < CROWDED_TASKS {
            return None;
        }
        if !task.top_join()?.running.is_empty() {
            return Some(Flow::Wait(TaskState::Children));
        }
        // No branch of the task's own will end and make room.
        if self.core.tasks().count() < MAX_TASKS {
            return None;
        }
        Unwinder::new(self.core).leave(task);
        let message = format!("too many branches: at most {MAX_TASKS} can run at once");
        Some(Flow::Throw(
            task.thrown(FailureKind::Failure, 1, message, "").named(Slug::ManyBranches),
        ))
    }

    /// Starts the branch of a word, with its `$slot`. Returns its id, and the buffers of its output if
    /// grouped.
    pub(crate) fn begin_branch(
        &mut self,
        task: &mut Task,
        keyword: &'static str,
        code: &Loop,
        (word, slot): (Value, Option<NonZeroU32>),
        io: IoTable,
    ) -> (TaskId, Option<BufferedOutput>) {
        let scope = self.core.new_scope(Some(task.scope));
        let mut branch = self.fork(task, 0, code.begin, io, scope);
        branch.slot = slot;
        tag_output(self.core, task, &mut branch, &word);
        iterate(self.core, &mut branch, Some(task), keyword, code, word);
        let buffered = GroupedOutput::new(self.core).buffer_output(task, &mut branch);
        let id = branch.id;
        if let Some(join) = task.top_join() {
            join.running.insert(id);
        }
        if let TaskState::Ready = branch.state {
            self.core.queue(id);
        }
        self.core.parts().tasks.put(branch);
        (id, buffered)
    }

    /// Logs a word of a `forall` that has no branch.
    fn skip(&mut self, task: &Task, code: &Loop, word: &Value, place: u64) {
        let event = || LogEvent::BranchSkipped {
            name: code.variable.to_string(),
            word: word.text().unwrap_or_default().into_owned(),
            place,
        };
        self.core.log(task, event, Level::STRUCTURES);
    }

    /// Packs a branch of the innermost `forall`, if requested.
    pub(crate) fn pack_begun(&mut self, task: &Task, word: &Value, branch: TaskId) {
        if self.core.remote().packs_branches() {
            let slot = self.core.tasks().get(branch).and_then(|branch| branch.slot);
            let packed = self.packer().pack(task, word, (branch, slot));
            self.core.parts().remote.keep_packed(branch, packed);
        }
    }

    /// Opens the descriptors shared by all branches. Branches would compete for standard input, so
    /// they read nothing unless redirected.
    pub(crate) fn open_for_branches(&mut self, task: &Task) -> Flow {
        let null = FdChange { descriptor: 0, source: FdSource::Null };
        let (operation, io) = self.core.open_io(&task.io, task, vec![null]);
        Flow::Wait(TaskState::Opening(Opening { operation, io, written: None }))
    }
}

/// Loop, word and descriptors of a branch, and the address of its dispatch if remote.
type Branch = (Arc<Loop>, Next, IoTable, Option<Address>);

fn next_branch(task: &mut Task) -> Option<Branch> {
    let join = task.top_join()?;
    match &mut join.kind {
        JoinKind::Branches { code, clauses, io, tally, outputs, relay, elsewhere, .. }
            if clauses.at_most.is_none_or(|most| (join.running.len() as u64) < most)
                && outputs.as_ref().is_none_or(|outputs| outputs.has_room())
                && (relay.is_none() || join.running.len() < MAX_BUFFERED_BRANCHES) =>
        {
            let next = tally.next()?;
            let remote_branch = elsewhere.as_ref().map(|elsewhere| elsewhere.at);
            Some((Arc::clone(code), next, io.clone(), remote_branch))
        }
        _ => None,
    }
}

/// Returns the query for the words recorded in the file of `once in`, which has been answered.
fn reading(task: &Task) -> Result<Query, Suspend> {
    if task.is_atomic() {
        let message = "`once in` is not possible in an atomic attempt, which may be undone";
        return Err(Suspend::expression(Slug::OnceFile, message));
    }
    // The file is the last value of the clauses.
    let path = task.stack.last().map(one_word).transpose()?.unwrap_or_default();
    let query = Once::reading(path, task.umask);
    match task.answer(&query) {
        Some(_) => Ok(query),
        None => Err(Suspend::Pending(query)),
    }
}

/// Returns true if the words that were skipped decide the `forall`.
fn has_enough(task: &mut Task) -> bool {
    match task.top_join().map(|join| &mut join.kind) {
        Some(JoinKind::Branches { clauses, tally, .. }) => tally.decide(clauses),
        Some(JoinKind::Hedge(_) | JoinKind::Beside(_) | JoinKind::Stages(_)) | None => false,
    }
}

/// Returns the text of a clause.
fn one_word(value: &Value) -> Result<BString, Suspend> {
    let text = value.text().map(Cow::into_owned);
    text.ok_or_else(|| {
        Suspend::expression(Slug::WordCount, "the value of a clause must be one word")
    })
}

/// Checks a number in a clause.
pub(crate) fn positive(number: Option<i64>, clause: &str) -> Result<Option<u64>, Suspend> {
    let Some(number) = number else { return Ok(None) };
    match u64::try_from(number) {
        Ok(number @ 1..) => Ok(Some(number)),
        _ => Err(Suspend::expression(
            Slug::OutOfRange,
            format!("`{clause} {number}` is too few: the least is 1"),
        )),
    }
}
