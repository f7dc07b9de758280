//! The machine: its public interface, and the parts behind it.

pub mod driver;
mod ending;
mod events;
mod running;
mod session;

use std::sync::Arc;

use bstr::BString;

use crate::commands::CommandRunner;
use crate::config::Config;
use crate::core::{Breach, Core, Flow, Requests};
use crate::effect::{Directory, Effect, Environment, IoId, ScopeId};
use crate::event::Event;
use crate::invocation::IoTable;
use crate::lower::lower;
use crate::outcome::Outcome;
use crate::packed::{PackedBranch, Unrunnable};
use crate::parallel::{Forker, next_word_is_due};
use crate::program::Definitions;
use crate::random::Random;
use crate::remote::{Dispatcher, Unpacked};
use crate::scheduler::Timer;
use crate::supply::check_is_due;
use crate::tasks::{ParentContext, Task, TaskState};
use crate::time::Time;
use crate::tries::TryRunner;
use crate::unwind::{Cut, Unwinder};
use crate::variables::Variables;
use crate::{MAIN, Output, builtins};
use ftsh_syntax::Script;
use ftsh_syntax::ast::Block;

/// A run of a script.
pub struct Machine {
    core: Core,
    definitions: Definitions,
    random: Random,
    outcome: Option<Outcome>,
    /// Set by `exit`.
    exit_requested: bool,
}

impl Machine {
    /// Creates a run of `script`, which begins at [`Time::START`]. `args` are `$0`, `$1`, …; the
    /// same `seed` and the same events give the same run.
    pub fn new(
        script: &Script,
        args: Vec<BString>,
        environment: Environment,
        config: Config,
        seed: u64,
    ) -> Self {
        let requests = Requests::default();
        let program = Arc::new(lower(script));
        let variables = Variables::new(environment, config.secrets.clone());
        let names = variables.iter().map(|(name, _)| Arc::clone(name)).collect();
        let main = Task {
            id: MAIN,
            parent: None,
            slot: None,
            program: Arc::clone(&program),
            at: 0,
            stack: Vec::new(),
            frames: Vec::new(),
            variables,
            args: Arc::new(args),
            directory: Directory::default(),
            umask: None,
            io: IoTable::new(requests.handle(IoId::INHERITED), config.passing_input),
            scope: ScopeId::SCRIPT,
            inherited: ParentContext { deadline: config.deadline, ..ParentContext::default() }
                .into(),
            state: TaskState::Ready,
            since: Time::START,
            attempts: 0,
            expanded: None,
            progress: None,
            files: None,
            cancellations: Vec::new(),
            locals: Vec::new(),
        };
        let deadline = config.deadline;
        let mut core = Core::new(config, requests, names);
        core.parts().tasks.put(Box::new(main));
        core.queue(MAIN);
        core.new_scope(None);
        if let Some(deadline) = deadline.moment() {
            core.arm(deadline, Timer::RunDeadline);
        }
        let mut definitions = Definitions::default();
        definitions.add(&program);
        let random = Random::new(seed);
        Self { core, definitions, random, outcome: None, exit_requested: false }
    }

    /// Creates a machine for a remote branch. The branch begins at `now` on the clock of the head's
    /// run.
    pub fn of_branch(mut packed: PackedBranch, now: Time) -> Result<Self, Unrunnable> {
        let mut unpacked = Unpacked::new(&packed)?;
        let nothing = Script::new(Arc::default(), Block::default());
        let (arguments, config) = (std::mem::take(&mut packed.arguments), packed.config.clone());
        let mut machine = Self::new(&nothing, arguments, Vec::new(), config, packed.seed);
        machine.core.parts().scheduler.advance(now);
        machine.core.parts().scheduler.clear();
        machine.definitions = std::mem::take(&mut unpacked.definitions);
        let mut entered = Ok(());
        machine.resume(MAIN, |machine, task| {
            task.since = now;
            match unpacked.enter(packed, task, &mut machine.core) {
                Ok((code, word)) => machine.forker().begin_root(task, &code, word),
                Err(error) => entered = Err(error),
            }
            Flow::Wait(TaskState::Children)
        });
        entered?;
        Ok(machine)
    }

    /// Returns true if the script may run programs (commands other than functions and builtins, or
    /// commands whose names are known only at run time), or use files whose file systems may hang.
    pub fn needs_supervisor(&self) -> bool {
        let runs = |name: &str| {
            builtins::named(name)
                .is_none_or(|builtin| builtin.runs_commands() || builtin.is_program())
        };
        let main = self.core.tasks().main();
        main.is_some_and(|main| self.definitions.needs_supervisor(&main.program, &runs))
    }

