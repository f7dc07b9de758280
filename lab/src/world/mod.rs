//! Many shells in one modelled world, in virtual time: each client is a machine of the library that
//! runs a real script, and the commands it runs are models that share what a scenario is about.

pub mod cluster;
pub mod disk;
mod events;
pub mod queue;
pub mod servers;
pub mod service;

use std::time::Duration;

use bstr::BString;
use ftsh_machine::effect::{Dispatch, Effect, Environment, ProcessId};
use ftsh_machine::event::CommandStatus;
use ftsh_machine::record::LogRecord;
use ftsh_machine::{Config, Event, Machine, Outcome, Output, Time};
use ftsh_sim::{Ask, Call, Due, Model, ProgramEnd, Shell, SimulatedChannels, World as Around};
use ftsh_syntax as syntax;
use ftsh_syntax::Script;
use ftsh_syntax::backoff::Policy;

use crate::common::Random;
pub use events::Events;

/// The modelled commands of a world, and what they share.
pub trait Commands {
    /// What such a world wants to be woken for.
    type Alarm;

    /// The variables that each client begins with.
    fn environment(&self) -> Environment {
        Environment::new()
    }

    /// A program starts: what it does, or none if there is no such program. A model without an end
    /// goes on until [`Agenda::end`].
    fn start(
        &mut self,
        program: Program,
        call: &Call,
        agenda: &mut Agenda<Self::Alarm>,
    ) -> Option<Model>;

    /// A client sends a branch to run on another machine. It hears of that by [`Agenda::tell`].
    fn dispatch(&mut self, client: usize, dispatch: Dispatch, agenda: &mut Agenda<Self::Alarm>) {
        agenda.tell(client, Event::no_engine(dispatch.process));
    }

    /// A program was ended from outside, since its client's time was up.
    fn cut_short(&mut self, program: Program, agenda: &mut Agenda<Self::Alarm>);

    /// The time of an alarm has come.
    fn alarm(&mut self, alarm: Self::Alarm, agenda: &mut Agenda<Self::Alarm>);

    /// A program has ended by itself.
    fn ended(&mut self, program: Program, status: CommandStatus, agenda: &mut Agenda<Self::Alarm>) {
        let _ = (program, status, agenda);
    }

    /// A client's shell logs something.
    fn log(&mut self, client: usize, record: &LogRecord) {
        let _ = (client, record);
    }

    /// A client's script is over.
    fn finished(&mut self, client: usize, outcome: Outcome, now: Time) {
        let _ = (client, outcome, now);
    }
}

/// A program in progress: whose, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// The client's number, from 0.
    pub client: usize,
    process: ProcessId,
}

/// What modelled commands can have happen.
pub struct Agenda<A> {
    events: Events<Happening<A>>,
    /// Those of each machine, which have nothing to do with each other.
    channels: Vec<SimulatedChannels>,
    /// For the models' own random choices.
    pub random: Random,
}

enum Happening<A> {
    /// A client has to look at its clock.
    Wake(usize),
    /// Something is due for one of a client's commands.
    Due(usize, Due),
    /// A command whose model left its end open ends.
    Ends(Program, CommandStatus),
    /// A client hears of something that isn't its own shell's doing.
    Told(usize, Event),
    /// The channels of a machine have to look at the clock.
    Channels(usize),
    /// For the models.
    Alarm(A),
}

impl<A> Agenda<A> {
    /// The time.
    pub fn now(&self) -> Time {
        self.events.now()
    }

    /// Wakes the models at a time.
    pub fn wake(&mut self, at: Time, alarm: A) {
        self.events.schedule(at, Happening::Alarm(alarm));
    }

    /// What a client asks of the channels of its machine.
    fn ask(&mut self, client: usize, ask: Ask) {
        let machine = client % self.channels.len();
        let told = self.channels[machine].ask(client, ask, self.events.now());
        self.tell_all(machine, told);
    }

    /// The channels of a machine look at the clock.
    fn pass_time(&mut self, machine: usize) {
        let told = self.channels[machine].pass_time(self.events.now());
        self.tell_all(machine, told);
    }

    /// Has a client hear of something.
    pub fn tell(&mut self, client: usize, event: Event) {
        self.events.schedule(self.now(), Happening::Told(client, event));
    }

    /// Has clients hear what channels say.
    fn tell_all(&mut self, machine: usize, told: Vec<(usize, Event)>) {
        for (client, event) in told {
            self.tell(client, event);
        }
        if let Some(at) = self.channels[machine].wake() {
            self.events.schedule(at, Happening::Channels(machine));
        }
    }

    /// Ends a program now, if it isn't over.
    pub fn end(&mut self, program: Program, status: CommandStatus) {
        self.events.schedule(self.now(), Happening::Ends(program, status));
    }
}

/// A machine that computes without end is as much work as so many events, each time it has to look at
/// the clock.
const SLICE: u64 = 100;

/// Clients, and the world they are in.
pub struct World<C: Commands> {
    clients: Vec<Client>,
    agenda: Agenda<C::Alarm>,
    /// The models.
    pub commands: C,
    handled: u64,
    left: Left,
}

/// How many events may still come.
struct Left {
    /// In all.
    all: u64,
    /// Before the clock moves on, and how many may come then.
    now: u64,
    at_once: u64,
}

