//! Execution of the orders of a shell's controller, and consequences of its silence.

use std::io;
use std::time::Duration;

use super::ProcessDriver;
use crate::control::Order;
use crate::events::is_ending;
use crate::kill::stop_and_kill;
use crate::non_blocking_writer;

/// Interval between two attempts to kill processes that survive SIGKILL.
const INTERVAL: Duration = Duration::from_millis(50);

impl ProcessDriver {
    /// Applies the orders that are due.
    pub(super) fn apply_control(&mut self) {
        for order in self.remote_control.orders() {
            match order {
                Order::Say(text) => {
                    let errors = non_blocking_writer::standard_error();
                    // Drops the text if earlier text is still unread.
                    if errors.is_idle() {
                        errors.print(&text);
                    }
                }
                Order::Interrupt(signal) => {
                    let is_ending = is_ending(signal);
                    self.end_by(if is_ending { signal } else { libc::SIGTERM });
                }
                Order::Finish if self.remote_control.is_interrupted() => {}
                Order::Finish => self.end_by(libc::SIGTERM),
                Order::Kill => self.die_at_once(),
            }
        }
    }

    /// Kills the remaining processes of the run after its end, including processes given up because
    /// SIGKILL had no effect. Returns when none is left; the shell's limit bounds the wait.
    pub fn kill_survivors(&mut self) {
        if !self.remote_control.is_active() {
            return;
        }
        loop {
            match self.remaining_processes() {
                Ok(left) if left.is_empty() => return,
                left => drop(stop_and_kill(&left.unwrap_or_default())),
            }
            self.poll(self.clock.now() + INTERVAL);
        }
    }

    /// Returns the remaining processes of this run. Fails if the list of processes cannot be read
    /// now.
    fn remaining_processes(&mut self) -> io::Result<Vec<i32>> {
        if self.processes.adopts() {
            self.reap_all();
            self.reap_orphans();
            return self.processes.strange_children();
        }
        self.processes.tagged_processes()
    }
}
