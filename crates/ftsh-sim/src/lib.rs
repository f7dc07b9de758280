//! A modelled world in virtual time: commands that take as long as their model says, and cost
//! nothing. The same script, model and seed give the same run.
//!
//! [`Simulated`] is a world of one shell. A world of many is made of many [`Shell`]s around one
//! [`World`].

mod channels;
pub mod cluster;
mod descriptors;
mod drafts;
mod durable;
mod inputs;
mod model;
mod shell;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

pub use channels::{Ask, Channels};
pub use model::{Call, Model};
pub use shell::{Due, Ending, Shell, World};

use ftsh_machine::driver::Driver;
use ftsh_machine::effect::ProcessId;
use ftsh_machine::outcome::Human;
use ftsh_machine::{Effect, Event, Time};

type Command = Box<dyn FnMut(&Call, &mut ChaCha8Rng) -> Model>;

/// A modelled world of one shell.
pub struct Simulated {
    shell: Shell,
    around: Around,
}

/// The world without the shell.
struct Around {
    now: Time,
    rng: ChaCha8Rng,
    commands: BTreeMap<BString, Command>,
    future: BTreeMap<(Time, u64), Happening>,
    count: u64,
    trace: Vec<String>,
    starts: Vec<Time>,
    settles: Box<dyn FnMut(usize) -> Option<usize>>,
    channels: Channels,
}

enum Happening {
    /// To a command.
    Due(Due),
    /// The shell gets a signal.
    Signal(i32),
    /// A channel says something.
    Told(Event),
    /// Channels have to look at the clock.
    Channels,
}

impl Simulated {
    /// An empty world: no commands, no files.
    pub fn new(seed: u64) -> Self {
        let around = Around {
            now: Time::START,
            rng: ChaCha8Rng::seed_from_u64(seed),
            commands: BTreeMap::new(),
            future: BTreeMap::new(),
            count: 0,
            trace: Vec::new(),
            starts: Vec::new(),
            settles: Box::new(|_| None),
            channels: Channels::default(),
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

    /// Gives the shell a standard input: a pipe that this has been written to.
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

    /// Sends the shell a signal when the time comes.
    #[must_use]
    pub fn signal_at(mut self, at: Duration, signal: i32) -> Self {
        self.around.plan(Time::after(at), Happening::Signal(signal));
        self
    }

    /// Lets drafts take their places, of so many, only up to one for which that fails.
    #[must_use]
    pub fn settles(mut self, settles: impl FnMut(usize) -> Option<usize> + 'static) -> Self {
        self.around.settles = Box::new(settles);
        self
    }

    /// What commands wrote to descriptor 1 of the shell.
    pub fn stdout(&self) -> String {
        self.shell.descriptors.stdout.to_string()
    }

    /// What commands wrote to descriptor 2 of the shell.
    pub fn stderr(&self) -> String {
        self.shell.descriptors.stderr.to_string()
    }

    /// The content of a file, if it exists.
    pub fn content(&self, path: &str) -> Option<String> {
        self.shell.descriptors.files.get(path.as_bytes().as_bstr()).map(ToString::to_string)
    }

    /// What happened, a line each: when, and what.
    pub fn trace(&self) -> String {
        self.around.trace.join("\n")
    }

    /// When programs started.
    pub fn starts(&self) -> &[Time] {
        &self.around.starts
    }

    /// The shell and the rest of the world, for a driver around this one.
    pub fn parts(&mut self) -> (&mut Shell, &mut impl World) {
        (&mut self.shell, &mut self.around)
    }

    /// The names of the commands that still run.
    pub fn running(&self) -> Vec<&str> {
        self.shell.running()
    }
}

impl Around {
    fn plan(&mut self, at: Time, happening: Happening) {
        self.count += 1;
        self.future.insert((at, self.count), happening);
    }

    fn tell(&mut self, told: Vec<(usize, Event)>) {
        for (_, event) in told {
            self.plan(self.now, Happening::Told(event));
        }
        if let Some(at) = self.channels.wake() {
            self.plan(at, Happening::Channels);
        }
    }
}

impl World for Around {
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
        self.plan(at, Happening::Due(due));
    }

    fn settle(&mut self, drafts: usize) -> Option<usize> {
        (self.settles)(drafts)
    }

    fn ask(&mut self, ask: Ask) {
        let told = self.channels.ask(0, ask, self.now);
        self.tell(told);
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
                Happening::Due(due) => shell.handle(due, around),
                Happening::Signal(signal) => return Some(Event::Interrupted(signal)),
                Happening::Told(event) => return Some(event),
                Happening::Channels => {
                    let told = around.channels.pass_time(around.now);
                    around.tell(told);
                }
            }
        }
    }
}
