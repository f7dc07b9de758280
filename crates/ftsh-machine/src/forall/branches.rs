//! The branches of a `forall`: how they begin, and what becomes of it when they end.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use bstr::BString;

use crate::Machine;
use crate::commands::opening::Phase;
use crate::commands::table::Table;
use crate::effect::{Effect, FdChange, FdSource, TaskId};
use crate::grouped_output::held::{Held, MOST_HELD, Outputs};
use crate::grouped_output::relay::field;
use crate::loops::loop_block::pop_items;
use crate::outcome::FailureKind;
use crate::pipelines::tally::{Failed, Tally};
use crate::program::code::{Address, Loop};
use crate::record::{Level, LogEvent, Record};
use crate::remote::remote_branch::{Elsewhere, MAX_REMOTE_BRANCHES};
use crate::tasks::flow::{Flow, Step};
use crate::tasks::frame::{FrameKind, JoinFrame, JoinKind};
use crate::tasks::halt::Halt;
use crate::tasks::join::{NO_JOIN, exited, reason, top_join};
use crate::tasks::task::{State, Task};
use crate::unwind::ending::{Ending, Thrown};
use crate::values::value::Value;
use ftsh_syntax::clauses::{ForAllClauses, Output};

/// How many branches start in a row.
const BATCH: usize = 100;

/// A `forall` that has branches starts no more while there are so many tasks: it would take long to
/// end them all when a limit passes.
const MANY_BRANCHES: usize = 50_000;
/// What recursion can have: there each has but one.
const MOST_BRANCHES: usize = 2 * MANY_BRANCHES;

impl Machine {
    /// `forall`: first the descriptors that all branches share, then the branches.
    pub(crate) fn for_all(
        &mut self,
        task: &mut Task,
        code: &Arc<Loop>,
        clauses: &ForAllClauses<(), ()>,
        dispatch: Address,
    ) -> Step {
        // What runs elsewhere already stays there.
        let is_remote = self.lone.is_none() && (clauses.on.is_some() || self.config.on.is_some());
        if is_remote || self.packing.is_some() {
            Self::know_all(task)?;
        }
        let Some(io) = task.take_opened() else { return Ok(self.open_for_branches(task)) };
        task.turn(crate::program::code::forall_values(clauses));
        let ForAllClauses { at_most, at_least, output, keep_going, on, retry_lost } = clauses
            .try_map(
                task,
                |task, ()| task.pop()?.integer().map_err(Halt::expression),
                |task, ()| one_word(&task.pop()?),
            )?;
        let at_most = positive(at_most, "forall can't run at most")?;
        let at_least = positive(at_least, "forall can't have the success of at least")?;
        let retry_lost = positive(retry_lost, "forall can't retry as often as")?;
        let at_most = at_most.or(is_remote.then_some(MAX_REMOTE_BRANCHES));
        let on = on.or_else(|| self.config.on.clone()).filter(|_| is_remote);
        let elsewhere = on.clone().map(|on| {
            let most_pending =
                at_most.unwrap_or(MAX_REMOTE_BRANCHES).try_into().unwrap_or(usize::MAX);
            let retry_lost = retry_lost.unwrap_or(0);
            Arc::new(Elsewhere { on, at: dispatch, most_pending, retry_lost })
        });
        let clauses = ForAllClauses { at_most, at_least, output, keep_going, on, retry_lost };
        let (outputs, relay) = match output {
            Some(Output::Grouped { in_order }) => (Some(Box::new(Outputs::new(in_order))), None),
            Some(Output::Tagged) => (None, Some(self.begin_relay(task, io.id()))),
            None => (None, None),
        };
        let mut tally = Box::new(Tally::new(pop_items(task, code.items), self.now));
        tally.decide(&clauses);
        let kind = JoinKind::Branches {
            code: Arc::clone(code),
            clauses,
            io,
            tally,
            outputs,
            relay,
            elsewhere,
        };
        task.enter(FrameKind::Join(Box::new(JoinFrame {
            end: code.end,
            running: BTreeSet::new(),
            kind,
        })));
        Ok(Flow::Fork)
    }

