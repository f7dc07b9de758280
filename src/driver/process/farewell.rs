//! The end of a run: what was said is to be read.

use std::time::Duration;

use super::{Attended, ProcessDriver};
use crate::driver::Driver;
use crate::machine::event::Event;
use crate::machine::outcome::Outcome;
use crate::machine::time::Time;
use crate::outlet;

/// Who told the shell to end needn't wait longer for somebody who doesn't read.
const BRIEFLY: Duration = Duration::from_secs(1);

impl ProcessDriver {
    /// Waits until what the shell has said is written. A signal may end that, and so the shell.
    pub fn see_off(&mut self, outcome: Outcome) -> Outcome {
        if outlet::is_quiet() {
            return outcome;
        }
        let is_over = matches!(outcome, Outcome::Interrupted(_));
        let until = if is_over { Time::after(self.now().elapsed() + BRIEFLY) } else { Time::NEVER };
        let Ok(mut waiting) = self.begin(|| outlet::wait(None)) else { return outcome };
        loop {
            match self.attend(&mut waiting, until) {
                Attended::Event(Event::Interrupted(_)) if is_over => return outcome,
                Attended::Event(Event::Interrupted(signal)) => return Outcome::Interrupted(signal),
                Attended::Event(_) | Attended::Asked => {}
                Attended::Answer(_) | Attended::Timeout => return outcome,
            }
        }
    }
}
