//! Drivers: they carry out what the machine asks for and tell it what came of it.

use std::io;
use std::time::Duration;

use bstr::BString;

use crate::effect::{BufferId, Dispatch, IoId, ScopeId};
use crate::{Effect, Event, Machine, Outcome, Output, Time};

/// A world for a machine to run in.
pub trait Driver {
    /// The time since the run began.
    fn now(&self) -> Time;

    /// Carries out one effect, without blocking.
    fn perform(&mut self, effect: Effect);

    /// A look at the machine, before each wait and at the end, for a driver that shows what it is
    /// doing.
    fn watch(&mut self, _machine: &Machine) {}

    /// Waits for the next event, but not past `until`; none if that moment came first, or the
    /// driver wants another look at the machine.
    fn wait(&mut self, until: Time) -> Option<Event>;
}

/// A driver whose world can be made again by another one, when a run goes on that it had begun.
pub trait Durable: Driver {
    /// How far a descriptor of a table has been read, in bytes from the beginning; none if it doesn't
    /// read, or nobody could go on there.
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64>;

    /// What a buffer holds after so many bytes, or all of it if it has become shorter than that; none if
    /// it isn't there.
    fn written(&mut self, buffer: BufferId, from: u64) -> io::Result<Option<Written>>;

    /// How long a branch that is sent elsewhere may go on after this process, at most.
    fn outlived_by(&self, _branch: &Dispatch) -> Duration {
        Duration::ZERO
    }

    /// In these scopes a branch that an earlier process has sent may go on until then: before that nothing
    /// else is sent from there, and they aren't empty.
    fn inherit(&mut self, _orphans: Vec<(ScopeId, Time)>) {}

    /// Takes note of all that has ended by now, which `wait` then tells of, however little time it is given.
    fn catch_up(&mut self) {}
}

/// A part of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Where it begins.
    pub from: u64,
    /// All from there to the end.
    pub bytes: BString,
}

/// A driver that goes on with its work while a person is waited for, as a prompt wants it.
pub trait Interactive: Driver {
    /// Something that another thread is doing.
    type Job<T>;

    /// Handle by which a line editor reports the modes it gives the terminal.
    type Edited;

    /// Has another thread do something that may take for ever.
    fn begin<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self::Job<T>>;

    /// Waits for the other thread, but also for events, and not past `until`.
    fn attend<T>(&mut self, job: &mut Self::Job<T>, until: Time) -> Attended<T>;

    /// Interrupts what the other thread waits for, if it does just now, as Ctrl-C would.
    fn interrupt<T>(&self, job: &Self::Job<T>);

    /// Waits no more for the other thread, which goes on.
    fn leave_alone<T>(&mut self, job: &Self::Job<T>);

    /// Waits until what the shell has said is written. A signal may end that, and so the shell.
    fn flush_on_exit(&mut self, outcome: Outcome) -> Outcome;

    /// What the machine is doing, in words.
    fn page(&self, machine: &Machine) -> String;

    /// After a statement: the next one, and the prompt, get a usable terminal.
    fn settle_terminal(&mut self);

    /// Makes the terminal usable after the other thread was left alone with it.
    fn restore_terminal(&self);

    /// For a line editor, to say how it sets the terminal.
    fn edited(&self) -> Self::Edited;
}

/// What came first.
pub enum Attended<T> {
    /// The other thread's answer.
    Answer(T),
    /// Something that the machine wants to know, or a signal to the shell.
    Event(Event),
    /// Somebody asks what the shell is doing.
    Asked,
    /// The moment to wait for.
    Timeout,
}

/// Runs a machine to its end.
pub fn run(machine: &mut Machine, driver: &mut impl Driver) -> Outcome {
    // The deadline of the run may have passed before it begins.
    machine.handle_timeout(driver.now());
    work(machine, driver)
}

/// Runs a machine to its end that waits for something, as it has said already.
pub fn go_on(machine: &mut Machine, driver: &mut impl Driver) -> Outcome {
    wait(machine, driver, Time::START);
    work(machine, driver)
}

fn work(machine: &mut Machine, driver: &mut impl Driver) -> Outcome {
    loop {
        match machine.poll_output() {
            Output::Effect(effect) => driver.perform(effect),
            Output::Timeout(until) => wait(machine, driver, until),
            Output::Finished(outcome) => {
                driver.watch(machine);
                return outcome;
            }
        }
    }
}

fn wait(machine: &mut Machine, driver: &mut impl Driver, until: Time) {
    driver.watch(machine);
    match driver.wait(until) {
        Some(event) => machine.handle_event(driver.now(), event),
        None => machine.handle_timeout(driver.now()),
    }
}
