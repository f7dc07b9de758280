//! The parts of a machine that every statement works with.

use crate::config::Config;
use crate::interface::requests::Requests;
use crate::remote::state::Remote;
use crate::scopes::tree::Scopes;
use crate::tasks::scheduler::Scheduler;
use crate::tasks::table::Tasks;
use crate::time::Time;

/// The parts of a machine that every statement works with. Each part keeps its state to itself.
pub struct Core {
    /// Settings of the run.
    pub config: Config,
    /// All tasks but the one that a step is carried out on.
    pub tasks: Tasks,
    /// Clock, timers and run queue.
    pub scheduler: Scheduler,
    /// Effects, and who waits for what comes of them.
    pub requests: Requests,
    /// Families of processes.
    pub scopes: Scopes,
    /// Engines of remote branches, and the context of a machine that runs such a branch.
    pub remote: Remote,
}

impl Core {
    /// Returns the present moment.
    pub fn now(&self) -> Time {
        self.scheduler.now()
    }
}