impl Left {
    fn spend(&mut self, events: u64) {
        self.all = self.all.saturating_sub(events);
        self.now = self.now.saturating_sub(events);
    }

    fn is_none(&self) -> bool {
        self.all == 0 || self.now == 0
    }
}

/// Why a world came to a stop before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Too much happened at one moment: what takes no time may go on for ever.
    StandsStill,
    /// Too much happened.
    TooMuch,
}

struct Client {
    machine: Machine,
    shell: Shell,
    /// The next time its machine has to look at the clock.
    wake: Time,
    is_over: bool,
}

impl<C: Commands> World<C> {
    /// A world without clients. `random` is for the models.
    pub fn new(commands: C, random: Random) -> Self {
        let agenda =
            Agenda { events: Events::new(), channels: vec![SimulatedChannels::default()], random };
        let left = Left { all: u64::MAX, now: u64::MAX, at_once: u64::MAX };
        Self { clients: Vec::new(), agenda, commands, handled: 0, left }
    }

    /// Lets it come to a stop after so many events, or so many at one moment: a script may do
    /// something for ever, also in no time.
    pub fn limit(&mut self, most: u64, at_once: u64) {
        self.left = Left { all: most, now: at_once, at_once };
    }

    /// Why it has come to a stop before its time, if it has.
    pub fn stop(&self) -> Option<Stop> {
        match self.left {
            Left { now: 0, .. } => Some(Stop::StandsStill),
            Left { all: 0, .. } => Some(Stop::TooMuch),
            _ => None,
        }
    }

    /// Deals the clients out to so many machines, each with channels of its own; before any is added.
    pub fn spread(&mut self, machines: usize) {
        self.agenda.channels = vec![SimulatedChannels::default(); machines.max(1)];
    }

    /// Adds a client that begins to run `script` at `start`; the script's arguments are its name and
    /// the client's number. Its tries that name no policy have `policy`.
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
        self.clients.push(Client { machine, shell, wake, is_over: false });
        self.agenda.events.schedule(wake, Happening::Wake(client));
    }

    /// Wakes the models at a time.
    pub fn wake(&mut self, at: Duration, alarm: C::Alarm) {
        self.agenda.wake(Time::after(at), alarm);
    }

    /// Lets everything happen up to a time.
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
            if let Happening::Wake(client) = happening
                && self.clients[client].wake != moment
            {
                // It has found something else to wait for since. Of these there may be many at one
                // moment, the end of a long `try`, and none of them does anything.
                continue;
            }
            self.left.spend(1);
            match happening {
                Happening::Wake(client) => {
                    let it = &mut self.clients[client];
                    it.wake = Time::NEVER;
                    it.machine.handle_timeout(moment);
                    self.go_on(client);
                }
                Happening::Due(client, due) => {
                    let (shell, mut around) = self.parts(client);
                    shell.handle(due, &mut around);
                    self.go_on(client);
                }
                Happening::Ends(program, status) => {
                    let (shell, mut around) = self.parts(program.client);
                    shell.end(program.process, status, &mut around);
                    self.go_on(program.client);
                }
                Happening::Told(client, event) => {
                    let now = self.agenda.now();
                    self.clients[client].machine.handle_event(now, event);
                    self.go_on(client);
                }
                Happening::Channels(machine) => self.agenda.pass_time(machine),
                Happening::Alarm(alarm) => self.commands.alarm(alarm, &mut self.agenda),
            }
        }
    }

    /// The time.
    pub fn now(&self) -> Duration {
        self.agenda.now().elapsed()
    }

    /// How many events there were so far.
    pub fn handled(&self) -> u64 {
        self.handled
    }

    fn parts(&mut self, client: usize) -> (&mut Shell, One<'_, C>) {
        let around = One { client, agenda: &mut self.agenda, commands: &mut self.commands };
        (&mut self.clients[client].shell, around)
    }

    /// Lets a client do what it can do now.
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
                            around.agenda.events.schedule(until, Happening::Wake(number));
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

/// The world as one client's shell sees it.
struct One<'w, C: Commands> {
    client: usize,
    agenda: &'w mut Agenda<C::Alarm>,
    commands: &'w mut C,
}

impl<C: Commands> Around for One<'_, C> {
    fn now(&self) -> Time {
        self.agenda.now()
    }

    fn start(&mut self, process: ProcessId, call: &Call) -> Option<Model> {
        let program = Program { client: self.client, process };
        self.commands.start(program, call, self.agenda)
    }

    fn schedule(&mut self, at: Time, due: Due) {
        self.agenda.events.schedule(at, Happening::Due(self.client, due));
    }

    fn ask(&mut self, ask: Ask) {
        self.agenda.ask(self.client, ask);
    }

    fn ended(&mut self, process: ProcessId, ending: ProgramEnd) {
        let program = Program { client: self.client, process };
        match ending {
            ProgramEnd::Itself(status) => self.commands.ended(program, status, self.agenda),
            ProgramEnd::Terminated | ProgramEnd::Killed => {
                self.commands.cut_short(program, self.agenda);
            }
        }
    }
}

/// Reads one of the laboratory's own scripts.
pub fn script(name: &str, text: &str) -> anyhow::Result<Script> {
    syntax::parse(name, text)
        .map_err(|mistakes| anyhow::anyhow!("{}", ftsh_syntax::diagnostic::render_all(&mistakes)))
}
