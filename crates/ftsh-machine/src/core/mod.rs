//! Parts of a machine that every statement uses, and the control flow between them.

mod context;
mod families;
mod flow;
mod kept_output;
mod learning;
mod log;
mod requests;
mod running;
mod scopes;
mod trace;

use crate::config::Config;
use crate::durations::KnownDurations;
use crate::effect::TaskId;
use crate::elsewhere::{EngineLoad, Remote};
use crate::scheduler::{Scheduler, Timer, TimerKey};
use crate::tasks::Tasks;
use crate::time::Time;
use ftsh_syntax::ast::Name;
use ftsh_syntax::engine::EngineId;

pub(crate) use self::flow::end_word_call;

pub(crate) use self::flow::{Flow, Step};
pub(crate) use self::requests::Requests;
pub(crate) use self::running::Breach;
pub(crate) use self::scopes::{ChannelPass, ScopeWatch};

use self::scopes::Scopes;

/// State of a run that every statement uses.
///
/// Statements read the parts, make requests and arm timers. Only the machine and the statements
/// that `parts` names change a part in another way.
pub(crate) struct Core {
    config: Config,
    tasks: Tasks,
    scheduler: Scheduler,
    requests: Requests,
    scopes: Scopes,
    remote: Remote,
    durations: KnownDurations,
}

/// The parts of a [`Core`] that change, each borrowed apart from the others.
pub(crate) struct Parts<'a> {
    /// All tasks except the one being executed.
    pub tasks: &'a mut Tasks,
    /// Clock, timers and run queue.
    pub scheduler: &'a mut Scheduler,
    /// Effects, and the tasks waiting for their results.
    pub requests: &'a mut Requests,
    /// Families of processes.
    pub scopes: &'a mut Scopes,
    /// Engines of remote branches, and the context of a branch that this machine runs for another
    /// machine.
    pub remote: &'a mut Remote,
}

impl Core {
    /// Creates the state of a run with the names of variables from its environment.
    pub(crate) fn new(config: Config, requests: Requests, inherited_names: Vec<Name>) -> Self {
        Self {
            config,
            tasks: Tasks::default(),
            scheduler: Scheduler::default(),
            requests,
            scopes: Scopes::default(),
            remote: Remote::new(inherited_names),
            durations: KnownDurations::default(),
        }
    }

    /// Returns the parts, to change some of them.
    pub(crate) fn parts(&mut self) -> Parts<'_> {
        let Self { tasks, scheduler, requests, scopes, remote, .. } = self;
        Parts { tasks, scheduler, requests, scopes, remote }
    }

    /// Returns the settings of the run.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns all tasks except the one being executed.
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Returns the clock, the timers and the run queue.
    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Returns the requests that wait for the driver, and the waiting tasks.
    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Returns the families of processes.
    pub(crate) fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Returns the state of remote branches.
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Returns the durations of earlier attempts.
    pub(crate) fn durations(&self) -> &KnownDurations {
        &self.durations
    }

    /// Returns the state of an engine of remote branches.
    pub(crate) fn engine(&mut self, engine: EngineId) -> &mut EngineLoad {
        self.remote.engine(engine)
    }

    /// Returns the present moment.
    pub(crate) fn now(&self) -> Time {
        self.scheduler.now()
    }

    /// Arms a timer.
    pub(crate) fn arm(&mut self, at: Time, timer: Timer) -> TimerKey {
        self.scheduler.arm(at, timer)
    }

    /// Disarms timers; unknown timers are ignored.
    pub(crate) fn cancel(&mut self, timers: impl IntoIterator<Item = TimerKey>) {
        self.scheduler.cancel(timers);
    }

    /// Appends a task to the queue of ready tasks.
    pub(crate) fn queue(&mut self, task: TaskId) {
        self.scheduler.queue(task);
    }
}
