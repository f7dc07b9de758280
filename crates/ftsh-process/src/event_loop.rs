//! Turn of the event loop: waits for events and handles them.

use std::time::{Duration, Instant};

use super::endings::SWEEP_INTERVAL;
use super::external_fds::EXTERNAL_FDS;
use super::fds::FdError;
use super::fds::held_output::HELD;
use super::input_spool::SPOOLS;
use super::jobs::{JobRecipient, JobResult, RELAYS};
use super::os::signal::{self, die_by};
use super::procs::shutdown_sweep::ShutdownSweep;
use super::tty::Terminal;
use super::{
    ANSWERS, BACKGROUND, CHILDREN, CONTROL_FD, CONTROL_TIMER, KEYS, ProcessDriver, SIGNALS,
    SUPERVISOR, WATCHES,
};
use ftsh_machine::driver::Interactive;
use ftsh_machine::event::Reply;
use ftsh_machine::record::LogEvent;
use ftsh_machine::time::Time;
use ftsh_sys as sys;

/// Shorter waits do without SIGCHLD. In longer ones, ended orphans would accumulate.
const SHORT_WAIT: Duration = Duration::from_millis(50);

impl ProcessDriver {
    /// Returns the time at which the loop must turn without an event.
    fn next_due(&self) -> Option<Instant> {
        let keys = self.tty.terminal.as_ref().and_then(Terminal::due);
        let line = self.tty.status_line.due();
        let waits = self.admission.due;
        let all = [
            self.work.pool.next_due(),
            self.children.sweep,
            self.scopes.next_look(),
            line,
            keys,
            waits,
            self.relays.due,
            self.remote_control.due(),
            self.turns.due(),
            self.watches.due(),
        ];
        all.into_iter().flatten().min()
    }

    /// Waits for events and handles them.
    pub(super) fn poll(&mut self, until: Time) {
        let now = Instant::now();
        if self.needs_signals() && self.catch_child_signals() {
            self.polled = now;
            return; // events may have occurred before signals were caught
        }
        if self.children.len() > 0 {
            self.children.kill_count.begin();
        }
        let mut timeout = match until {
            Time::NEVER => None,
            _ => Some(self.clock.time_until(until, now)),
        };
        if let Some(due) = self.next_due() {
            let wait = due.saturating_duration_since(now);
            timeout = Some(timeout.map_or(wait, |timeout| timeout.min(wait)));
        }
        if !self.ready.is_empty() {
            timeout = Some(Duration::ZERO);
        }
        let mut tokens =
            if self.signals.catches_children() || timeout.is_some_and(|it| it <= SHORT_WAIT) {
                self.poller.wait(timeout)
            } else {
                let tokens = self.poller.wait(Some(SHORT_WAIT));
                if tokens.is_empty() {
                    self.catch_child_signals();
                }
                tokens
            };
        self.polled = Instant::now();
        let happened = !tokens.is_empty();
        // Signals come first: they concern children whose tokens follow.
        tokens.sort_unstable();
        for token in tokens {
            match token {
                SIGNALS => self.take_signals(),
                ANSWERS => self.take_answers(),
                SUPERVISOR => self.die_at_once(),
                KEYS => self.read_keys(),
                CONTROL_FD => self.read_control(),
                CONTROL_TIMER => self.apply_control(),
                WATCHES => self.take_samples(),
                BACKGROUND => {} // handled by the caller
                EXTERNAL_FDS.. => self.external_fds.push(token - EXTERNAL_FDS),
                HELD.. => self.io.held.take_in(token, &mut self.poller),
                SPOOLS.. => self.feed_inputs(token),
                RELAYS.. => {
                    let (relays, mut external_fds) = self.relays();
                    relays.read_some(&mut external_fds, token - RELAYS);
                }
                _ => self.reap((token - CHILDREN) as i32),
            }
        }
        if happened && !self.needs_signals() {
            self.signals.catch_children(false);
        }
        self.take_due(Instant::now());
    }

    /// Performs all work that is due. Due times are reset here, whichever function runs the loop,
    /// so that each makes the loop turn once.
    fn take_due(&mut self, now: Instant) {
        self.report_hanging_calls(now);
        self.tty.status_line.tick(now);
        self.admission.due.take_if(|due| *due <= now); // checked at the next turn
        let (relays, mut external_fds) = self.relays();
        relays.give_up(&mut external_fds, now);
        if self.turns.due().is_some_and(|due| due <= now) {
            self.take_turns(|turns, external_fds| turns.recheck(external_fds, now));
        }
        self.kill_after_keys(now);
        self.grant_terminal(now);
        if self.remote_control.is_due() {
            self.apply_control();
        }
        self.sample_scopes(now);
        if self.children.sweep.take_if(|due| *due <= now).is_some() {
            self.reap_unwatched();
        }
        self.advance_scopes();
    }

