//! Parts of a machine used by every statement.

use super::{requests::Requests, scopes::Scopes};
use crate::config::Config;
use crate::durations::KnownDurations;
use crate::elsewhere::Remote;
use crate::scheduler::Scheduler;
use crate::tasks::Tasks;
use crate::time::Time;

/// Parts of a machine used by every statement. Each part encapsulates its state.
pub(crate) struct Core {
    /// Settings of the run.
    pub config: Config,
    /// All tasks except the one being executed.
    pub tasks: Tasks,
    /// Clock, timers and run queue.
    pub scheduler: Scheduler,
    /// Effects, and the tasks waiting for their results.
    pub requests: Requests,
    /// Families of processes.
    pub scopes: Scopes,
    /// Engines of remote branches, and the context of a branch that this machine runs for another
    /// machine.
    pub remote: Remote,
    /// Durations of earlier attempts.
    pub durations: KnownDurations,
}

impl Core {
    /// Returns the present moment.
    pub(crate) fn now(&self) -> Time {
        self.scheduler.now()
    }
}
