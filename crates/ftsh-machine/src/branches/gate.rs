//! State of the clauses `while free` and `while load` of `forall`.

use crate::effect::OperationId;
use crate::event::FreeResources;
use crate::scheduler::TimerKey;
use crate::time::Time;
use ftsh_syntax::size::HumanBytes;

/// Resources that a further branch needs.
#[derive(Debug)]
pub(crate) struct ResourceGate {
    /// Bytes of memory that must be available.
    free: Option<u64>,
    /// Highest load of the machine.
    load: Option<f64>,
    /// Present state.
    pub state: GateState,
    /// Beginning of the wait, after an answer with too few resources.
    pub waiting_since: Option<Time>,
}

/// States of a gate.
#[derive(Debug)]
pub(crate) enum GateState {
    /// The next branch may begin.
    Open,
    /// The next branch needs an answer of the driver.
    Closed,
    /// The driver has been asked.
    Asked(OperationId),
    /// The driver is asked again when the timer is due.
    Waiting(TimerKey),
}

impl ResourceGate {
    /// Creates the gate of a `forall`, which lets the first branch begin.
    pub(crate) fn new(free: Option<u64>, load: Option<f64>) -> Self {
        Self { free, load, state: GateState::Open, waiting_since: None }
    }

    /// Returns the timer of the next check.
    pub(crate) fn timer(&self) -> Option<TimerKey> {
        match self.state {
            GateState::Waiting(timer) => Some(timer),
            GateState::Open | GateState::Closed | GateState::Asked(_) => None,
        }
    }

    /// Returns true if an answer or a timer is awaited.
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(self.state, GateState::Asked(_) | GateState::Waiting(_))
    }

    /// Returns true if the driver has been asked.
    pub(crate) fn is_asked(&self) -> bool {
        matches!(self.state, GateState::Asked(_))
    }

    /// Closes the gate after a branch that begins.
    pub(crate) fn close(&mut self) {
        self.state = GateState::Closed;
    }

    /// Returns a description of the missing resources; `None` if the resources suffice. An unknown
    /// resource suffices.
    pub(crate) fn missing(&self, there: FreeResources) -> Option<String> {
        let free = self.free.zip(there.memory).filter(|(least, free)| free < least);
        let load = self.load.zip(there.load).filter(|(most, load)| load > most);
        let memory = free.map(|(least, free)| {
            format!("{} of memory available instead of {}", HumanBytes(free), HumanBytes(least))
        });
        let time = load.map(|(most, load)| format!("a load of {load} instead of {most}"));
        let missing: Vec<String> = memory.into_iter().chain(time).collect();
        (!missing.is_empty()).then(|| missing.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_resources_suffice() {
        let gate = |free, load| ResourceGate::new(free, load);
        let both = gate(Some(2_000_000_000), Some(1.5));
        let there = |memory, load| FreeResources { memory, load };
        assert_eq!(both.missing(there(Some(2_000_000_000), Some(1.5))), None);
        let missing = |memory, load| {
            both.missing(there(Some(memory), Some(load))).expect("missing resources")
        };
        assert_eq!(missing(1_200_000_000, 1.5), "1.2 GB of memory available instead of 2 GB");
        assert_eq!(missing(2_000_000_000, 1.51), "a load of 1.51 instead of 1.5");
        let all = "500 MB of memory available instead of 2 GB, a load of 3.25 instead of 1.5";
        assert_eq!(missing(500_000_000, 3.25), all);
        assert_eq!(both.missing(there(None, None)), None);
        assert_eq!(both.missing(there(None, Some(0.5))), None);
        assert!(both.missing(there(None, Some(2.0))).is_some());
        assert_eq!(gate(None, Some(8.0)).missing(there(Some(0), Some(8.0))), None);
    }
}
