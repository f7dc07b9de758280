//! Modelled world in virtual time. Commands have durations by their models, and cost no real time.
//! The same script, model and seed give the same run.
//!
//! [`Simulated`] is a world of one shell. A world of many shells consists of many [`Shell`]s around
//! one [`World`].

mod channels;
pub mod cluster;
mod descriptors;
mod drafts;
mod durable;
mod durations;
mod inputs;
mod model;
mod queries;
mod shell;
mod watches;
mod watching;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

pub use channels::{Ask, SimulatedChannels};
pub use model::{Call, EndsBy, Model};
pub use shell::{Due, ProgramEnd, Shell, World};

use ftsh_machine::driver::Driver;
use ftsh_machine::effect::ProcessId;
use ftsh_machine::outcome::Human;
use ftsh_machine::{Effect, Event, Time};

type Command = Box<dyn FnMut(&Call, &mut ChaCha8Rng) -> Model>;

/// Modelled world of one shell.
pub struct Simulated {
    shell: Shell,
    around: SimulatedWorld,
}

/// World without the shell.
struct SimulatedWorld {
    now: Time,
    rng: ChaCha8Rng,
    commands: BTreeMap<BString, Command>,
    future: BTreeMap<(Time, u64), FutureEvent>,
    count: u64,
    trace: Vec<String>,
    starts: Vec<Time>,
    settles: Box<dyn FnMut(usize) -> Option<usize>>,
    resources: Box<dyn FnMut(Time) -> (u64, f64)>,
    channels: SimulatedChannels,
}

enum FutureEvent {
    /// Due work of a command.
    Due(Due),
    /// Signal to the shell.
    Signal(i32),
    /// Event of a channel.
    ChannelEvent(Event),
    /// Time at which the channels need a call.
    Channels,
}

impl Simulated {
    /// Creates a world without commands and files.
    pub fn new(seed: u64) -> Self {
        let around = SimulatedWorld {
            now: Time::START,
            rng: ChaCha8Rng::seed_from_u64(seed),
            commands: BTreeMap::new(),
            future: BTreeMap::new(),
            count: 0,
            trace: Vec::new(),
            starts: Vec::new(),
            settles: Box::new(|_| None),
            resources: Box::new(|_| (u64::MAX, 0.0)),
            channels: SimulatedChannels::default(),
        };
        Self { shell: Shell::default(), around }
    }

    /// Models the command `name`.
    #[must_use]
    pub fn command(
        mut self,
        name: &str,
        model: impl FnMut(&Call, &mut ChaCha8Rng) -> Model + 'static,
    ) -> Self {
        self.around.commands.insert(name.into(), Box::new(model));
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.shell.add_file(path, content);
        self
    }

    /// Adds durations of earlier attempts of the script, as the text of a history.
    #[must_use]
    pub fn durations(mut self, text: &str) -> Self {
        self.shell.add_durations(text);
        self
    }

    /// Returns the recorded durations of the script, as the text of a history.
    pub fn recorded_durations(&self) -> String {
        self.shell.durations.of_script()
    }

    /// Gives the shell a standard input: a pipe with the given content.
    #[must_use]
    pub fn stdin(mut self, content: &str) -> Self {
        self.shell.set_stdin(content);
        self
    }

    /// Leaves the shell's standard output without a reader.
    #[must_use]
    pub fn nobody_reads(mut self) -> Self {
        self.shell.descriptors.nobody_reads = true;
        self
    }

    /// Sends the shell a signal at the given time.
    #[must_use]
    pub fn signal_at(mut self, at: Duration, signal: i32) -> Self {
        self.around.plan(Time::after(at), FutureEvent::Signal(signal));
        self
    }

    /// Sets the function that decides the success of commits. The function gets the number of
    /// staged files, and returns the index of the first failure.
    #[must_use]
    pub fn settles(mut self, settles: impl FnMut(usize) -> Option<usize> + 'static) -> Self {
        self.around.settles = Box::new(settles);
        self
    }

