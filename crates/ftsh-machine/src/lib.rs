//! The pure interpreter: it never blocks, reads no clock, opens no file and starts no process. It
//! says what it wants done ([`Effect`]) and is told what came of it ([`Event`]).

#![forbid(unsafe_code)]

mod atomic;
pub mod channels;
mod commands;
mod eval;
mod forall;
mod forany;
mod grouped_output;
mod interface;
mod loops;
mod pipelines;
mod program;
mod remote;
mod resume;
mod scopes;
pub mod secrets;
pub mod status;
mod tasks;
mod tries;
mod unwind;
mod values;

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bstr::BString;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

pub use crate::config::Config;
pub use crate::effect::Effect;
pub use crate::event::Event;
pub use crate::grouped_output::relay::field;
pub use crate::outcome::{Failure, FailureKind, Outcome};
pub use crate::remote::pack::Packed;
pub use crate::remote::unpack::failure;
pub use crate::time::Time;

pub use crate::commands::builtins;
pub use crate::eval::functions;
pub use crate::interface::{config, control, driver, effect, event, outcome, record, time};
pub use crate::remote::packed;
pub use crate::tasks::trace;
pub use crate::values::size;

use crate::channels::Rules;
use crate::commands::table::Table;
use crate::effect::{Environment, IoId, OperationId, ProcessId, ScopeId, TaskId};
use crate::event::{Refusal, Reply, SpawnError, Status};
use crate::grouped_output::let_out::Refused;
use crate::program::code::{Address, Instruction, Program};
use crate::record::{LogEvent, Record};
use crate::remote::engines::Engines;
use crate::remote::unpack::Lone;
use crate::scopes::scope::Scopes;
use crate::tasks::flow::Flow;
use crate::tasks::task::{Inherited, State, Task};
use crate::tasks::timer::{Timer, Timers};
use crate::values::value::{Handle, Released, Resource};
use crate::values::variables::Variables;
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Name, Part};

/// Which machine it takes to repeat a run: to be raised whenever a machine may do something else than
/// before when it is told the same. What decides counts: `rand`, `rand_distr`, `regex`, `strsim`.
pub const BEHAVIOR: u32 = 6;

/// What to do next.
#[derive(Debug)]
pub enum Output {
    /// Carry this out.
    Effect(Effect),
    /// Nothing to do before this moment; call `handle_timeout` then, or `handle_event` earlier.
    Timeout(Time),
    /// The run is over.
    Finished(Outcome),
}

/// How many instructions run between looks at the clock.
const SLICE: usize = 5_000;

/// So many bytes that one copies, compares or splits count as another one.
const BYTES: usize = 256;

/// A run of a script.
pub struct Machine {
    config: Config,
    now: Time,
    seed: u64,
    /// Made when it is first needed, which in most runs is never.
    rng: Option<ChaCha8Rng>,
    functions: BTreeMap<Name, (Arc<Program>, Address)>,
    /// Those that there is a declaration of, with their rules once that was run.
    channels: BTreeMap<Name, Option<Arc<Rules>>>,
    tasks: BTreeMap<TaskId, Box<Task>>,
    ready: VecDeque<TaskId>,
    effects: VecDeque<Effect>,
    timers: Timers,
    scopes: Scopes,
    engines: Engines,
    operations: BTreeMap<OperationId, TaskId>,
    processes: BTreeMap<ProcessId, TaskId>,
    emptying: BTreeMap<ScopeId, TaskId>,
    /// The scope that is emptied because of a signal.
    interrupted: Option<ScopeId>,
    released: Released,
    ids: u64,
    /// How many instructions may run before the next look at the clock.
    budget: usize,
    /// How many bytes the present one has handled.
    handled: Cell<usize>,
    outcome: Option<Outcome>,
    /// Whether the script said `exit`.
    left: bool,
    /// How branches are packed as they begin, if that is wanted.
    packing: Option<Packed>,
    /// The variables that the run has found.
    found: Vec<Name>,
    /// What it knows if it was made for a branch of another machine.
    lone: Option<Lone>,
}

