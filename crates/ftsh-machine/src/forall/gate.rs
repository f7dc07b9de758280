//! State of the clauses `while free` and `while load` of `forall`.

use bstr::ByteSlice;

use crate::effect::OperationId;
use crate::tasks::timer::TimerKey;

/// Resources that a further branch needs.
#[derive(Debug)]
pub(crate) struct ResourceGate {
    /// Bytes of memory that must be available.
    free: Option<u64>,
    /// Highest load of the machine.
    load: Option<f64>,
    /// Present state.
    pub state: GateState,
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
        Self { free, load, state: GateState::Open }
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

    /// Returns true if the resources suffice. An unknown resource suffices.
    pub(crate) fn suffices(&self, answer: &[u8]) -> bool {
        let answer = answer.to_str_lossy();
        let (free, load) = answer.split_once(' ').unwrap_or((&*answer, ""));
        let (free, load) = (free.parse::<f64>().ok(), load.parse::<f64>().ok());
        let has_memory = self.free.zip(free).is_none_or(|(least, free)| free >= least as f64);
        let has_time = self.load.zip(load).is_none_or(|(most, load)| load <= most);
        has_memory && has_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_resources_suffice() {
        let gate = |free, load| ResourceGate { free, load, state: GateState::Closed };
        let both = gate(Some(2000), Some(1.5));
        assert!(both.suffices(b"2000 1.5"));
        assert!(!both.suffices(b"1999 1.5"));
        assert!(!both.suffices(b"2000 1.51"));
        assert!(both.suffices(b"- -") && both.suffices(b"- 0.5") && !both.suffices(b"- 2"));
        assert!(gate(None, Some(8.0)).suffices(b"0 8.0"));
    }
}