    /// Sets the function that returns the available memory in bytes and the load at a time.
    #[must_use]
    pub fn resources(mut self, resources: impl FnMut(Time) -> (u64, f64) + 'static) -> Self {
        self.around.resources = Box::new(resources);
        self
    }

    /// Returns the output of commands on descriptor 1 of the shell.
    pub fn stdout(&self) -> String {
        self.shell.descriptors.stdout.to_string()
    }

    /// Returns the output of commands on descriptor 2 of the shell.
    pub fn stderr(&self) -> String {
        self.shell.descriptors.stderr.to_string()
    }

    /// Returns the content of a file, if the file exists.
    pub fn content(&self, path: &str) -> Option<String> {
        self.shell.descriptors.files.get(path.as_bytes().as_bstr()).map(ToString::to_string)
    }

    /// Returns the history of the world, each event on its own line with its time.
    pub fn trace(&self) -> String {
        self.around.trace.join("\n")
    }

    /// Returns the times of the starts of programs.
    pub fn starts(&self) -> &[Time] {
        &self.around.starts
    }

    /// Returns the shell and the rest of the world, for an outer driver.
    pub fn parts(&mut self) -> (&mut Shell, &mut impl World) {
        (&mut self.shell, &mut self.around)
    }

    /// Ends all watches of scopes, as the end of a real shell does.
    pub fn end_watches(&mut self) {
        self.shell.watches.end_all();
    }

    /// Returns the names of the running commands.
    pub fn running(&self) -> Vec<&str> {
        self.shell.running()
    }
}

impl SimulatedWorld {
    fn plan(&mut self, at: Time, event: FutureEvent) {
        self.count += 1;
        self.future.insert((at, self.count), event);
    }

    fn schedule_events(&mut self, events: Vec<(usize, Event)>) {
        for (_, event) in events {
            self.plan(self.now, FutureEvent::ChannelEvent(event));
        }
        if let Some(at) = self.channels.wake() {
            self.plan(at, FutureEvent::Channels);
        }
    }
}

impl World for SimulatedWorld {
    fn now(&self) -> Time {
        self.now
    }

    fn start(&mut self, _: ProcessId, call: &Call) -> Option<Model> {
        let command = self.commands.get_mut(&call.words[0])?;
        let model = command(call, &mut self.rng);
        self.starts.push(self.now);
        self.note(format_args!("run {}", bstr::join(" ", call.words).as_bstr()));
        Some(model)
    }

    fn schedule(&mut self, at: Time, due: Due) {
        self.plan(at, FutureEvent::Due(due));
    }

    fn settle(&mut self, drafts: usize) -> Option<usize> {
        (self.settles)(drafts)
    }

    fn resources(&mut self) -> (u64, f64) {
        (self.resources)(self.now)
    }

    fn ask(&mut self, ask: Ask) {
        let events = self.channels.ask(0, ask, self.now);
        self.schedule_events(events);
    }

    fn note(&mut self, what: fmt::Arguments) {
        self.trace.push(format!("{:>10} {what}", Human(self.now.elapsed()).to_string()));
    }
}

impl Driver for Simulated {
    fn now(&self) -> Time {
        self.around.now
    }

    fn perform(&mut self, effect: Effect) {
        self.shell.perform(effect, &mut self.around);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        let Self { shell, around } = self;
        loop {
            if let Some(event) = shell.poll_event() {
                return Some(event);
            }
            let next = around.future.first_entry().filter(|entry| entry.key().0 <= until);
            let Some(next) = next else {
                assert!(until != Time::NEVER, "nothing will ever happen again");
                around.now = around.now.max(until);
                return None;
            };
            around.now = around.now.max(next.key().0);
            match next.remove() {
                FutureEvent::Due(due) => shell.handle(due, around),
                FutureEvent::Signal(signal) => return Some(Event::Interrupted(signal)),
                FutureEvent::ChannelEvent(event) => return Some(event),
                FutureEvent::Channels => {
                    let events = around.channels.pass_time(around.now);
                    around.schedule_events(events);
                }
            }
        }
    }
}