/// The script's own task.
const MAIN: TaskId = TaskId(0);

impl Machine {
    /// A run of `script` from its beginning, at [`Time::START`]. `args` are `$0`, `$1`, …; the same
    /// `seed` and the same events give the same run.
    pub fn new(
        script: &Script,
        args: Vec<BString>,
        environment: Environment,
        config: Config,
        seed: u64,
    ) -> Self {
        let released = Released::default();
        let program = Arc::new(crate::program::lower::lower(script));
        let variables = Variables::new(environment, config.secrets.clone());
        let found = variables.iter().map(|(name, _)| Arc::clone(name)).collect();
        let main = Task {
            id: MAIN,
            parent: None,
            program: Arc::clone(&program),
            at: 0,
            stack: Vec::new(),
            frames: Vec::new(),
            variables,
            args: Arc::new(args),
            directory: None,
            umask: None,
            io: Table::new(Handle::new(IoId::INHERITED, &released), config.passing_input),
            scope: ScopeId::SCRIPT,
            inherited: Inherited { deadline: config.deadline, ..Inherited::default() }.into(),
            state: State::Ready,
            since: Time::START,
            attempts: 0,
            expanded: None,
            progress: None,
            cleaning: Vec::new(),
            locals: Vec::new(),
        };
        let mut machine = Self {
            now: Time::START,
            seed,
            rng: None,
            functions: BTreeMap::new(),
            channels: BTreeMap::new(),
            tasks: BTreeMap::from([(MAIN, Box::new(main))]),
            ready: VecDeque::from([MAIN]),
            effects: VecDeque::new(),
            timers: Timers::default(),
            scopes: Scopes::default(),
            engines: Engines::default(),
            operations: BTreeMap::new(),
            processes: BTreeMap::new(),
            emptying: BTreeMap::new(),
            interrupted: None,
            released,
            ids: 0,
            budget: SLICE,
            handled: Cell::new(0),
            outcome: None,
            left: false,
            packing: None,
            found,
            lone: None,
            config,
        };
        machine.define(&program);
        machine.new_scope(None);
        if let Some(deadline) = machine.config.deadline {
            machine.timers.arm(deadline, Timer::RunDeadline);
        }
        machine
    }

    /// Whether the script has commands that are neither functions nor builtins without programs,
    /// or that only running it can tell.
    pub fn may_run_programs(&self) -> bool {
        let main = self.tasks.get(&MAIN).map(|main| Arc::clone(&main.program));
        main.is_some_and(|program| {
            program.code.iter().any(|instruction| match instruction {
                Instruction::Command(command) => match &command.words[0].parts[..] {
                    [Part::Bare(name)] => {
                        !self.functions.contains_key(name.as_str())
                            && builtins::named(name).is_none_or(|builtin| {
                                builtin.runs_commands() || builtin.is_program()
                            })
                    }
                    _ => true,
                },
                _ => false,
            })
        })
    }

    /// What to do next. After `Effect`, ask again; after `Timeout`, wait.
    pub fn poll_output(&mut self) -> Output {
        if self.effects.is_empty() && self.outcome.is_none() {
            self.run_slice();
        }
        if let Some(effect) = self.effects.pop_front() {
            return Output::Effect(effect);
        }
        while let Some(resource) = self.released.pop() {
            if let Some(effect) = resource.dropped() {
                return Output::Effect(effect);
            }
        }
        match &self.outcome {
            Some(outcome) => Output::Finished(outcome.clone()),
            None => {
                self.budget = SLICE;
                let due = if self.ready.is_empty() { self.timers.next() } else { self.now };
                Output::Timeout(due)
            }
        }
    }

    /// Whether the run is over.
    pub fn is_finished(&self) -> bool {
        self.outcome.is_some()
    }

