//! Execution of the orders of a shell's controller, and consequences of its silence.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::os::signal;
use super::oversight::{Order, Oversight};
use super::procs::{kill_tree, list};
use super::{MOMENT, ProcessDriver, VOICE};
use crate::non_blocking_writer;
use ftsh_machine::event::Event;

/// Controller of this shell, if any.
pub struct Overseen {
    by: Option<Oversight>,
    /// Set when the shell was ordered to end.
    pub interrupted: bool,
}

/// Interval between two attempts to kill processes that survive SIGKILL.
const INTERVAL: Duration = Duration::from_millis(50);

impl Overseen {
    /// Creates the state for an optional controller.
    pub fn by(by: Option<Oversight>) -> Self {
        Self { by, interrupted: false }
    }

    /// True if the shell has a controller.
    pub fn is_so(&self) -> bool {
        self.by.is_some()
    }

    /// Returns the controller's next timeout if no descriptor reports it.
    pub fn due(&self) -> Option<Instant> {
        self.by.as_ref().and_then(Oversight::due)
    }

    /// True if that timeout has passed.
    pub fn is_due(&self) -> bool {
        self.by.as_ref().is_some_and(Oversight::is_due)
    }
}

impl ProcessDriver {
    /// Adds the descriptors of the controller to the poller.
    pub(super) fn begin_to_obey(&mut self) -> io::Result<()> {
        let Some(oversight) = &mut self.overseen.by else { return Ok(()) };
        if let Some(timer) = oversight.timer() {
            self.poller.add(timer, MOMENT)?;
        }
        // A file cannot be polled: no controller writes there.
        if oversight.voice().is_some_and(|voice| self.poller.add(voice, VOICE).is_err()) {
            oversight.leave();
        }
        self.obey();
        Ok(())
    }

    /// Reads messages of the controller and applies its orders.
    pub(super) fn hear_overseer(&mut self) {
        if let Some(oversight) = &mut self.overseen.by
            && let Some(silent) = oversight.listen()
        {
            self.poller.remove(silent.as_fd());
        }
        self.obey();
    }

    /// Applies the orders that are due.
    pub(super) fn obey(&mut self) {
        let Some(oversight) = &mut self.overseen.by else { return };
        for order in oversight.orders() {
            match order {
                Order::Say(text) => {
                    let errors = non_blocking_writer::standard_error();
                    // Drops the text if earlier text is still unread.
                    if errors.is_idle() {
                        errors.say(&text);
                    }
                }
                Order::Interrupt(signal) => {
                    let is_ending = signal::is_ending(signal);
                    self.end_by(if is_ending { signal } else { libc::SIGTERM });
                }
                Order::Finish if self.overseen.interrupted => {}
                Order::Finish => self.end_by(libc::SIGTERM),
                Order::Kill => self.die_at_once(),
            }
        }
    }

    /// Ends the run by a signal.
    pub(super) fn end_by(&mut self, signal: i32) {
        self.overseen.interrupted = true;
        self.ready.push_back(Event::Interrupted(signal));
    }

    /// Kills the remaining processes of the run after its end, including processes given up because
    /// SIGKILL had no effect. Returns when none is left; the shell's limit bounds the wait.
    pub fn outlast_survivors(&mut self) {
        if !self.overseen.is_so() {
            return;
        }
        loop {
            match self.survivors() {
                Ok(left) if left.is_empty() => return,
                left => drop(kill_tree::stop_and_kill(&left.unwrap_or_default())),
            }
            self.poll(self.clock.now() + INTERVAL);
        }
    }

    /// Returns the remaining processes of this run. Fails if the list of processes cannot be read
    /// now.
    fn survivors(&mut self) -> io::Result<Vec<i32>> {
        if self.scopes.adopts() {
            self.reap_all();
            self.reap_orphans();
            let mut left = list::children(self.children.parent)?;
            left.retain(|pid| !self.children.preexisting.contains(pid));
            return Ok(left);
        }
        let own = std::process::id() as i32;
        let scan = self.scanner.scan();
        if !scan.is_listed {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let all = scan.processes.into_iter();
        let marked = all.filter(|(process, mark)| mark.is_some() && process.pid != own);
        Ok(marked.map(|(process, _)| process.pid).collect())
    }
}
