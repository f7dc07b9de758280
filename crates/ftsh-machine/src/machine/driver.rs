//! Drivers: they perform the machine's effects and report the results as events.

use std::io;
use std::time::Duration;

use bstr::BString;

use crate::Output;
use crate::effect::{BufferId, Dispatch, Effect, IoId, ScopeId, ViewId};
use crate::event::Event;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::time::Time;

/// World in which a machine runs.
pub trait Driver {
    /// Returns the time since the run began.
    fn now(&self) -> Time;

    /// Performs an effect, without blocking.
    fn perform(&mut self, effect: Effect);

    /// Inspects the machine, before each wait and at the end. For drivers with a status display.
    fn watch(&mut self, _machine: &Machine) {}

    /// Waits for the next event until `until`. Returns `None` after `until`, or earlier if the
    /// driver wants to inspect the machine again.
    fn wait(&mut self, until: Time) -> Option<Event>;
}

/// Driver whose world another process can rebuild, when that process resumes the run.
pub trait Durable: Driver {
    /// Returns the position of a descriptor of a table, in bytes from the beginning. Returns `None`
    /// for a descriptor that does not read, or whose position cannot be restored.
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64>;

    /// Returns the content of a buffer from offset `from`, or all content if the buffer is shorter
    /// than `from`. Returns `None` if the buffer does not exist.
    fn written(&mut self, buffer: BufferId, from: u64) -> io::Result<Option<BufferPart>>;

    /// Returns the maximum time for which a dispatched branch may continue after this process has
    /// ended.
    fn outlived_by(&self, _branch: &Dispatch) -> Duration {
        Duration::ZERO
    }

    /// Declares scopes in which a branch dispatched by an earlier process may run until a moment.
    /// Before that moment, the scopes count as not empty, and nothing else is dispatched from them.
    fn inherit(&mut self, _orphans: Vec<(ScopeId, Time)>) {}

    /// Begins to leave records of commits of views, for processes that resume this run. `run` is a
    /// random number of the run.
    fn record_commits(&mut self, _run: u64) {}

    /// Takes over a view of these directories that an earlier process of the run began. Returns true
    /// if its commit has taken place. Finishes a commit that has begun. The record remains until the
    /// view is dropped. After an error, the run cannot be resumed yet.
    fn take_over_view(&mut self, _view: ViewId, _directories: &[BString]) -> io::Result<bool> {
        Ok(false)
    }

    /// Collects all endings up to now. `wait` then reports them, however short its timeout is.
    fn catch_up(&mut self) {}
}

/// Part of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferPart {
    /// Offset of the first byte.
    pub from: u64,
    /// All bytes from the offset to the end.
    pub bytes: BString,
}

/// Driver that continues its work while a person types, as a prompt requires.
pub trait Interactive: Driver {
    /// Work in progress on another thread.
    type Job<T>;

    /// Handle by which a line editor reports the modes it gives the terminal.
    type Edited;

    /// Starts work on another thread, which may take unlimited time.
    fn begin<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self::Job<T>>;

    /// Waits for the other thread or an event, until `until`.
    fn wait_for_job<T>(&mut self, job: &mut Self::Job<T>, until: Time) -> JobEvent<T>;

    /// Interrupts a wait of the other thread, as Ctrl-C would.
    fn interrupt<T>(&self, job: &Self::Job<T>);

    /// Stops waiting for the other thread, which continues.
    fn detach_job<T>(&mut self, job: &Self::Job<T>);

    /// Waits shortly for the ends of canceled calls, and logs the calls that hang.
    fn await_cancelled(&mut self);

    /// Waits until all output of the shell is written. A signal may end the wait, and with it the
    /// shell.
    fn flush_on_exit(&mut self, outcome: Outcome) -> Outcome;

    /// Returns a description of the machine's activity.
    fn page(&self, machine: &Machine) -> String;

    /// Prepares the terminal for the next statement and the prompt, after a statement.
    fn reset_terminal(&mut self);

    /// Makes the terminal usable again after the other thread was left alone with it.
    fn restore_terminal(&self);

    /// Returns the handle for a line editor.
    fn edited(&self) -> Self::Edited;
}

/// End of a wait for another thread.
pub enum JobEvent<T> {
    /// The thread finished with an answer.
    Answer(T),
    /// An event for the machine arrived.
    Event(Event),
    /// A person asked for the shell's status.
    StatusRequested,
    /// The timeout passed.
    Timeout,
}

/// Runs a machine to its end.
pub fn run(machine: &mut Machine, driver: &mut impl Driver) -> Outcome {
    // The deadline of the run may have passed before it begins.
    machine.handle_timeout(driver.now());
    work(machine, driver)
}

/// Runs a machine to its end. The machine has already returned `Output::Timeout`.
pub fn resume(machine: &mut Machine, driver: &mut impl Driver) -> Outcome {
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
