//! Many shells in one modelled world, in virtual time. Each client is a machine of the library that
//! runs a real script. Its commands are models with the shared state of a scenario.

pub mod cluster;
pub mod disk;
mod events;
pub mod queue;
pub mod servers;
pub mod service;

use std::time::Duration;

use bstr::BString;
use ftsh_machine::effect::{Dispatch, Effect, Environment, ProcessId, Query};
use ftsh_machine::event::{CommandStatus, Reply};
use ftsh_machine::record::LogRecord;
use ftsh_machine::{Config, Event, Machine, Outcome, Output, Time};
use ftsh_sim::{Ask, Call, Due, Model, ProgramEnd, Shell, SimulatedChannels, World as Around};
use ftsh_syntax as syntax;
use ftsh_syntax::Script;
use ftsh_syntax::backoff::Policy;

use crate::common::Random;
pub use events::Events;

/// Models of commands with their shared state.
pub trait CommandModels {
    /// Alarms of the models.
    type Alarm;

    /// Returns the variables that each client begins with.
    fn environment(&self) -> Environment {
        Environment::new()
    }

    /// Starts a program. Returns its model, or none for an unknown program. A model without an end
    /// runs until [`Agenda::end`].
    fn start(
        &mut self,
        program: RunningProgram,
        call: &Call,
        agenda: &mut Agenda<Self::Alarm>,
    ) -> Option<Model>;

    /// Receives a branch that a client dispatches. [`Agenda::send`] reports its progress.
    fn dispatch(&mut self, client: usize, dispatch: Dispatch, agenda: &mut Agenda<Self::Alarm>) {
        agenda.send(client, Event::no_engine(dispatch.process));
    }

    /// Handles the end of a program whose client has run out of time.
    fn cut_short(&mut self, program: RunningProgram, agenda: &mut Agenda<Self::Alarm>);

    /// Handles an alarm.
    fn alarm(&mut self, alarm: Self::Alarm, agenda: &mut Agenda<Self::Alarm>);

    /// Handles the end of a program by itself.
    fn ended(
        &mut self,
        program: RunningProgram,
        status: CommandStatus,
        agenda: &mut Agenda<Self::Alarm>,
    ) {
        let _ = (program, status, agenda);
    }

    /// Receives a log record of a client.
    fn log(&mut self, client: usize, record: &LogRecord) {
        let _ = (client, record);
    }

    /// Handles the end of a client's script.
    fn finished(&mut self, client: usize, outcome: Outcome, now: Time) {
        let _ = (client, outcome, now);
    }
}

/// A program in progress: its client and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunningProgram {
    /// Number of the client, from 0.
    pub client: usize,
    process: ProcessId,
}

/// Scheduling interface for models.
pub struct Agenda<A> {
    events: Events<WorldEvent<A>>,
    /// Channels of each machine, independent of each other.
    channels: Vec<SimulatedChannels>,
    /// Random numbers of the models.
    pub random: Random,
}

enum WorldEvent<A> {
    /// A client must check its clock.
    Wake(usize),
    /// An action of a client's command is due.
    Due(usize, Due),
    /// End of a command whose model has no end.
    Ends(RunningProgram, CommandStatus),
    /// An event for a client from outside its shell.
    Received(usize, Event),
    /// Channels of a machine must check the clock.
    Channels(usize),
    /// An alarm of the models.
    Alarm(A),
}

impl<A> Agenda<A> {
    /// Returns the time.
    pub fn now(&self) -> Time {
        self.events.now()
    }

    /// Schedules an alarm.
    pub fn wake(&mut self, at: Time, alarm: A) {
        self.events.schedule(at, WorldEvent::Alarm(alarm));
    }

    /// Passes a request of a client to the channels of its machine.
    fn ask(&mut self, client: usize, ask: Ask) {
        let machine = client % self.channels.len();
        let replies = self.channels[machine].ask(client, ask, self.events.now());
        self.send_replies(machine, replies);
    }

    /// Advances the channels of a machine to the present time.
    fn pass_time(&mut self, machine: usize) {
        let replies = self.channels[machine].pass_time(self.events.now());
        self.send_replies(machine, replies);
    }

    /// Sends an event to a client.
    pub fn send(&mut self, client: usize, event: Event) {
        self.events.schedule(self.now(), WorldEvent::Received(client, event));
    }

