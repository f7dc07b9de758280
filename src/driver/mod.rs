//! Drivers: they carry out what the machine asks for and tell it what came of it.

pub mod process;
pub mod simulated;

use crate::machine::{Effect, Event, Machine, Outcome, Output, Time};

/// A world for a machine to run in.
pub trait Driver {
    /// The time since the run began.
    fn now(&self) -> Time;

    /// Carries out one effect, without blocking.
    fn perform(&mut self, effect: Effect);

    /// Waits for the next event, but not past `until`; none if that moment came first.
    fn wait(&mut self, until: Time) -> Option<Event>;
}

/// Runs a machine to its end.
pub fn run(machine: &mut Machine, driver: &mut impl Driver) -> Outcome {
    // The deadline of the run may have passed before it begins.
    machine.handle_timeout(driver.now());
    loop {
        match machine.poll_output() {
            Output::Effect(effect) => driver.perform(effect),
            Output::Timeout(until) => match driver.wait(until) {
                Some(event) => machine.handle_event(driver.now(), event),
                None => machine.handle_timeout(driver.now()),
            },
            Output::Finished(outcome) => return outcome,
        }
    }
}
