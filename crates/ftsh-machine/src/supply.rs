//! Supplies that a `forall` waits for besides its branches: words of an input, resources of the
//! machine, and records of `once in`.
//!
//! The first branch always begins. With `while free` and `while load`, the driver is asked before
//! each further branch, and again after a while if the machine has too little memory or too much
//! load. Running branches go on.

use std::time::Duration;

use bstr::{BString, ByteSlice};

use crate::amounts::bytes;
use crate::branches::{GateState, JoinFrame, JoinKind, ResourceGate, Tally};
use crate::core::{Core, Flow};
use crate::effect::{Effect, OperationId, Query, TaskId};
use crate::endings::TaskEnding;
use crate::event::{Refusal, Reply};
use crate::items::Items;
use crate::outcome::FailureKind;
use crate::record::LogEvent;
use crate::scheduler::Timer;
use crate::tasks::{Task, Tasks};
use crate::values::Suspend;
use ftsh_syntax::size::Size;
use ftsh_syntax::slug::Slug;

/// Time between two checks while resources are missing.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Creates the gate of a `forall` with the values of its clauses, or none without such clauses.
pub(crate) fn resource_gate(
    free: Option<&Size<BString>>,
    load: Option<&BString>,
) -> Result<Option<Box<ResourceGate>>, Suspend> {
    let free = free.map(|size| bytes(&size.amount.to_str_lossy(), size.unit)).transpose()?;
    let load = load.map(|text| positive(&text.to_str_lossy())).transpose()?;
    let is_wanted = free.is_some() || load.is_some();
    Ok(is_wanted.then(|| Box::new(ResourceGate::new(free, load))))
}

/// Returns true if the gate of the innermost `forall` lets a further branch begin. Asks the
/// driver if the answer is unknown.
pub(crate) fn passes_gate(core: &mut Core, task: &mut Task) -> bool {
    let Some((gate, has_more)) = gate_and_words(task.top_join()) else { return true };
    match gate.state {
        GateState::Open => true,
        _ if !has_more => {
            leave_gate(core, task);
            true
        }
        GateState::Asked(_) | GateState::Waiting(_) => false,
        GateState::Closed => {
            let operation = core.query(task, Query::FreeResources);
            if let Some(gate) = gate_of(task.top_join()) {
                gate.state = GateState::Asked(operation);
            }
            false
        }
    }
}

/// Handles the answer of the driver, or its absence, in which case the branch begins.
pub(crate) fn resources_known(core: &mut Core, task: &mut Task, result: &Result<Reply, Refusal>) {
    let (now, check) = (core.now(), Timer::Gate(task.id));
    let Some(gate) = gate_of(task.top_join()) else { return };
    let missing = match result {
        Ok(Reply::Resources(there)) => gate.missing(*there),
        _ => None,
    };
    // A wait has one record at its beginning and one at its end.
    let event = match missing {
        Some(missing) => {
            gate.state = GateState::Waiting(core.arm(now + CHECK_INTERVAL, check));
            let is_new = gate.waiting_since.is_none();
            gate.waiting_since.get_or_insert(now);
            is_new.then_some(LogEvent::ResourcesAwaited { missing })
        }
        None => {
            gate.state = GateState::Open;
            let since = gate.waiting_since.take();
            since.map(|since| LogEvent::ResourcesAvailable { waited: now - since })
        }
    };
    if let Some(event) = event {
        let level = event.level();
        core.log(task, || event, level);
    }
}

/// Stops waiting for resources.
pub(crate) fn leave_gate(core: &mut Core, task: &mut Task) {
    let Some(gate) = gate_of(task.top_join()) else { return };
    core.cancel(gate.timer());
    if let GateState::Asked(operation) = std::mem::replace(&mut gate.state, GateState::Closed) {
        core.abandon(operation);
    }
}

impl Tasks {
    /// Returns true if the branches of a task wait for this operation.
    pub(crate) fn is_gated_by(&mut self, task: TaskId, operation: OperationId) -> bool {
        let gate = gate_of(self.get_mut(task).and_then(|task| task.top_join()));
        gate.is_some_and(|gate| matches!(gate.state, GateState::Asked(asked) if asked == operation))
    }
}

/// Lets the task ask again, after a while.
pub(crate) fn check_is_due(task: &mut Task) {
    if let Some(gate) = gate_of(task.top_join()) {
        gate.close();
    }
}

/// Returns the gate of a `forall`.
fn gate_of(join: Option<&mut JoinFrame>) -> Option<&mut ResourceGate> {
    gate_and_words(join).map(|(gate, _)| gate)
}

/// Returns the gate of a `forall`, and true if a further branch would begin without the gate.
fn gate_and_words(join: Option<&mut JoinFrame>) -> Option<(&mut ResourceGate, bool)> {
    let JoinFrame { running, kind, .. } = join?;
    let JoinKind::Branches { gate, clauses, tally, .. } = kind else { return None };
    let has_slot = clauses.at_most.is_none_or(|most| (running.len() as u64) < most);
    Some((gate.as_deref_mut()?, has_slot && tally.has_word()))
}

