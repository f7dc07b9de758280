//! Runs that go on in another process, and that are left to it.

use super::Machine;
use super::effect::ProcessId;
use super::event::{Status, Suspension};

impl Machine {
    /// The run goes on in another process: of these commands nobody knows what came of them.
    pub(super) fn resumed(&mut self, lost: Vec<ProcessId>) {
        for process in lost {
            self.exited(process, Status::Lost, None, false);
        }
    }

    /// The shell ends, but not the run.
    pub(super) fn suspended(&mut self, reason: Suspension) {
        match reason {
            Suspension::Signal(signal) => self.interrupted(signal),
            Suspension::Deadline => self.run_deadline_passed(),
        }
    }
}
