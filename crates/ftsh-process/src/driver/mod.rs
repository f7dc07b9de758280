//! The driver: parts that each keep their own state, and the effects and events that concern
//! several of them.

mod background;
mod commands;
mod config;
mod console;
mod endings;
mod environment;
mod event_loop;
mod external_fds;
mod job_control;
mod processes;
mod remote_control;
mod requests;
mod signals;
mod start;
mod status;
mod system_view;
mod tables;
#[cfg(test)]
mod tests;
mod tokens;

use std::time::{Duration, Instant};

use bstr::BString;

pub use self::background::BackgroundJob;
pub use self::config::{Attachments, Log, ProcessConfig};
pub use self::external_fds::Readiness;

use self::console::Console;
use self::environment::CommandEnvironment;
use self::job_control::JobControl;
use self::processes::Processes;
use self::requests::{DescriptorRequest, PendingRequests};
use self::system_view::SystemView;
use self::tables::{OpenRequest, Tables};
use self::tokens::{ANSWERS, CONTROL_FD, CONTROL_TIMER, SIGNALS, SUPERVISOR};
use crate::cleanup::Cleanup;
use crate::clock::RunClock;
use crate::control::ControlState;
use crate::durations::DurationRecorder;
use crate::events::{Poller, Signals};
use crate::jobs::{Reactor, Turns};
use crate::kill::become_subreaper;
use crate::non_blocking_writer;
use crate::procs::has_proc;
use crate::program::ProgramCache;
use crate::scopes::{EndStep, ScopeTree};
use crate::supervisor::Supervision;
use crate::system::umask;
use crate::tag::Tagger;
use crate::tty::Terminal;
use ftsh_machine::Machine;
use ftsh_machine::driver::{BufferPart, Driver, Durable};
use ftsh_machine::effect::{BufferId, Effect, IoId, Query, ViewId};
use ftsh_machine::event::{Event, Reply};
use ftsh_machine::record::LogEvent;
use ftsh_machine::time::Time;
use ftsh_sys as sys;

/// Interval of checks for signals and children while events are waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Driver that executes effects on this system. Signals and children belong to the process, so only
/// one driver per process may exist at a time, and the process should have no other children.
pub struct ProcessDriver {
    clock: RunClock,
    reactor: Reactor,
    signals: Signals,
    tables: Tables,
    turns: Turns,
    durations: DurationRecorder,
    programs: ProgramCache,
    environment: CommandEnvironment,
    processes: Processes,
    requests: PendingRequests,
    supervision: Option<Supervision>,
    remote_control: ControlState,
    job_control: JobControl,
    console: Console,
    /// Ready descriptors of a driver around this one.
    external_fds: Vec<u64>,
}

impl ProcessDriver {
    /// Creates a driver and starts its clock. Fails if the system has no descriptors or random
    /// numbers left.
    pub fn new(config: ProcessConfig, mut attachments: Attachments) -> std::io::Result<Box<Self>> {
        let clock = RunClock::start(attachments.elapsed);
        umask();
        // Records the open descriptors, which scripts can use, before opening any of its own.
        let cleanup = Cleanup::new(attachments.supervision.as_ref().map(Supervision::socket));
        let tables = Tables::new(cleanup);
        let (adopts, pidfds) = (become_subreaper(), sys::has_pidfds());
        let mut reactor = Reactor::new(Poller::new()?, ANSWERS)?;
        let terminal = Terminal::open();
        let (supervision, restore) = (attachments.supervision.take(), attachments.restore.take());
        let control = attachments.control.take();
        let console = Console::new(clock, attachments);
        let signals = Signals::catch()?;
        if let (Some(_), Err(error)) = (&supervision, &terminal) {
            Supervision::part_without_terminal(error);
        }
        // Handlers come first: a signal that the parent has blocked may be pending.
        sys::release_signals();
        reactor.poller().add(signals.readiness(), SIGNALS)?;
        if let Some(supervision) = &supervision {
            reactor.poller().add(supervision.readiness(), SUPERVISOR)?;
        }
        let tagger = match &supervision {
            Some(supervision) => supervision.tagger().clone(),
            None => Tagger::new()?,
        };
        let mut driver = Box::new(Self {
            clock,
            reactor,
            signals,
            tables,
            turns: Turns::new(config.channels.clone()),
            durations: DurationRecorder::new(config.durations.clone()),
            programs: ProgramCache::default(),
            environment: CommandEnvironment::new(config, clock),
            processes: Processes::new(tagger, adopts, pidfds)?,
            requests: PendingRequests::new(clock.start),
            supervision,
            remote_control: ControlState::new(control),
            job_control: JobControl::new(terminal.ok(), restore),
            console,
            external_fds: Vec::new(),
        });
        if !pidfds {
            let note = "no pidfds: signals report the end of commands";
            driver.console.log(0, LogEvent::Note(note.into()));
        }
        if !adopts {
            let note = if has_proc() {
                "no subreaper: daemons are found through /proc"
            } else {
                "no subreaper and no /proc: daemons are not found"
            };
            driver.console.log(0, LogEvent::Note(note.into()));
        }
        non_blocking_writer::allow_threads();
        let poller = driver.reactor.poller();
        driver.remote_control.listen(poller, CONTROL_FD, CONTROL_TIMER)?;
        driver.apply_control();
        driver.tables.sweep_stale_runs(&mut driver.reactor);
        Ok(driver)
    }