fn positive(text: &str) -> Result<f64, Suspend> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    match number {
        Some(number) if number > 0.0 => Ok(number),
        Some(_) => Err(Suspend::expression(
            Slug::OutOfRange,
            format!("`while load {text}` is too low: a number above 0 is needed"),
        )),
        None => Err(Suspend::expression(Slug::NotANumber, format!("`{text}` is not a number"))),
    }
}

/// Asks for more words, if the branches that have begun use up all that have come. Takes the request
/// back if no more are wanted.
pub(crate) fn ask_for_words(core: &mut Core, task: &mut Task) {
    let io = task.io.id();
    let Some(JoinKind::Branches { tally, .. }) = task.top_join().map(|join| &mut join.kind) else {
        return;
    };
    if tally.begins_no_more() {
        return leave_words(core, task.top_join());
    }
    let items = tally.items();
    if items.needs_input() && items.asked().is_some_and(|asked| asked.is_none()) {
        let operation = core.query(task, Query::InputPart(io));
        if let Some(asked) = incoming(task.top_join()).and_then(Items::asked) {
            *asked = Some(operation);
        }
    }
}

/// Takes a request for more words back.
pub(crate) fn leave_words(core: &mut Core, join: Option<&mut JoinFrame>) {
    if let Some(operation) = incoming(join).and_then(Items::asked).and_then(Option::take) {
        core.abandon(operation);
    }
}

impl Tasks {
    /// True if the words of a task's branches come by this operation.
    pub(crate) fn is_fed_by(&mut self, task: TaskId, operation: OperationId) -> bool {
        let join = self.get_mut(task).and_then(|task| task.top_join());
        incoming(join).and_then(Items::asked).is_some_and(|asked| *asked == Some(operation))
    }
}

/// Adds the words that have come. Returns the reason for which the branches end if there are none.
pub(crate) fn words_came(task: &mut Task, result: Result<Reply, Refusal>) -> Option<&'static str> {
    let part = match result {
        Ok(Reply::Text(part)) => Ok(part),
        Ok(_) => Ok(Vec::new().into()),
        Err(refusal) => Err(task.refused(FailureKind::Io, refusal).named(Slug::Input)),
    };
    let Some(JoinKind::Branches { tally, .. }) = task.top_join().map(|join| &mut join.kind) else {
        return None;
    };
    if let Some(asked) = tally.items().asked() {
        *asked = None;
    }
    match part {
        Ok(part) => {
            tally.items().feed(&part);
            None
        }
        Err(thrown) => {
            tally.fail(thrown);
            Some("the words can't be read")
        }
    }
}

/// Returns the words of a `forall`.
fn incoming(join: Option<&mut JoinFrame>) -> Option<&mut Items> {
    match &mut join?.kind {
        JoinKind::Branches { tally, .. } => Some(tally.items()),
        JoinKind::Hedge(_) | JoinKind::Beside(_) | JoinKind::Stages(_) => None,
    }
}

/// Requests the record of a branch that succeeded. Returns the request and the number of bytes of
/// the file that were read before, or none if the `forall` records nothing.
pub(crate) fn record_word(core: &mut Core, task: &Task) -> Option<(OperationId, u64)> {
    let directory = core.tasks().parent(task)?.directory.clone();
    let tally = core.parts().tasks.tally_around(task)?;
    let word = tally.word(task.id)?.text().unwrap_or_default().into_owned();
    let (query, from) = tally.once()?.recording(&word);
    let operation = core.new_operation(task);
    core.request(Effect::Query { operation, directory, query });
    Some((operation, from))
}

/// Ends a branch whose word was recorded in the part of the file from an offset on. Without its
/// record, the branch fails.
pub(crate) fn word_recorded(
    core: &mut Core,
    task: &mut Task,
    from: u64,
    result: Result<Reply, Refusal>,
) -> Flow {
    let part = match result {
        Ok(Reply::Text(part)) => part,
        Ok(_) => return Flow::broken(task, "a record was answered by no text"),
        Err(refusal) => {
            let message = format!("the word was not recorded: {}", refusal.message);
            let refusal = Refusal { message, ..refusal };
            let thrown = task.refused(FailureKind::Io, refusal);
            return Flow::Throw(thrown.named(Slug::OnceFile));
        }
    };
    if let Some(once) = core.parts().tasks.tally_around(task).and_then(Tally::once) {
        once.learn(from, &part);
    }
    if let Some(outer) = core.tasks().parent(task).map(|parent| parent.scope) {
        core.hand_over(task.scope, outer);
    }
    Flow::Exited(TaskEnding::Succeeded)
}

impl Tasks {
    /// Returns the tally of a branch and its siblings.
    pub(crate) fn tally_around(&mut self, task: &Task) -> Option<&mut Tally> {
        let (parent, _) = task.parent?;
        match &mut self.get_mut(parent)?.top_join()?.kind {
            JoinKind::Branches { tally, .. } => Some(tally),
            JoinKind::Hedge(_) | JoinKind::Beside(_) | JoinKind::Stages(_) => None,
        }
    }
}
