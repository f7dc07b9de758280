//! Branches on other machines: only the branch's own record counts as success, its effects are then
//! complete, and no replacement begins before its end, whatever the engine does.

use std::collections::BTreeMap;
use std::time::Duration;

use ftsh_machine::effect::{ProcessId, ScopeId, TaskId};
use ftsh_machine::event::{Blame, Returned};
use ftsh_machine::packed::BranchEnd;
use ftsh_machine::{Effect, Event, Time};
use ftsh_sim::cluster::{Fault, NodeAttempt};
use ftsh_syntax::engine::EngineId;

use super::{Judged, Look, Oracle, Verdict};

#[derive(Default)]
pub(crate) struct Elsewhere {
    /// Dispatched branches with their ids and scopes, and true for a carrier.
    sent: BTreeMap<ProcessId, (TaskId, ScopeId, bool)>,
    /// Time at which the machine learned that nothing of a branch is left.
    gone: BTreeMap<ProcessId, Time>,
    returned: Vec<(ProcessId, Returned)>,
    emptied: Vec<(ScopeId, Time)>,
    succeeded: BTreeMap<TaskId, ProcessId>,
    judged: Judged,
}

impl Oracle for Elsewhere {
    fn name(&self) -> &'static str {
        "branches elsewhere"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        let Effect::Dispatch(dispatch) = effect else { return Ok(()) };
        if self.succeeded.contains_key(&dispatch.task) {
            return Err(format!("{:?} is sent again after its success", dispatch.task));
        }
        if self.sent.values().any(|(task, ..)| *task == dispatch.task) {
            self.judged.count("elsewhere: sent again");
        }
        let is_carried = matches!(dispatch.on.engine, EngineId::Carrier(_));
        self.sent.insert(dispatch.process, (dispatch.task, dispatch.scope, is_carried));
        Ok(())
    }

    fn event(&mut self, now: Time, event: &Event) -> Verdict {
        match event {
            Event::Returned { process, returned } => {
                self.gone.insert(*process, now);
                self.returned.push((*process, returned.clone()));
            }
            Event::Emptied { scope } => self.emptied.push((*scope, now)),
            _ => {}
        }
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Verdict {
        for (scope, at) in std::mem::take(&mut self.emptied) {
            for (process, (_, inner, _)) in &self.sent {
                if look.families.is_within(*inner, scope) && !self.gone.contains_key(process) {
                    self.gone.insert(*process, at);
                    self.judged.count("elsewhere: cut short");
                }
            }
        }
        for (process, returned) in std::mem::take(&mut self.returned) {
            self.returned(process, &returned, look.attempts)?;
        }
        for (index, attempt) in look.attempts.iter().enumerate() {
            let NodeAttempt { process, node, fault, began, over, .. } = attempt;
            if look.attempts[..index].iter().any(|earlier| earlier.process == *process) {
                return Err(format!("{process:?} begins a second time, on {node}"));
            }
            if self.sent.get(process).is_some_and(|(.., is_carried)| *is_carried)
                && matches!(fault, Some(Fault::Joins(_) | Fault::Drops(_, Duration::ZERO)))
            {
                return Err(format!("{process:?} begins on {node} without its streams"));
            }
            let outlives = |at: Time| *began > at || over.is_none_or(|over| over > at);
            if let Some(at) = self.gone.get(process).filter(|at| outlives(**at)) {
                let at = at.elapsed();
                return Err(format!("{process:?} is on {node} after it is gone, since {at:?}"));
            }
            if look.outcome.is_some() && over.is_none() {
                return Err(format!("{process:?} is on {node} after the run"));
            }
        }
        one_after_the_other(look.attempts)
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}

/// Checks that no branch is in two places at once.
pub(crate) fn one_after_the_other(attempts: &[NodeAttempt]) -> Verdict {
    let mut last: BTreeMap<TaskId, &NodeAttempt> = BTreeMap::new();
    for attempt in attempts {
        let NodeAttempt { task, node, began, .. } = attempt;
        if let Some(before) = last.insert(*task, attempt)
            && before.over.is_none_or(|over| over > *began)
        {
            return Err(format!("{task:?} begins on {node} while it is on {}", before.node));
        }
    }
    Ok(())
}

impl Elsewhere {
    /// Checks the reports that the machine received.
    fn returned(
        &mut self,
        process: ProcessId,
        returned: &Returned,
        attempts: &[NodeAttempt],
    ) -> Verdict {
        let attempt = attempts.iter().find(|attempt| attempt.process == process);
        let (ended, attempt) = match (returned, attempt) {
            (Returned::NotBegun { blame, .. }, None) => {
                let is_down = *blame == Blame::Engine;
                let what = if is_down { "elsewhere: engine down" } else { "elsewhere: not begun" };
                self.judged.count(what);
                return Ok(());
            }
            (Returned::NotBegun { .. }, Some(it)) => {
                return Err(format!(
                    "{process:?} has begun on {}, and is said not to have",
                    it.node
                ));
            }
            (Returned::Lost { .. } | Returned::Files { .. }, attempt) => {
                if attempt.is_some_and(|attempt| attempt.placed) {
                    return Err(format!("{process:?} fails, and its files are in their places"));
                }
                self.judged.count("elsewhere: fails");
                return Ok(());
            }
            (Returned::Ended { .. }, None) => {
                return Err(format!("{process:?} never began, and is said to have ended"));
            }
            (Returned::Ended { ended, .. }, Some(attempt)) => (ended, attempt),
        };
        if attempt.ended.as_ref() != Some(ended) {
            return Err(format!("{ended:?} instead of {:?}", attempt.ended));
        }
        let gives_files = attempt.gives_files && ended.end == BranchEnd::Succeeded;
        if attempt.placed != gives_files {
            return Err(format!("{process:?}: the files are in their places: {}", attempt.placed));
        }
        if gives_files {
            self.judged.count("elsewhere: gives files");
        }
        match attempt.fault {
            Some(Fault::StartsTwice(_)) => self.judged.count("elsewhere: second start"),
            Some(Fault::Repeats(_)) => self.judged.count("elsewhere: repeated output"),
            _ => {}
        }
        if attempt.received != attempt.printed && !matches!(attempt.fault, Some(Fault::Repeats(_)))
        {
            return Err(format!("{:?} instead of {:?}", attempt.received, attempt.printed));
        }
        if !attempt.printed[0].is_empty() {
            self.judged.count("elsewhere: output");
        }
        if ended.end != BranchEnd::Succeeded {
            self.judged.count("elsewhere: fails");
            return Ok(());
        }
        self.judged.count("elsewhere: succeeds");
        match self.succeeded.insert(attempt.task, process) {
            Some(_) => Err(format!("{:?} succeeds twice", attempt.task)),
            None => Ok(()),
        }
    }
}