    /// Something happened, at `now`.
    pub fn handle_event(&mut self, now: Time, event: Event) {
        if let Event::Resumed { lost } = event {
            return self.resumed(now, lost);
        }
        self.handle_timeout(now);
        match event {
            Event::Spawned { process, .. } => self.spawned(process),
            Event::SpawnFailed { process, error } => self.spawn_failed(process, error),
            Event::Exited { process, status, line, unread } => {
                self.exited(process, status, line, unread);
            }
            Event::Placed { process, node } => self.placed(process, &node),
            Event::Returned { process, returned } => self.returned(process, returned),
            Event::Queued { operation } => self.queued(operation),
            Event::Done { operation, result } => self.done(operation, result),
            Event::Emptied { scope } => self.scope_emptied(scope),
            Event::Interrupted(signal) => self.interrupted(signal),
            Event::Resumed { .. } => {} // see above
            Event::Suspended(reason) => self.suspended(reason),
        }
    }

    /// Time has passed, up to `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        while self.outcome.is_none()
            && let Some(timer) = self.timers.pop(self.now)
        {
            match timer {
                Timer::Deadline { task, id } => self.deadline_passed(task, id),
                Timer::EachAttempt { task, id } => self.attempt_limit_passed(task, id),
                Timer::Wake(task) => self.wake(task),
                Timer::Hedge(task) => self.hedge_due(task),
                Timer::KillGrace(scope) => self.grace_passed(scope),
                Timer::Cleaning { task, keep } => self.cleaning_time_passed(task, keep),
                Timer::RunDeadline => self.run_deadline_passed(),
            }
        }
    }

    /// Tells the driver now what is held no more, before what is asked of it next.
    fn tell_released(&mut self) {
        let released = std::iter::from_fn(|| self.released.pop());
        self.effects.extend(released.filter_map(Resource::dropped));
    }

    /// Takes over what a program defines, and what it is going to declare.
    fn define(&mut self, program: &Arc<Program>) {
        for (name, address) in &program.functions {
            self.functions.insert(Arc::clone(name), (Arc::clone(program), *address));
        }
        for name in &program.channels {
            self.channels.entry(Arc::clone(name)).or_default();
        }
    }

    fn rng(&mut self) -> &mut ChaCha8Rng {
        let seed = self.seed;
        self.rng.get_or_insert_with(|| ChaCha8Rng::seed_from_u64(seed))
    }

    /// A whole number from one to the other, both included.
    fn draw(&mut self, from: i64, to: i64) -> i64 {
        self.rng().random_range(from..=to)
    }

    fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Runs tasks that can go on, up to an effect or until it is time to look at the clock.
    fn run_slice(&mut self) {
        while self.budget > 0
            && self.effects.is_empty()
            && self.outcome.is_none()
            && let Some(id) = self.ready.pop_front()
        {
            match self.tasks.get(&id).map(|task| &task.state) {
                Some(State::Ready) => self.resume(id, Self::run),
                Some(State::Forking) => self.resume(id, Self::more_branches),
                Some(State::Cleaning) => self.resume(id, Self::clean),
                // A task that was cut short since it was queued waits for something else now.
                _ => {}
            }
        }
    }

    /// Takes a task out, does something with it, and puts it where that leads.
    fn resume(&mut self, id: TaskId, step: impl FnOnce(&mut Self, &mut Task) -> Flow) {
        let Some(mut task) = self.tasks.remove(&id) else { return };
        let flow = step(self, &mut task);
        self.settle(task, flow);
    }

    fn settle(&mut self, mut task: Box<Task>, mut flow: Flow) {
        loop {
            match flow {
                Flow::Continue => {
                    task.state = State::Ready;
                    self.ready.push_back(task.id);
                    self.tasks.insert(task.id, task);
                    return;
                }
                Flow::Tell => {
                    task.state = State::Ready;
                    self.ready.push_front(task.id);
                    self.tasks.insert(task.id, task);
                    return;
                }
                Flow::Fork => {
                    task.state = State::Forking;
                    self.ready.push_back(task.id);
                    self.tasks.insert(task.id, task);
                    return;
                }
                Flow::Wait(state) => {
                    if let State::Emptying(scope, _) = &state {
                        self.emptying.insert(*scope, task.id);
                    }
                    task.state = state;
                    self.tasks.insert(task.id, task);
                    return;
                }
                Flow::Throw(thrown) => flow = self.throw(&mut task, thrown),
                Flow::End(ending) => flow = self.end_task(&mut task, ending),
                Flow::Ended(ending) => {
                    self.drop_task(&mut task);
                    if let Some(place) = task.parent {
                        let (child, left) = ((task.id, task.attempts), task.leave_behind());
                        drop(task);
                        self.child_ended(place, child, ending, left);
                    }
                    return;
                }
            }
        }
    }

    /// A program runs, so its redirections are set up. The driver logs it.
    fn spawned(&mut self, process: ProcessId) {
        let Some(task) = self.processes.get(&process) else { return };
        self.resume(*task, |machine, task| {
            if let State::Command(command) = &mut task.state {
                if let Some(written) = &mut command.written {
                    written.waits = false;
                }
                if command.replaces_shell {
                    machine.leave_all(task);
                }
            }
            Flow::keep_waiting(task)
        });
    }

    fn spawn_failed(&mut self, process: ProcessId, error: SpawnError) {
        if let Some(task) = self.processes.remove(&process) {
            if self.lets_out(task, process) {
                return self.let_out_done(task, Refused::by(Err(error)));
            }
            if self.commits(task, process) {
                return self.stream_let_out(task, Refused::by(Err(error)));
            }
            self.resume(task, |machine, task| machine.command_refused(task, error));
        }
    }

    fn exited(&mut self, process: ProcessId, status: Status, line: Option<BString>, unread: bool) {
        if let Some(task) = self.processes.remove(&process) {
            if self.lets_out(task, process) {
                return self.let_out_done(task, Refused::by(Ok(status)));
            }
            if self.commits(task, process) {
                return self.stream_let_out(task, Refused::by(Ok(status)));
            }
            self.resume(task, |machine, task| machine.command_ended(task, status, line, unread));
        }
    }

    /// Whether a task has this only write what its branches printed.
    fn lets_out(&self, task: TaskId, process: ProcessId) -> bool {
        self.tasks
            .get(&task)
            .is_some_and(|task| crate::grouped_output::let_out::letting_out(task) == Some(process))
    }

    fn done(&mut self, operation: OperationId, result: Result<Reply, Refusal>) {
        if let Some(task) = self.operations.remove(&operation) {
            if self.is_relayed_by(task, operation) {
                return self.relay_done(task, result);
            }
            self.resume(task, |machine, task| match &task.state {
                State::Entering(_) => machine.entered(task, result),
                _ => machine.operation_done(task, result),
            });
        }
    }

    /// Logs an event of a task, if the log tells such.
    fn log(&mut self, task: &Task, event: impl FnOnce() -> LogEvent, level: crate::record::Level) {
        if self.config.log_level >= level {
            let record = self.record(task, task.line(), event());
            self.effects.push_back(Effect::Log(record));
        }
    }

    /// Logs an event of the whole run.
    fn log_run(&mut self, event: LogEvent) {
        if let Some(main) = self.tasks.get(&MAIN)
            && self.config.log_level >= event.level()
        {
            let file = Arc::clone(main.program.source.name());
            self.effects.push_back(Effect::Log(Record::of_shell(self.now, file, 0, event)));
        }
    }

    /// What the log tells of an event of a task.
    fn record(&self, task: &Task, line: u32, event: LogEvent) -> Record {
        Record {
            at: self.now,
            level: event.level(),
            task: Some(task.id),
            parent: task.parent.map(|(parent, _)| parent),
            group: self.group(task),
            file: Arc::clone(task.program.source.name()),
            line,
            attempt: task.attempt().map(|attempt| attempt.number).filter(|number| *number > 0),
            uncaught: false,
            event,
        }
    }
}