    /// Opens the descriptors that all branches share. They would fight for the standard input, so that
    /// they read nothing, unless redirected.
    pub(crate) fn open_for_branches(&mut self, task: &mut Task) -> Flow {
        let null = FdChange { descriptor: 0, source: FdSource::Null };
        self.open(task, Phase { changes: vec![null], written: None })
    }

    /// Starts some of the branches that may run; a list can be too long to start all at once.
    pub(crate) fn more_branches(&mut self, task: &mut Task) -> Flow {
        if let Some(JoinKind::Hedge(_)) = top_join(task).map(|it| &it.kind) {
            return self.more_hedges(task);
        }
        self.more_output(task);
        for _ in 0..BATCH {
            self.budget = self.budget.saturating_sub(1);
            if let Some(flow) = self.crowded(task) {
                return flow;
            }
            let Some((code, value, io, remote_branch)) = next_branch(task) else {
                self.finish_relay(task);
                return Self::joined(task);
            };
            let word = value.clone();
            let now = self.now;
            let (branch, held) = self.begin_branch(task, "forall", &code, value, io);
            if let Some(remote_branch) = remote_branch
                && let Some(task) = self.tasks.get_mut(&branch)
            {
                task.at = remote_branch;
            }
            self.pack_begun(task, &word, branch);
            let held = held.map(|held| {
                let word = field(self.shown_word(&word).as_bytes());
                (held, format!("{}={word}", code.variable))
            });
            if let Some(JoinKind::Branches { tally, outputs, .. }) =
                top_join(task).map(|it| &mut it.kind)
            {
                tally.began(branch, word, now);
                for (it, (held, label)) in outputs.iter_mut().zip(held) {
                    it.begin(branch, held, label);
                }
            }
        }
        Flow::Fork
    }

    /// What becomes of a task that can't start a branch more, because there are so many.
    pub(crate) fn crowded(&mut self, task: &mut Task) -> Option<Flow> {
        if self.tasks.len() < MANY_BRANCHES {
            return None;
        }
        if !top_join(task)?.running.is_empty() {
            return Some(Flow::Wait(State::Children));
        }
        // Nothing of its own will make room.
        if self.tasks.len() < MOST_BRANCHES {
            return None;
        }
        self.leave(task);
        let message = format!("there are {MOST_BRANCHES} branches already");
        Some(Flow::Throw(task.thrown(FailureKind::Failure, 1, message, "")))
    }

    /// Starts a branch, and says where what it prints is held, if it is.
    pub(crate) fn begin_branch(
        &mut self,
        task: &mut Task,
        keyword: &'static str,
        code: &Loop,
        word: Value,
        io: Table,
    ) -> (TaskId, Option<Held>) {
        let scope = self.new_scope(Some(task.scope));
        let mut branch = self.fork(task, 0, code.body, io, scope);
        self.tag_output(task, &mut branch, &word);
        self.iterate(&mut branch, keyword, code, word);
        let held = self.hold_output(task, &mut branch);
        let id = branch.id;
        if let Some(join) = top_join(task) {
            join.running.insert(id);
        }
        if let State::Ready = branch.state {
            self.ready.push_back(id);
        }
        self.tasks.insert(id, branch);
        (id, held)
    }