    /// Returns the name of this start, which is part of the tags of its processes.
    pub fn tag_name(&self) -> &str {
        self.processes.tagger().name()
    }

    /// True if a terminal may show a status line.
    pub fn shows_line(&self) -> bool {
        self.console.shows_line()
    }

    /// Returns the scopes and their queries.
    fn scopes_and_system(&mut self) -> (&mut ScopeTree, SystemView<'_>) {
        self.processes.scopes_and_system(&mut self.reactor, self.job_control.terminal())
    }
}

impl Driver for ProcessDriver {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn perform(&mut self, effect: Effect) {
        let Self { reactor, tables, processes, .. } = self;
        match effect {
            Effect::Run(run) => self.request(DescriptorRequest::Run(run)),
            Effect::Exec(run) => self.request(DescriptorRequest::Exec(run)),
            Effect::Dispatch(branch) => reactor.emit(Event::no_engine(branch.process)),
            Effect::Open { operation, io, base, directory, umask, redirects } => {
                let open = OpenRequest { operation, io, base, directory, umask, redirects };
                self.request(DescriptorRequest::Open(open));
            }
            Effect::Query { operation, query: Query::Leftovers(scope), .. } => {
                let (scopes, mut system) = self.scopes_and_system();
                let names = scopes.names(scope, &mut system);
                self.act();
                self.reactor.answer(operation, Ok(Reply::Words(names)));
            }
            Effect::Query { operation, directory, query } => {
                self.request(DescriptorRequest::Query(operation, directory, query));
            }
            Effect::Abandon(operation) => self.abandon(operation),
            Effect::OpenScope { scope, parent, pass } => {
                let (scopes, mut system) = self.scopes_and_system();
                scopes.open(scope, parent, &mut system, Instant::now());
                self.act();
                if let Some(pass) = pass {
                    self.turns.set_pass(scope, pass);
                }
            }
            Effect::Watch { scope, watch } => processes.watch_scope(scope, watch),
            Effect::SetSignal(scope, signal) => processes.scopes().set_signal(scope, signal),
            Effect::Terminate(scope) => self.end_scope(scope, EndStep::First),
            Effect::Escalate(scope) => self.end_scope(scope, EndStep::Escalate),
            Effect::Kill { scope, strong } => self.end_scope(scope, EndStep::Kill { strong }),
            Effect::HandOver { scope, into } => {
                processes.hand_over(reactor, self.job_control.terminal(), scope, into);
            }
            Effect::Relay { operation, io } => {
                tables.begin_relay(operation, io);
                if tables.relays().use_the_terminal() {
                    self.console.line().hide_for_output();
                }
            }
            Effect::FinishRelay(operation) => tables.relays().finish(reactor, operation),
            Effect::CloseIo(io) => {
                tables.close(reactor, io);
                self.requests.note_free();
            }
            Effect::Fill(buffer, bytes) => tables.io_mut().fill(buffer, bytes),
            Effect::ForgetOutput(buffer) => tables.relays().forget_kept(buffer),
            Effect::DropBuffer(buffer) => {
                tables.drop_buffer(buffer);
                self.requests.note_free();
            }
            Effect::Commit { operation, files } => tables.commit(reactor, operation, &files),
            Effect::BeginView(request) => tables.begin_view(reactor, *request),
            Effect::CommitView { operation, view, files, is_inner } => {
                tables.commit_view(reactor, operation, view, &files, is_inner);
            }
            Effect::DropView(view) => tables.drop_view(reactor, view),
            Effect::DropStagedFile(file) => tables.io_mut().drop_staged_file(file),
            Effect::KeepInput(spool) => tables.spools().keep(spool, reactor.poller()),
            Effect::DropSpool(spool) => {
                tables.spools().drop(spool, reactor.poller());
                self.requests.note_free();
            }
            Effect::DropScratch(scratch) => tables.drop_scratch(reactor, scratch),
            Effect::Enter(entry) => self.request(DescriptorRequest::Enter(entry)),
            Effect::Leave(pass, passed) => {
                let note = self.turns.leave(reactor, pass, passed);
                self.console.show_note(note);
            }
            Effect::RecordDurations(name, lines) => self.durations.record(name, lines),
            Effect::Log(record) => self.console.log_record(&record),
        }
    }

    fn watch(&mut self, machine: &Machine) {
        self.update_status(machine);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        loop {
            self.admit(until);
            self.advance_scopes();
            if self.reactor.events().is_empty() || self.reactor.since_poll() >= POLL_INTERVAL {
                self.poll(until);
            }
            if let Some(event) = self.reactor.take_event() {
                return Some(event);
            }
            if self.now() >= until
                || self.console.line().needs_update()
                || !self.external_fds.is_empty()
            {
                return None;
            }
        }
    }
}

impl Durable for ProcessDriver {
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        self.tables.position(io, descriptor)
    }

    fn written(&mut self, buffer: BufferId, from: u64) -> std::io::Result<Option<BufferPart>> {
        self.tables.io_mut().written(buffer, from)
    }

    fn record_commits(&mut self, run: u64) {
        self.tables.views().record_commits(run);
    }

    fn take_over_view(&mut self, view: ViewId, directories: &[BString]) -> std::io::Result<bool> {
        self.tables.views().add_committed(view, directories)
    }

    fn catch_up(&mut self) {
        self.reap_all();
    }
}