    /// Repeats interrupts of canceled calls, and reports those that hang in the kernel.
    pub(super) fn report_hanging_calls(&mut self, now: Instant) {
        for call in self.work.pool.tick(now) {
            self.log(0, LogEvent::Hanging { call });
        }
    }

    /// True if events that pidfds do not report are needed: the end of other children, stopped
    /// children, the end of orphans.
    fn needs_signals(&self) -> bool {
        self.tty.terminal.is_some() || self.children.unwatched() > 0 || self.scopes.is_emptying()
    }

    /// Catches SIGCHLD until the next event, since a signal for each command would cost too much.
    /// Returns true if catching begins now, after handling of earlier ends.
    fn catch_child_signals(&mut self) -> bool {
        let begins = self.signals.catch_children(true);
        if begins {
            self.scopes.suspect_all();
            self.reap_unwatched();
            self.reap_orphans();
            self.handle_stopped();
        }
        begins
    }

    pub(super) fn take_signals(&mut self) {
        let mut changed = false;
        let mut unknown = false;
        for caught in self.signals.take() {
            match caught.signal {
                libc::SIGCHLD => {
                    changed = true;
                    match self.children.get(caught.sender) {
                        Some(child) if child.pidfd.is_some() => {}
                        Some(_) => self.reap(caught.sender),
                        None => unknown = true,
                    }
                }
                signal @ libc::SIGTSTP => self.suspend(signal, None),
                libc::SIGUSR1 => self.status_requested(caught.sender),
                signal if signal::is_ending(signal) => self.interrupted(signal, caught.sender),
                _ => {}
            }
        }
        if changed {
            self.handle_stopped();
        }
        // Simultaneous signals are delivered once, so other children may have changed too.
        let waiting = self.scopes.is_emptying();
        if changed && waiting {
            self.adopt_orphans();
        } else if unknown {
            self.reap_orphans();
        }
        if changed && self.children.sweep.is_none() && self.children.unwatched() > 0 {
            self.children.sweep = Some(Instant::now() + SWEEP_INTERVAL);
        }
    }

    /// Kills all processes of the run and ends, after the death of the supervisor or at the limit.
    #[expect(unsafe_code, reason = "the last that this process does")]
    pub(super) fn die_at_once(&mut self) -> ! {
        // A program started by a worker after the last scan would survive.
        sys::forbid_starts();
        let shutdown_sweep = if self.scopes.adopts() {
            ShutdownSweep::Children(self.children.preexisting.clone())
        } else {
            ShutdownSweep::Tagged(self.scanner.tagger.clone(), self.children.pids().collect())
        };
        let given_up = shutdown_sweep.kill();
        self.tty.terminal = None; // gives the terminal back
        self.restore_terminal();
        self.cleanup.registry.close();
        if let Some(supervision) = &self.supervision {
            supervision.finish_alone();
        }
        // SAFETY: from here on, this process only waits and ends.
        unsafe { sys::close_all(&[]) };
        shutdown_sweep.await_clients(&given_up);
        die_by(libc::SIGKILL)
    }

    pub(super) fn take_answers(&mut self) {
        self.work.pool.clear_readiness();
        while let Some((ticket, answer)) =
            self.work.answers.pop_front().or_else(|| self.work.pool.answer())
        {
            match self.work.waiting.remove(&ticket) {
                Some(JobRecipient::Command(process)) => self.command_answered(process, answer),
                Some(JobRecipient::Relay(relay)) => match answer {
                    JobResult::Ended(ended) => {
                        let (relays, mut external_fds) = self.relays();
                        relays.written(&mut external_fds, relay, ended);
                    }
                    _ => self.report_bug("the write of a relay got another answer"),
                },
                Some(JobRecipient::Channel(name)) => match answer {
                    JobResult::Channel(waited) => {
                        self.take_turns(|turns, external_fds| {
                            turns.waited(external_fds, &name, waited)
                        });
                    }
                    _ => self.report_bug("the wait for a channel got another answer"),
                },
                Some(JobRecipient::Operation(operation)) => {
                    self.work.operations.remove(&operation);
                    self.admission.note_free();
                    self.reconsider_inputs();
                    self.log_notes_of_workers();
                    let result = match answer {
                        JobResult::Reply(result) => result,
                        JobResult::Table(io, table) => table.map(|table| {
                            self.io.insert(io, table);
                            Reply::Truth(true)
                        }),
                        JobResult::Started(..)
                        | JobResult::Ready(..)
                        | JobResult::Ended(_)
                        | JobResult::Channel(_)
                        | JobResult::Left(_)
                        | JobResult::Cancelled => {
                            self.report_bug("a query was answered like a command");
                            Err(FdError::Gone("the answer"))
                        }
                    };
                    self.answer(operation, result);
                }
                None => {
                    // Only removals of files have no recipient.
                    let JobResult::Left(left) = answer else { continue };
                    for (level, note) in left {
                        self.log_at(level, 0, LogEvent::Note(note));
                    }
                }
            }
        }
    }
}
