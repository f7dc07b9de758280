//! Turn of the event loop: waits for events and handles them.

use std::time::{Duration, Instant};

use super::ProcessDriver;
use super::tokens::{
    ANSWERS, BACKGROUND, CHILDREN, CONTROL_FD, CONTROL_TIMER, EXTERNAL_FDS, KEYS, SIGNALS,
    SUPERVISOR, WATCHES,
};
use crate::buffers::HELD;
use crate::carried::cancel_jobs;
use crate::events::{Token, die_by};
use crate::input_spool::SPOOLS;
use crate::jobs::{JobRecipient, JobResult, RELAYS};
use crate::paths::FdError;
use ftsh_machine::effect::OperationId;
use ftsh_machine::event::Reply;
use ftsh_machine::record::{Level, LogEvent};
use ftsh_machine::time::Time;
use ftsh_sys as sys;
use ftsh_sys::os_error::plain;

/// Shorter waits do without SIGCHLD. In longer ones, ended orphans would accumulate.
const SHORT_WAIT: Duration = Duration::from_millis(50);

impl ProcessDriver {
    /// Returns the time at which the loop must turn without an event.
    fn next_due(&mut self) -> Option<Instant> {
        let all = [
            self.reactor.due(),
            self.processes.due(),
            self.console.line().due(),
            self.job_control.due(),
            self.requests.due(),
            self.tables.relays().due,
            self.remote_control.due(),
            self.turns.due(),
        ];
        all.into_iter().flatten().min()
    }

    /// Waits for events and handles them.
    pub(super) fn poll(&mut self, until: Time) {
        let now = Instant::now();
        if self.needs_signals() && self.catch_child_signals() {
            self.reactor.postpone_poll(now);
            return; // events may have occurred before signals were caught
        }
        if self.processes.child_count() > 0 {
            self.processes.children().kill_count.begin();
        }
        let timeout = self.timeout(until, now);
        let mut tokens = self.wait_for_tokens(timeout);
        let happened = !tokens.is_empty();
        // Signals come first: they concern children whose tokens follow.
        tokens.sort_unstable();
        for token in tokens {
            self.handle(token);
        }
        // While much happens, a signal for each command would cost more than the next check.
        if happened && !self.needs_signals() {
            self.signals.catch_children(false);
        }
        self.take_due(Instant::now());
    }

    /// Returns the time that the loop may wait; none if forever.
    fn timeout(&mut self, until: Time, now: Instant) -> Option<Duration> {
        if !self.reactor.events().is_empty() {
            return Some(Duration::ZERO);
        }
        let until = (until != Time::NEVER).then(|| self.clock.time_until(until, now));
        let due = self.next_due().map(|due| due.saturating_duration_since(now));
        [until, due].into_iter().flatten().min()
    }

    fn wait_for_tokens(&mut self, timeout: Option<Duration>) -> Vec<Token> {
        if self.signals.catches_children() || timeout.is_some_and(|it| it <= SHORT_WAIT) {
            return self.reactor.wait(timeout);
        }
        let tokens = self.reactor.wait(Some(SHORT_WAIT));
        // Nothing happens: from now on, a signal reports each ended orphan.
        if tokens.is_empty() {
            self.catch_child_signals();
        }
        tokens
    }

    /// Handles a ready descriptor.
    fn handle(&mut self, token: Token) {
        let Self { reactor, tables, .. } = self;
        match token {
            SIGNALS => self.take_signals(),
            ANSWERS => self.take_answers(),
            SUPERVISOR => self.die_at_once(),
            KEYS => self.job_control.read_keys(reactor),
            CONTROL_FD => {
                self.remote_control.read_messages(reactor.poller());
                self.apply_control();
            }
            CONTROL_TIMER => self.apply_control(),
            WATCHES => self.processes.take_samples(reactor, &mut self.console),
            BACKGROUND => {} // handled by the caller
            EXTERNAL_FDS.. => self.external_fds.push(token - EXTERNAL_FDS),
            HELD.. => tables.io_mut().held.take_in(token, reactor.poller()),
            SPOOLS.. => {
                if let Err(error) = tables.spools().handle_event(token, reactor.poller()) {
                    let note = format!("cannot read the input to its end: {}", plain(&error));
                    self.console.log(0, LogEvent::Note(note));
                }
            }
            RELAYS.. => tables.relays().read_some(reactor, token - RELAYS),
            _ => self.reap((token - CHILDREN) as i32),
        }
    }

