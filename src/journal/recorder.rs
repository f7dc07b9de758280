//! A driver around a driver, which keeps a journal of what the machine is told.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use super::store::Store;
use super::writer::{Writer, changes_the_world};
use crate::driver::Driver;
use crate::machine::effect::Effect;
use crate::machine::event::{Refusal, SpawnError, SpawnErrorKind};
use crate::machine::{Event, Machine, Time};

/// What a run is ended by when its journal can't be written: SIGTERM.
const END: i32 = 15;

/// Has another driver do everything, and keeps a journal. What isn't recorded doesn't happen: if the
/// journal can't be written, nothing more is begun, and the machine is told to end as by a signal.
pub struct Recorder<'a, D, S> {
    driver: &'a mut D,
    journal: Rc<RefCell<Writer<S>>>,
    /// The moment that the machine is told.
    now: Time,
    /// What happens beside what the driver tells: none of it is in the journal.
    unrecorded: VecDeque<Event>,
    /// Why the journal can't be written.
    failure: Option<io::Error>,
}

impl<'a, D: Driver, S: Store> Recorder<'a, D, S> {
    /// A recorder of a run that begins; an error if that can't be written.
    pub fn new(driver: &'a mut D, journal: Rc<RefCell<Writer<S>>>) -> io::Result<Self> {
        let now = driver.now();
        let first = |journal: &mut Writer<S>| {
            journal.tell(now, None)?;
            journal.commit()
        };
        first(&mut journal.borrow_mut())?;
        Ok(Self { driver, journal, now, unrecorded: VecDeque::new(), failure: None })
    }

    /// Why the journal couldn't be written, if it couldn't.
    pub fn into_failure(self) -> Option<io::Error> {
        self.failure
    }

    /// Whether something could be recorded. Once it couldn't, the machine is told.
    fn record(&mut self, record: impl FnOnce(&mut Writer<S>) -> io::Result<()>) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let result = record(&mut self.journal.borrow_mut());
        if let Err(error) = result {
            self.failure = Some(error);
            self.unrecorded.push_back(Event::Interrupted(END));
        }
        self.failure.is_none()
    }

    /// Answers what isn't carried out.
    fn refuse(&mut self, effect: Effect) {
        let message = || {
            let error = self.failure.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("the journal can't be written: {error}")
        };
        let refusal = |operation| {
            let result = Err(Refusal { message: message() });
            Event::Done { operation, result }
        };
        let event = match effect {
            Effect::Run(run) | Effect::Exec(run) => {
                let error = SpawnError { kind: SpawnErrorKind::System, message: message() };
                Event::SpawnFailed { process: run.process, error }
            }
            Effect::Open { operation, .. } | Effect::Settle { operation, .. } => refusal(operation),
            Effect::Enter(entry) => refusal(entry.operation),
            _ => return,
        };
        self.unrecorded.push_back(event);
    }
}

impl<D: Driver, S: Store> Driver for Recorder<'_, D, S> {
    /// The moment of the last event: whatever the machine is told is in the journal.
    fn now(&self) -> Time {
        self.now
    }

    fn perform(&mut self, effect: Effect) {
        if self.record(|journal| journal.perform(&effect)) || !changes_the_world(&effect) {
            self.driver.perform(effect);
        } else {
            self.refuse(effect);
        }
    }

    fn watch(&mut self, machine: &Machine) {
        self.driver.watch(machine);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        if let Some(event) = self.unrecorded.pop_front() {
            self.now = self.now.max(self.driver.now());
            return Some(event);
        }
        let commit = self.journal.borrow_mut().wait(self.driver.now());
        let soon = commit.map_or(until, |commit| until.min(commit));
        let mut event = self.driver.wait(soon);
        if commit.is_some() && event.is_none() && self.driver.now() >= soon {
            self.record(Writer::commit);
            event = self.unrecorded.pop_front();
            if event.is_none() && soon < until {
                event = self.driver.wait(until);
            }
        }
        let now = self.now.max(self.driver.now());
        // To hear of a moment in between changes nothing.
        if event.is_some() || now >= until {
            self.now = now;
            self.record(|journal| journal.tell(now, event.as_ref()));
        }
        event
    }
}
