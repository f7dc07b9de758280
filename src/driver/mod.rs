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

    /// A look at the machine, before each wait and at the end, for a driver that shows what it is
    /// doing.
    fn watch(&mut self, _machine: &Machine) {}

    /// Waits for the next event, but not past `until`; none if that moment came first, or the
    /// driver wants another look at the machine.
    fn wait(&mut self, until: Time) -> Option<Event>;
}

/// Runs a machine to its end.
pub fn run(machine: &mut Machine, driver: &mut impl Driver) -> Outcome {
    // The deadline of the run may have passed before it begins.
    machine.handle_timeout(driver.now());
    loop {
        match machine.poll_output() {
            Output::Effect(effect) => driver.perform(effect),
            Output::Timeout(until) => {
                driver.watch(machine);
                match driver.wait(until) {
                    Some(event) => machine.handle_event(driver.now(), event),
                    None => machine.handle_timeout(driver.now()),
                }
            }
            Output::Finished(outcome) => {
                driver.watch(machine);
                return outcome;
            }
        }
    }
}
