//! Execution of the orders of a shell's controller, and consequences of its silence.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::control::{ControlLink, Order};
use super::os::signal;
use super::procs::{kill_tree, list};
use super::{CONTROL_FD, CONTROL_TIMER, ProcessDriver};
use crate::non_blocking_writer;
use ftsh_machine::event::Event;

/// Controller of this shell, if any.
pub(crate) struct ControlState {
    link: Option<ControlLink>,
    /// Set when the shell was ordered to end.
    pub interrupted: bool,
}

/// Interval between two attempts to kill processes that survive SIGKILL.
const INTERVAL: Duration = Duration::from_millis(50);

impl ControlState {
    /// Creates the state for an optional controller.
    pub(crate) fn new(link: Option<ControlLink>) -> Self {
        Self { link, interrupted: false }
    }

    /// True if the shell has a controller.
    pub(crate) fn is_active(&self) -> bool {
        self.link.is_some()
    }

    /// Returns the controller's next timeout if no descriptor reports it.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.link.as_ref().and_then(ControlLink::due)
    }

    /// True if that timeout has passed.
    pub(crate) fn is_due(&self) -> bool {
        self.link.as_ref().is_some_and(ControlLink::is_due)
    }
}

impl ProcessDriver {
    /// Adds the descriptors of the controller to the poller.
    pub(super) fn start_control(&mut self) -> io::Result<()> {
        let Some(control) = &mut self.remote_control.link else { return Ok(()) };
        if let Some(timer) = control.timer() {
            self.poller.add(timer, CONTROL_TIMER)?;
        }
        // A file cannot be polled: no controller writes there.
        if control
            .descriptor()
            .is_some_and(|descriptor| self.poller.add(descriptor, CONTROL_FD).is_err())
        {
            control.disconnect();
        }
        self.apply_control();
        Ok(())
    }

    /// Reads messages of the controller and applies its orders.
    pub(super) fn read_control(&mut self) {
        if let Some(control) = &mut self.remote_control.link
            && let Some(ended) = control.read_messages()
        {
            self.poller.remove(ended.as_fd());
        }
        self.apply_control();
    }

    /// Applies the orders that are due.
    pub(super) fn apply_control(&mut self) {
        let Some(control) = &mut self.remote_control.link else { return };
        for order in control.orders() {
            match order {
                Order::Say(text) => {
                    let errors = non_blocking_writer::standard_error();
                    // Drops the text if earlier text is still unread.
                    if errors.is_idle() {
                        errors.print(&text);
                    }
                }
                Order::Interrupt(signal) => {
                    let is_ending = signal::is_ending(signal);
                    self.end_by(if is_ending { signal } else { libc::SIGTERM });
                }
                Order::Finish if self.remote_control.interrupted => {}
                Order::Finish => self.end_by(libc::SIGTERM),
                Order::Kill => self.die_at_once(),
            }
        }
    }

    /// Ends the run by a signal.
    pub(super) fn end_by(&mut self, signal: i32) {
        self.remote_control.interrupted = true;
        self.ready.push_back(Event::Interrupted(signal));
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
                left => drop(kill_tree::stop_and_kill(&left.unwrap_or_default())),
            }
            self.poll(self.clock.now() + INTERVAL);
        }
    }

    /// Returns the remaining processes of this run. Fails if the list of processes cannot be read
    /// now.
    fn remaining_processes(&mut self) -> io::Result<Vec<i32>> {
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
        let tagged = all.filter(|(process, tag)| tag.is_some() && process.pid != own);
        Ok(tagged.map(|(process, _)| process.pid).collect())
    }
}