    /// Sends replies of channels to their clients.
    fn send_replies(&mut self, machine: usize, replies: Vec<(usize, Event)>) {
        for (client, event) in replies {
            self.send(client, event);
        }
        if let Some(at) = self.channels[machine].wake() {
            self.events.schedule(at, WorldEvent::Channels(machine));
        }
    }

    /// Ends a program now, unless it is over.
    pub fn end(&mut self, program: RunningProgram, status: CommandStatus) {
        self.events.schedule(self.now(), WorldEvent::Ends(program, status));
    }
}

/// Number of events that a slice of endless computation counts as.
const SLICE: u64 = 100;

/// Clients and their shared world.
pub struct ClientWorld<C: CommandModels> {
    clients: Vec<WorldClient>,
    agenda: Agenda<C::Alarm>,
    /// The models.
    pub commands: C,
    handled: u64,
    left: EventBudget,
}

/// Remaining number of events.
struct EventBudget {
    /// Total.
    all: u64,
    /// Number before the clock advances, and its initial value.
    now: u64,
    at_once: u64,
}

impl EventBudget {
    fn spend(&mut self, events: u64) {
        self.all = self.all.saturating_sub(events);
        self.now = self.now.saturating_sub(events);
    }

    fn is_none(&self) -> bool {
        self.all == 0 || self.now == 0
    }
}

/// Reason for an early stop of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Too many events at one moment, such as a loop that takes no time.
    StandsStill,
    /// Too many events.
    TooMuch,
}

struct WorldClient {
    machine: Machine,
    shell: Shell,
    /// Next time at which the machine must check the clock.
    wake: Time,
    is_over: bool,
}

impl<C: CommandModels> ClientWorld<C> {
    /// Creates a world without clients. `random` is for the models.
    pub fn new(commands: C, random: Random) -> Self {
        let agenda =
            Agenda { events: Events::new(), channels: vec![SimulatedChannels::default()], random };
        let left = EventBudget { all: u64::MAX, now: u64::MAX, at_once: u64::MAX };
        Self { clients: Vec::new(), agenda, commands, handled: 0, left }
    }

    /// Limits the number of events, in total and at one moment. A script may run forever, even
    /// without any time passing.
    pub fn limit(&mut self, most: u64, at_once: u64) {
        self.left = EventBudget { all: most, now: at_once, at_once };
    }

    /// Returns the reason for an early stop.
    pub fn stop(&self) -> Option<Stop> {
        match self.left {
            EventBudget { now: 0, .. } => Some(Stop::StandsStill),
            EventBudget { all: 0, .. } => Some(Stop::TooMuch),
            _ => None,
        }
    }

    /// Distributes clients over `machines` machines with separate channels. Must precede the first
    /// client.
    pub fn spread(&mut self, machines: usize) {
        self.agenda.channels = vec![SimulatedChannels::default(); machines.max(1)];
    }

    /// Adds a client that begins to run `script` at `start`. The arguments of the script are its
    /// name and the client's number. Its tries without a policy use `policy`.
    pub fn add(&mut self, script: &Script, policy: &Policy, start: Duration, seed: u64) {
        let client = self.clients.len();
        let args: Vec<BString> =
            vec![BString::from(&**script.source.name()), client.to_string().into()];
        let config = Config { backoff: policy.clone(), ..Config::default() };
        let machine = Machine::new(script, args, self.commands.environment(), config, seed);
        self.join(machine, Shell::default(), start);
    }

    /// Adds a client whose machine begins at `start`.
    pub fn join(&mut self, machine: Machine, shell: Shell, start: Duration) {
        let (client, wake) = (self.clients.len(), Time::after(start));
        self.clients.push(WorldClient { machine, shell, wake, is_over: false });
        self.agenda.events.schedule(wake, WorldEvent::Wake(client));
    }

    /// Schedules an alarm.
    pub fn wake(&mut self, at: Duration, alarm: C::Alarm) {
        self.agenda.wake(Time::after(at), alarm);
    }

