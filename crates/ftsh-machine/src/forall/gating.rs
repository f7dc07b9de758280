//! The clauses `while free` and `while load` of `forall`: branches that wait for resources.
//!
//! The first branch always begins. The driver is asked before each further branch, and again after
//! a while if the machine has too little memory or too much load. Running branches go on.

use std::time::Duration;

use bstr::{BString, ByteSlice};

use crate::effect::{OperationId, Query, TaskId};
use crate::event::{Refusal, Reply};
use crate::forall::gate::{GateState, ResourceGate};
use crate::interface::requests::Requests;
use crate::record::LogEvent;
use crate::tasks::core::Core;
use crate::tasks::frame::{JoinFrame, JoinKind};
use crate::tasks::join::top_join;
use crate::tasks::suspend::Suspend;
use crate::tasks::table::Tasks;
use crate::tasks::task::Task;
use crate::tasks::timer::Timer;
use crate::tries::size::bytes;
use ftsh_syntax::size::Size;
use ftsh_syntax::slug::Slug;

/// Time between two checks while resources are missing.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Creates the gate of a `forall` with the values of its clauses, or none without such clauses.
pub(crate) fn gate(
    free: Option<&Size<BString>>,
    load: Option<&BString>,
) -> Result<Option<Box<ResourceGate>>, Suspend> {
    let free = free.map(|size| bytes(&size.amount.to_str_lossy(), size.unit)).transpose()?;
    let load = load.map(|text| positive(&text.to_str_lossy())).transpose()?;
    let is_wanted = free.is_some() || load.is_some();
    Ok(is_wanted.then(|| Box::new(ResourceGate::new(free, load))))
}

impl Core {
    /// Returns true if the gate of the innermost `forall` lets a further branch begin. Asks the
    /// driver if the answer is unknown.
    pub(crate) fn passes_gate(&mut self, task: &mut Task) -> bool {
        let Some((gate, has_more)) = gate_and_words(top_join(task)) else { return true };
        match gate.state {
            GateState::Open => true,
            _ if !has_more => {
                self.leave_gate(task);
                true
            }
            GateState::Asked(_) | GateState::Waiting(_) => false,
            GateState::Closed => {
                let operation = self.requests.query(task, Query::FreeResources);
                if let Some(gate) = gate_of(top_join(task)) {
                    gate.state = GateState::Asked(operation);
                }
                false
            }
        }
    }

    /// Handles the answer of the driver, or its absence, in which case the branch begins.
    pub(crate) fn resources_known(&mut self, task: &mut Task, result: &Result<Reply, Refusal>) {
        let (now, check) = (self.now(), Timer::Gate(task.id));
        let Some(gate) = gate_of(top_join(task)) else { return };
        let missing = match result {
            Ok(Reply::Text(answer)) => gate.missing(answer),
            _ => None,
        };
        // A wait has one record at its beginning and one at its end.
        let event = match missing {
            Some(missing) => {
                gate.state = GateState::Waiting(self.scheduler.arm(now + CHECK_INTERVAL, check));
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
            self.log(task, || event, level);
        }
    }

    /// Stops waiting for resources.
    pub(crate) fn leave_gate(&mut self, task: &mut Task) {
        self.scheduler.cancel(gate_of(top_join(task)).and_then(|gate| gate.timer()));
        self.requests.leave_gate(top_join(task));
    }
}

impl Requests {
    /// Takes back the request for the resources of the machine.
    fn leave_gate(&mut self, join: Option<&mut JoinFrame>) {
        let Some(gate) = gate_of(join) else { return };
        if let GateState::Asked(operation) = std::mem::replace(&mut gate.state, GateState::Closed) {
            self.abandon(operation);
        }
    }
}

impl Tasks {
    /// Returns true if the branches of a task wait for this operation.
    pub(crate) fn is_gated_by(&mut self, task: TaskId, operation: OperationId) -> bool {
        let gate = gate_of(self.get_mut(task).and_then(|task| top_join(task)));
        gate.is_some_and(|gate| matches!(gate.state, GateState::Asked(asked) if asked == operation))
    }
}

/// Lets the task ask again, after a while.
pub(crate) fn check_is_due(task: &mut Task) {
    if let Some(gate) = gate_of(top_join(task)) {
        gate.close();
    }
}

/// Returns the gate of a `forall`.
pub(crate) fn gate_of(join: Option<&mut JoinFrame>) -> Option<&mut ResourceGate> {
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