    /// Performs all work that is due. Due times are reset here, whichever function runs the loop,
    /// so that each makes the loop turn once.
    fn take_due(&mut self, now: Instant) {
        self.report_hanging_calls(now);
        self.console.line().tick(now);
        self.requests.reset_due(now);
        self.tables.relays().give_up(&mut self.reactor, now);
        if self.turns.due().is_some_and(|due| due <= now) {
            let note = self.turns.recheck(&mut self.reactor, now);
            self.console.show_note(note);
        }
        self.job_control.kill_after_keys(&mut self.reactor, now);
        self.grant_terminal(now);
        if self.remote_control.is_due() {
            self.apply_control();
        }
        self.sample_scopes(now);
        if self.processes.take_sweep(now) {
            self.reap_unwatched();
        }
        self.advance_scopes();
    }

    /// Repeats interrupts of canceled calls, and reports those that hang in the kernel.
    pub(super) fn report_hanging_calls(&mut self, now: Instant) {
        for call in self.reactor.tick(now) {
            self.console.log(0, LogEvent::Hanging { call });
        }
    }

    /// True if events that pidfds do not report are needed: the end of other children, stopped
    /// children, the end of orphans.
    fn needs_signals(&mut self) -> bool {
        self.job_control.has_terminal()
            || self.processes.children().unwatched() > 0
            || self.processes.is_emptying()
    }

    /// Catches SIGCHLD until the next event, since a signal for each command would cost too much.
    /// Returns true if catching begins now, after handling of earlier ends.
    fn catch_child_signals(&mut self) -> bool {
        let begins = self.signals.catch_children(true);
        if begins {
            self.processes.scopes().suspect_all();
            self.reap_unwatched();
            self.reap_orphans();
            self.handle_stopped();
        }
        begins
    }

    /// Kills all processes of the run and ends, after the death of the supervisor or at the limit.
    #[expect(unsafe_code, reason = "the last that this process does")]
    pub(super) fn die_at_once(&mut self) -> ! {
        // A program started by a worker after the last scan would survive.
        sys::forbid_starts();
        let shutdown_sweep = self.processes.shutdown_sweep();
        let given_up = shutdown_sweep.kill();
        self.job_control.leave();
        let jobs = self.tables.registry().close();
        if let Some(supervision) = &self.supervision {
            supervision.finish_alone();
        }
        // Clients exit when their standard input ends, whose other end is closed here.
        // SAFETY: from here on, this process only waits and ends.
        unsafe { sys::close_all(&[]) };
        shutdown_sweep.await_clients(&given_up);
        cancel_jobs(&jobs);
        die_by(libc::SIGKILL)
    }

    /// Handles the results of workers.
    pub(super) fn take_answers(&mut self) {
        // Reset first: a result that arrives after the last look makes the token ready again.
        self.reactor.clear_readiness();
        while let Some((recipient, answer)) = self.reactor.take_answer() {
            match (recipient, answer) {
                (Some(JobRecipient::Command(process)), answer) => {
                    self.command_answered(process, answer);
                }
                (Some(JobRecipient::Operation(operation)), answer) => {
                    self.operation_answered(operation, answer);
                }
                (Some(JobRecipient::Relay(relay)), JobResult::Ended(ended)) => {
                    self.tables.relays().written(&mut self.reactor, relay, ended);
                }
                (Some(JobRecipient::Channel(name)), JobResult::Channel(waited)) => {
                    let note = self.turns.waited(&mut self.reactor, &name, waited);
                    self.console.show_note(note);
                }
                (Some(JobRecipient::Relay(_) | JobRecipient::Channel(_)), _) => {
                    self.console.report_bug("a relay or a channel got another answer");
                }
                // Only removals of files have no recipient.
                (None, JobResult::Left(left)) => self.console.log_notes(left),
                (None, _) => {}
            }
        }
    }

    fn operation_answered(&mut self, operation: OperationId, answer: JobResult) {
        self.requests.note_free();
        self.tables.reconsider_inputs(&mut self.reactor);
        self.log_notes_of_workers();
        let result = match answer {
            JobResult::Reply(result) => result,
            JobResult::Table(io, table) => table.map(|table| {
                self.tables.io_mut().insert(io, table);
                Reply::Truth(true)
            }),
            JobResult::Started(..)
            | JobResult::Ready(..)
            | JobResult::Ended(_)
            | JobResult::Channel(_)
            | JobResult::Left(_)
            | JobResult::Cancelled => {
                self.console.report_bug("a query was answered like a command");
                Err(FdError::Gone("the answer"))
            }
        };
        self.reactor.answer(operation, result);
    }

    /// Logs the messages about durations, and about commits of killed shells.
    pub(super) fn log_notes_of_workers(&mut self) {
        self.console.log_notes(self.durations.take_notes());
        let reports = self.tables.registry().take_reports().into_iter();
        self.console.log_notes(reports.map(|note| (Level::ENDING, note)));
    }
}