    /// A branch of a task has ended, and nothing is left of it, or soon will be: the log tells how.
    pub(crate) fn branch_ended(
        &mut self,
        task: &mut Task,
        (branch, attempts): (TaskId, u64),
        failure: Option<(FailureKind, i32)>,
    ) {
        let now = self.now;
        let (code, node, begun) = match top_join(task).map(|it| &mut it.kind) {
            Some(JoinKind::Branches { code, tally, .. }) => {
                let node = tally.node(branch).map(ToOwned::to_owned);
                (&*code, node, tally.forget(branch))
            }
            Some(JoinKind::Hedge(hedge)) => {
                let begun = hedge.forget(branch);
                (&hedge.code, None, begun)
            }
            Some(JoinKind::Stages(_)) | None => return,
        };
        let Some((place, word, started)) = begun else { return };
        if self.config.log_level < Level::STRUCTURES {
            return;
        }
        let event = LogEvent::BranchEnded {
            name: code.variable.to_string(),
            word: word.text().unwrap_or_default().into_owned(),
            place,
            node,
            failure,
            attempts,
            elapsed: now - started,
        };
        let record = self.record(task, task.line(), event);
        let own = top_join(task).is_some_and(|it| it.kind.is_grouped()).then_some(branch);
        let group = record.group.or(own);
        let record = Record { task: Some(branch), parent: Some(task.id), group, ..record };
        self.effects.push_back(Effect::Log(record));
    }

    /// A branch is failing: that may take its siblings along.
    pub(crate) fn branch_failing(&mut self, parent: TaskId, child: TaskId, ending: &Ending) {
        let step = self.tasks.get(&parent).and_then(|task| self.branch_step(task, child, 0));
        let Some(task) = self.tasks.get_mut(&parent) else { return };
        let decided = match top_join(task).map(|join| &mut join.kind) {
            Some(JoinKind::Hedge(_)) => return self.hedge_failing(parent, child, ending),
            Some(JoinKind::Branches { clauses, tally, .. }) => {
                tally.ends(child, ending, step, clauses)
            }
            Some(JoinKind::Stages(_)) | None => {
                return self.resume(parent, |_, task| Flow::Throw(task.broken(NO_JOIN)));
            }
        };
        if decided {
            self.cancel_children(parent, reason(ending));
        }
    }

    /// The failure of a `forall`.
    pub(crate) fn branches_failed(task: &Task, failed: Failed) -> Thrown {
        let (kind, code) = failed.kind();
        let mut thrown = match (failed.message, failed.first) {
            (Some(message), _) => {
                Thrown { retry: failed.retry, ..task.thrown(kind, code, message, "") }
            }
            (None, Some(Ending::Failed(thrown))) => thrown,
            (None, Some(Ending::Exited(code))) => exited(task, "branch", code).inside(failed.step),
            (None, Some(Ending::Succeeded) | None) => task.broken("a `forall` fails for no reason"),
        };
        Arc::make_mut(&mut thrown.failure).branches = Some(failed.branches);
        thrown
    }
}

/// Its loop, its word, its descriptors, and where it is sent off if it runs elsewhere.
type Branch = (Arc<Loop>, Value, Table, Option<Address>);

fn next_branch(task: &mut Task) -> Option<Branch> {
    let join = top_join(task)?;
    match &mut join.kind {
        JoinKind::Branches { code, clauses, io, tally, outputs, relay, elsewhere }
            if clauses.at_most.is_none_or(|most| (join.running.len() as u64) < most)
                && outputs.as_ref().is_none_or(|outputs| outputs.has_room())
                && (relay.is_none() || join.running.len() < MOST_HELD) =>
        {
            let value = tally.next()?;
            let remote_branch = elsewhere.as_ref().map(|elsewhere| elsewhere.at);
            Some((Arc::clone(code), value, io.clone(), remote_branch))
        }
        _ => None,
    }
}

/// A text in a clause.
fn one_word(value: &Value) -> Result<BString, Halt> {
    let text = value.text().map(Cow::into_owned);
    text.ok_or_else(|| Halt::expression("what runs branches elsewhere is told one word"))
}

/// A number in a clause.
pub fn positive(number: Option<i64>, cannot: &str) -> Result<Option<u64>, Halt> {
    let Some(number) = number else { return Ok(None) };
    match u64::try_from(number) {
        Ok(number @ 1..) => Ok(Some(number)),
        _ => Err(Halt::expression(format!("{cannot} {number} branches"))),
    }
}