    /// Runs all events up to a time.
    pub fn run(&mut self, until: Duration) {
        let until = Time::after(until);
        let mut moment = self.agenda.now();
        while !self.left.is_none()
            && let Some(happening) = self.agenda.events.next(until)
        {
            if moment != self.agenda.now() {
                moment = self.agenda.now();
                self.left.now = self.left.at_once;
            }
            self.handled += 1;
            if let WorldEvent::Wake(client) = happening
                && self.clients[client].wake != moment
            {
                // The client waits for another event by now. At the end of a long `try`, many such
                // events share one moment and do nothing.
                continue;
            }
            self.left.spend(1);
            match happening {
                WorldEvent::Wake(client) => {
                    let it = &mut self.clients[client];
                    it.wake = Time::NEVER;
                    it.machine.handle_timeout(moment);
                    self.go_on(client);
                }
                WorldEvent::Due(client, due) => {
                    let (shell, mut around) = self.parts(client);
                    shell.handle(due, &mut around);
                    self.go_on(client);
                }
                WorldEvent::Ends(program, status) => {
                    let (shell, mut around) = self.parts(program.client);
                    shell.end(program.process, status, &mut around);
                    self.go_on(program.client);
                }
                WorldEvent::Received(client, event) => {
                    let now = self.agenda.now();
                    self.clients[client].machine.handle_event(now, event);
                    self.go_on(client);
                }
                WorldEvent::Channels(machine) => self.agenda.pass_time(machine),
                WorldEvent::Alarm(alarm) => self.commands.alarm(alarm, &mut self.agenda),
            }
        }
    }

    /// Returns the time.
    pub fn now(&self) -> Duration {
        self.agenda.now().elapsed()
    }

    /// Returns the number of events handled.
    pub fn handled(&self) -> u64 {
        self.handled
    }

    fn parts(&mut self, client: usize) -> (&mut Shell, One<'_, C>) {
        let around = One { client, agenda: &mut self.agenda, commands: &mut self.commands };
        (&mut self.clients[client].shell, around)
    }

    /// Runs a client until it must wait.
    fn go_on(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let mut around =
            One { client: number, agenda: &mut self.agenda, commands: &mut self.commands };
        loop {
            let now = around.agenda.now();
            match client.machine.poll_output() {
                Output::Effect(Effect::Dispatch(dispatch)) => {
                    around.commands.dispatch(number, *dispatch, around.agenda);
                }
                // Models write no files.
                Output::Effect(Effect::Query {
                    operation,
                    query: Query::BranchFiles { .. },
                    ..
                }) => {
                    let result = Ok(Reply::Truth(true));
                    client.machine.handle_event(now, Event::Done { operation, result });
                }
                Output::Effect(Effect::Log(record)) => around.commands.log(number, &record),
                Output::Effect(effect) => client.shell.perform(effect, &mut around),
                Output::Timeout(until) => {
                    if let Some(event) = client.shell.poll_event() {
                        client.machine.handle_event(now, event);
                    } else if until <= now {
                        self.left.spend(SLICE);
                        if self.left.is_none() {
                            return;
                        }
                        client.machine.handle_timeout(now);
                    } else {
                        if until != Time::NEVER && until != client.wake {
                            around.agenda.events.schedule(until, WorldEvent::Wake(number));
                        }
                        client.wake = until;
                        return;
                    }
                }
                Output::Finished(outcome) => {
                    if !std::mem::replace(&mut client.is_over, true) {
                        around.commands.finished(number, outcome, now);
                    }
                    return;
                }
            }
        }
    }
}

/// View of the world for the shell of one client.
struct One<'w, C: CommandModels> {
    client: usize,
    agenda: &'w mut Agenda<C::Alarm>,
    commands: &'w mut C,
}

impl<C: CommandModels> Around for One<'_, C> {
    fn now(&self) -> Time {
        self.agenda.now()
    }

    fn start(&mut self, process: ProcessId, call: &Call) -> Option<Model> {
        let program = RunningProgram { client: self.client, process };
        self.commands.start(program, call, self.agenda)
    }

    fn schedule(&mut self, at: Time, due: Due) {
        self.agenda.events.schedule(at, WorldEvent::Due(self.client, due));
    }

    fn ask(&mut self, ask: Ask) {
        self.agenda.ask(self.client, ask);
    }

    fn ended(&mut self, process: ProcessId, ending: ProgramEnd) {
        let program = RunningProgram { client: self.client, process };
        match ending {
            ProgramEnd::Itself(status) => self.commands.ended(program, status, self.agenda),
            ProgramEnd::Terminated | ProgramEnd::Killed => {
                self.commands.cut_short(program, self.agenda);
            }
        }
    }
}

/// Parses a script of the laboratory.
pub fn script(name: &str, text: &str) -> anyhow::Result<Script> {
    syntax::parse(name, text)
        .map_err(|mistakes| anyhow::anyhow!("{}", ftsh_syntax::diagnostic::render_all(&mistakes)))
}
