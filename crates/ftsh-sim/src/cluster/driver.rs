//! World of one shell, with a cluster.

use super::SimulatedCluster;
use crate::Simulated;
use ftsh_machine::driver::Driver;
use ftsh_machine::{Effect, Event, Time};

/// Modelled world of one shell whose branches may run on a cluster.
pub struct Clustered {
    /// World of the shell.
    pub world: Simulated,
    /// Nodes and branches.
    pub cluster: SimulatedCluster,
}

impl Driver for Clustered {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        let (shell, world) = self.world.parts();
        if let Some(effect) = self.cluster.perform(effect, shell, world) {
            self.world.perform(effect);
        }
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        loop {
            if let Some(event) = self.cluster.poll_event() {
                return Some(event);
            }
            let due = self.cluster.next_due();
            let event = self.world.wait(until.min(due));
            let is_late = event.is_none() && until < due;
            let event = event.and_then(|event| self.cluster.filter_event(event));
            let (shell, world) = self.world.parts();
            self.cluster.pass(shell, world);
            if event.is_some() || is_late {
                return event;
            }
        }
    }
}
