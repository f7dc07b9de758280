//! Obeying who has a say besides: what is heard from far away, and what follows when it isn't.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::os::signal;
use super::oversight::{Order, Oversight};
use super::procs::{kill_tree, list};
use super::{MOMENT, ProcessDriver, VOICE};
use crate::non_blocking_writer;
use ftsh_machine::event::Event;

/// Who oversees this shell, and whether it was told to end.
pub struct Overseen {
    by: Option<Oversight>,
    /// Whether anybody has told it to end.
    pub interrupted: bool,
}

/// What can't be killed is looked at again after this time.
const INTERVAL: Duration = Duration::from_millis(50);

impl Overseen {
    /// By nobody, or somebody.
    pub fn by(by: Option<Oversight>) -> Self {
        Self { by, interrupted: false }
    }

    /// Whether anybody does.
    pub fn is_so(&self) -> bool {
        self.by.is_some()
    }

    /// When it is to be asked again, if no descriptor tells.
    pub fn due(&self) -> Option<Instant> {
        self.by.as_ref().and_then(Oversight::due)
    }

    /// Whether that moment has come.
    pub fn is_due(&self) -> bool {
        self.by.as_ref().is_some_and(Oversight::is_due)
    }
}

impl ProcessDriver {
    /// Listens from now on.
    pub(super) fn begin_to_obey(&mut self) -> io::Result<()> {
        let Some(oversight) = &mut self.overseen.by else { return Ok(()) };
        if let Some(timer) = oversight.timer() {
            self.poller.add(timer, MOMENT)?;
        }
        // A file that can't be waited for has nobody who writes to it.
        if oversight.voice().is_some_and(|voice| self.poller.add(voice, VOICE).is_err()) {
            oversight.leave();
        }
        self.obey();
        Ok(())
    }

    /// Something has come, or nothing more will.
    pub(super) fn hear_overseer(&mut self) {
        if let Some(oversight) = &mut self.overseen.by
            && let Some(silent) = oversight.listen()
        {
            self.poller.remove(silent.as_fd());
        }
        self.obey();
    }

    /// Does what is to be done by now.
    pub(super) fn obey(&mut self) {
        let Some(oversight) = &mut self.overseen.by else { return };
        for order in oversight.orders() {
            match order {
                Order::Say(text) => {
                    let errors = non_blocking_writer::standard_error();
                    // What was said before waits for somebody who reads: that does as well.
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

    /// The shell is told to end.
    pub(super) fn end_by(&mut self, signal: i32) {
        self.overseen.interrupted = true;
        self.ready.push_back(Event::Interrupted(signal));
    }

    /// After the end of a run of which nothing may be left: waits until that is so, also for what was given
    /// up because it didn't die of SIGKILL, but not longer than who oversees the shell lets it.
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

    /// Processes of this run that are left. Fails if the list cannot be read at the moment.
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