    /// Returns the next output. Poll again after `Effect`; wait after `Timeout`.
    pub fn poll_output(&mut self) -> Output {
        if self.core.requests().is_empty() && self.outcome.is_none() {
            self.run_slice();
        }
        let parts = self.core.parts();
        if let Some(effect) = parts.requests.next() {
            if matches!(effect, Effect::Run(_) | Effect::Dispatch(_)) {
                parts.scheduler.count_start();
            }
            return Output::Effect(effect);
        }
        match &self.outcome {
            Some(outcome) => Output::Finished(outcome.clone()),
            None => Output::Timeout(self.core.parts().scheduler.end_slice()),
        }
    }

    /// Returns true if the run is over.
    pub fn is_finished(&self) -> bool {
        self.outcome.is_some()
    }

    /// Handles an event at `now`.
    pub fn handle_event(&mut self, now: Time, event: Event) {
        if let Event::Resumed { lost, committed } = event {
            return self.resumed(now, lost, &committed);
        }
        // A deadline that has passed counts first, however late the driver returns with an event.
        self.pass_time(now);
        match event {
            Event::Spawned { process, pid } => self.spawned(process, pid),
            Event::SpawnFailed { process, error } => self.spawn_failed(process, error),
            Event::Exited { process, status, line, reader_gone } => {
                self.exited(process, status, line, reader_gone);
            }
            Event::Placed { process, node } => self.placed(process, &node),
            Event::Returned { process, returned } => self.returned(process, returned),
            Event::Queued { operation } => self.queued(operation),
            Event::Done { operation, result } => self.done(operation, result),
            Event::Emptied { scope } => self.scope_emptied(scope),
            Event::Stalled { scope } => self.scope_breached(scope, Breach::Stalled),
            Event::OverMemory { scope, memory } => {
                self.scope_breached(scope, Breach::Memory(memory));
            }
            Event::Interrupted(signal) => self.interrupted(signal),
            Event::Resumed { .. } => {} // handled above
            Event::Suspended(reason) => self.suspended(reason),
        }
    }

    /// Handles the passing of time up to `now`, when no event is left.
    pub fn handle_timeout(&mut self, now: Time) {
        self.core.parts().scheduler.renew();
        self.pass_time(now);
    }

    fn pass_time(&mut self, now: Time) {
        self.core.parts().scheduler.advance(now);
        while self.outcome.is_none()
            && let Some(timer) = self.core.parts().scheduler.due()
        {
            match timer {
                Timer::Deadline { task, id } => self.resume(task, |machine, task| {
                    Unwinder::new(&mut machine.core).cut(task, id, &Cut::Try)
                }),
                Timer::EachAttempt { task, id } => self.resume(task, |machine, task| {
                    Unwinder::new(&mut machine.core).cut(task, id, &Cut::Attempt)
                }),
                Timer::Wake(task) => self.wake(task),
                Timer::Hedge(task) => self.branch_due(task, next_word_is_due),
                Timer::Escalation(scope) => self.core.escalate(scope),
                Timer::Group(task) => self.forker().begin_group(task),
                Timer::Gate(task) => self.branch_due(task, check_is_due),
                Timer::KillGrace(scope) => self.core.grace_passed(scope),
                Timer::Cleaning { task, keep } => self.resume(task, |machine, task| {
                    Unwinder::new(&mut machine.core).cleanup_deadline_passed(task, keep)
                }),
                Timer::RunDeadline => self.run_deadline_passed(),
            }
        }
    }

    /// Returns the executor of commands and calls.
    fn commands(&mut self) -> CommandRunner<'_> {
        let Self { core, definitions, random, exit_requested, .. } = self;
        CommandRunner { core, definitions, random, exit_requested }
    }

    /// Returns the executor of attempts.
    fn tries(&mut self) -> TryRunner<'_> {
        let Self { core, definitions, random, .. } = self;
        TryRunner { core, definitions, random }
    }

    /// Returns the starter of parallel tasks.
    fn forker(&mut self) -> Forker<'_> {
        let Self { core, definitions, random, .. } = self;
        Forker { core, definitions, random }
    }

    /// Returns the dispatcher of remote branches.
    fn dispatcher(&mut self) -> Dispatcher<'_> {
        let Self { core, definitions, random, .. } = self;
        Dispatcher { core, definitions, random }
    }
}
