//! Process driver: real processes, files and time, on one thread.
//!
//! The event loop waits for pidfds, signals and results of worker threads. Workers perform calls
//! that may block, so that time limits hold whatever a file system does.

mod admission;
mod attempts;
mod background;
mod channels;
mod cleanup;
mod commands;
mod control;
mod durations;
mod endings;
mod event_loop;
mod external_fds;
mod fds;
mod input_spool;
mod job_control;
mod jobs;
pub mod non_blocking_writer;
mod os;
mod procs;
mod program;
mod remote_control;
mod scopes;
mod status;
mod supervisor;
mod tag;
#[cfg(test)]
mod tests;
mod tty;
pub mod user_directory;
mod views;
mod watch;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bstr::BString;
use ftsh_sys as sys;

pub use self::background::BackgroundJob;
pub use self::channels::{BreakerSnapshot, ChannelSnapshot, ListedChannel, list_channels};
pub use self::cleanup::replace_file;
pub use self::control::{ControlLink, Controller, Order, SharedDeadline};
pub use self::durations::{DurationStore, DurationsConfig, ScriptIdentity};
pub use self::external_fds::Readiness;
pub use self::fds::spilling_log::SpillingLog;
pub use self::os::clock::{BOOT_ID, boot_id, since_boot};
pub use self::os::local_time::local_zone;
pub use self::os::signal::die_by;
pub use self::os::umask::{assume_umask, umask};
pub use self::procs::{CLIENTS, adopt_orphans, kill_children, kill_stale_runs, kill_subtree};
pub use self::program::filter::{is_requested as is_filter, serve as serve_filter};
pub use self::supervisor::{
    AtEnd, LivenessLocks, OutputCapture, ShellLiveness, Supervision, SupervisorOptions, end,
    liveness, supervise,
};
pub use self::tag::{KillTimeout, LimitClocks, PassedDeadline, remove_expired_limit};
pub use self::tty::{Edited, TerminalRestore, columns, shows_status_line};
pub use self::views::remove_commit_record;
pub use ftsh_sys::{
    duplicate, exit_now, has_room, ignore_file_size_limit, ignore_only, ignored_signals,
    keep_closed, prepare_allocator, random, restore_job_control, size, was_closed,
    with_large_stack,
};

use self::admission::{AdmissionQueue, DescriptorRequest};
use self::cleanup::Cleanup;
use self::durations::DurationRecorder;
use self::fds::path::TaskDirectory;
use self::fds::{FdError, FdTables, TreePosition};
use self::input_spool::InputSpools;
use self::jobs::{
    ActiveCommand, Children, JobContext, JobResult, Relays, Turns, UserNote, WorkerJobs, children,
};
use self::os::clock::RunClock;
use self::os::poll::{self, Poller};
use self::os::signal::Signals;
use self::os::workers::Control;
use self::procs::features::{become_subreaper, has_pidfds, needs_ps};
use self::procs::list;
use self::procs::scanner::ProcessScanner;
use self::program::ProgramCache;
use self::remote_control::ControlState;
use self::scopes::{EndStep, ScopeTree};
use self::tag::{LimitTexts, Tagger};
use self::tty::{StatusLine, Terminal, Tty};
use self::views::Views;
use self::watch::ScopeWatches;
use ftsh_machine::Machine;
use ftsh_machine::driver::{BufferPart, Driver, Durable};
use ftsh_machine::effect::{
    BufferId, Effect, FdChange, FdSource, IoId, OperationId, ProcessId, ViewId,
};
use ftsh_machine::event::{Event, Refusal, Reply};
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::time::Time;

/// Length of a line end at the end of a command's output, which is not part of the value.
const LINE_END: u64 = 2;

/// Maximum size of a buffer read on the event loop.
const SMALL: u64 = 1024 * 1024;

/// Interval of checks for signals and children while events are waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Writer of log records.
pub type Log = Box<dyn FnMut(&LogRecord)>;

/// Settings of a process driver that options and environment decide.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessConfig {
    /// Variables in the environment of every command, such as `FTSH_KILL_TIMEOUT`. They take
    /// precedence over exported ones.
    pub child_env: Vec<(&'static str, BString)>,
    /// Kill timeout of the shells that this one starts.
    pub kill_timeout: KillTimeout,
    /// Directory of the channels, if it is not the usual one.
    pub channels: Option<PathBuf>,
    /// Durations of earlier attempts.
    pub durations: DurationsConfig,
}

impl Default for ProcessConfig {
    fn default() -> Self {
        Self {
            child_env: Vec::new(),
            kill_timeout: KillTimeout::of(Duration::ZERO),
            channels: None,
            durations: DurationsConfig::default(),
        }
    }
}

/// Connections between a process driver and the rest of the shell.
pub struct Attachments {
    /// Name of the script, for the log.
    pub file: Arc<str>,
    /// Level up to which records are written.
    pub log_level: Level,
    /// Receiver of the records.
    pub log: Log,
    /// True if a terminal may show the state of the run.
    pub status_line: bool,
    /// True if the script has lines that its user knows.
    pub has_lines: bool,
    /// Receiver of the visibility of the status line, called shortly after a `try` has begun to
    /// wait. The argument is true if the line shows the delay.
    pub line_shows: Box<dyn FnMut(bool)>,
    /// Result of `supervise`, if there is a supervisor.
    pub supervision: Option<Supervision>,
    /// Modes that the terminal gets if the supervisor is killed.
    pub restore: Option<TerminalRestore>,
    /// Age of the run when its last shell ended. The clock of the driver continues there.
    pub elapsed: Duration,
    /// Remote control of this shell, if another machine started it.
    pub control: Option<ControlLink>,
}

impl Default for Attachments {
    /// Nothing is attached.
    fn default() -> Self {
        Self {
            file: "".into(),
            log_level: Level::NOTHING,
            log: Box::new(|_| ()),
            status_line: false,
            has_lines: true,
            line_shows: Box::new(|_| ()),
            supervision: None,
            restore: None,
            elapsed: Duration::ZERO,
            control: None,
        }
    }
}

/// Driver that executes effects on this system. Signals and children belong to the process, so only
/// one driver per process may exist at a time, and the process should have no other children.
pub struct ProcessDriver {
    config: ProcessConfig,
    attachments: Attachments,
    clock: RunClock,
    limit_texts: LimitTexts,
    ready: VecDeque<Event>,
    poller: Poller,
    /// Time of the last poll.
    polled: Instant,
    signals: Signals,
    work: WorkerJobs,
    io: FdTables,
    /// Dropped before the registry of their layers is cleared.
    views: Views,
    cleanup: Cleanup,
    input_spools: InputSpools,
    relays: Relays,
    turns: Turns,
    durations: DurationRecorder,
    found: ProgramCache,
    commands: HashMap<ProcessId, ActiveCommand>,
    children: Children,
    scopes: ScopeTree,
    /// Scopes whose processes are watched.
    watches: ScopeWatches,
    /// Scanner of all processes, used without a subreaper.
    scanner: ProcessScanner,
    admission: AdmissionQueue,
    supervision: Option<Supervision>,
    remote_control: ControlState,
    tty: Tty,
    /// Ready descriptors of a driver around this one.
    external_fds: Vec<u64>,
    /// Set after the warning that daemons may be left.
    has_warned: bool,
}

const SIGNALS: poll::Token = 0;
const ANSWERS: poll::Token = 1;
const SUPERVISOR: poll::Token = 2;
const BACKGROUND: poll::Token = 3;
const KEYS: poll::Token = 4;
const CONTROL_FD: poll::Token = 5;
const CONTROL_TIMER: poll::Token = 6;
const WATCHES: poll::Token = 7;
/// Base of the poller tokens of pidfds.
const CHILDREN: poll::Token = 1 << 32;

impl ProcessDriver {
    /// Creates a driver and starts its clock. Fails if the system has no descriptors or random
    /// numbers left.
    pub fn new(config: ProcessConfig, mut attachments: Attachments) -> std::io::Result<Box<Self>> {
        let clock = RunClock::start(attachments.elapsed);
        umask();
        // Records the open descriptors, which scripts can use, before opening any of its own.
        let cleanup = Cleanup::new(attachments.supervision.as_ref().map(Supervision::socket));
        let io = FdTables::new(cleanup.registry.clone());
        let adopts = become_subreaper();
        let pidfds = has_pidfds();
        let mut poller = Poller::new(!pidfds)?;
        let terminal = Terminal::open();
        let status_line = StatusLine::new(attachments.status_line);
        let signals = Signals::catch()?;
        let (supervision, restore) = (attachments.supervision.take(), attachments.restore.take());
        if let (Some(_), Err(error)) = (&supervision, &terminal) {
            Supervision::part_without_terminal(error);
        }
        sys::release_signals();
        let work = WorkerJobs::new()?;
        poller.add(signals.readiness(), SIGNALS)?;
        poller.add(work.pool.readiness(), ANSWERS)?;
        if let Some(supervision) = &supervision {
            poller.add(supervision.readiness(), SUPERVISOR)?;
        }
        let control = attachments.control.take();
        let tagger = match &supervision {
            Some(supervision) => supervision.tagger().clone(),
            None => Tagger::new()?,
        };
        let mut children = Children::new(children::Real);
        children.pidfds = pidfds;
        if !sys::has_no_children() {
            children.preexisting = list::children(children.parent)?.into_iter().collect();
        }
        let begun = clock.start;
        let turns = Turns::new(config.channels.clone());
        let durations = DurationRecorder::new(config.durations.clone());
        let mut driver = Box::new(Self {
            config,
            attachments,
            clock,
            limit_texts: LimitTexts::default(),
            ready: VecDeque::new(),
            poller,
            polled: begun,
            signals,
            work,
            io,
            views: Views::default(),
            cleanup,
            input_spools: InputSpools::default(),
            relays: Relays::default(),
            turns,
            durations,
            found: ProgramCache::default(),
            commands: HashMap::new(),
            children,
            scopes: ScopeTree::new(adopts),
            watches: ScopeWatches::default(),
            scanner: ProcessScanner::new(tagger),
            admission: AdmissionQueue::new(begun),
            supervision,
            remote_control: ControlState::new(control),
            tty: Tty { terminal: terminal.ok(), restore, status_line },
            external_fds: Vec::new(),
            has_warned: false,
        });
        if !pidfds {
            driver.log(0, LogEvent::Note("no pidfds: signals report the end of commands".into()));
        }
        if !adopts {
            let source = if needs_ps() { "ps" } else { "/proc" };
            let note = format!("no subreaper: daemons are found through {source}");
            driver.log(0, LogEvent::Note(note));
        }
        non_blocking_writer::allow_threads();
        driver.start_control()?;
        driver.sweep_stale_runs();
        Ok(driver)
    }

    /// Returns the name of this start, which is part of the tags of its processes.
    pub fn tag_name(&self) -> &str {
        self.scanner.tagger.name()
    }

    /// True if a terminal may show a status line.
    pub fn shows_line(&self) -> bool {
        self.tty.status_line.is_on()
    }

    fn answer(&mut self, operation: OperationId, result: Result<Reply, FdError>) {
        let result = result.map_err(Refusal::from);
        self.ready.push_back(Event::Done { operation, result });
    }

    fn open(&mut self, effect: Effect, place: TreePosition) {
        let Effect::Open { operation, io, base, directory, umask, redirects } = effect else {
            return self.report_bug("an effect other than `Open` was to be opened");
        };
        self.make_room();
        let adds = |it: &FdChange| {
            !matches!(
                it.source,
                FdSource::Null | FdSource::Gone | FdSource::Position(_) | FdSource::Descriptor(_)
            )
        };
        let holds = redirects.iter().any(adds);
        let directory = TaskDirectory::of(&directory, &self.views);
        let mut plan = match self.io.plan(base, &directory, umask, redirects) {
            Ok(plan) => plan,
            Err(error) => return self.answer(operation, Err(error)),
        };
        let (relays, mut external_fds) = self.relays();
        let relayed = relays.listen(&mut external_fds, io, std::mem::take(&mut plan.relayed));
        let held = relayed.and_then(|()| self.io.held.listen(&mut self.poller));
        let begun = held
            .map_err(FdError::Pipe)
            .and_then(|()| self.input_spools.begin(&mut plan, &mut self.poller));
        if let Err(error) = begun {
            return self.answer(operation, Err(error));
        }
        plan.table.holds = holds;
        if holds {
            plan.table.place = place;
        }
        if let Err(error) = plan.begin() {
            return self.answer(operation, Err(error));
        }
        if plan.may_block() {
            self.operate(operation, move |control| JobResult::Table(io, plan.carry_out(control)));
        } else {
            let table = plan.carry_out(&Control::default());
            let result = table.map(|table| {
                self.io.insert(io, table);
                Reply::Truth(true)
            });
            self.answer(operation, result);
        }
    }

    /// Returns the relays and their context.
    fn relays(&mut self) -> (&mut Relays, JobContext<'_>) {
        let Self { relays, poller, work, ready, .. } = self;
        (relays, JobContext { poller, work, ready })
    }

    /// Performs an action on the channels.
    fn take_turns(&mut self, act: impl FnOnce(&mut Turns, &mut JobContext<'_>) -> UserNote) {
        let Self { turns, poller, work, ready, .. } = self;
        let note = act(turns, &mut JobContext { poller, work, ready });
        self.show_note(note);
    }

    /// Raises the limit of descriptors before it is reached.
    fn make_room(&mut self) {
        self.admission.limit.make_room_for(
            self.children.len() + self.io.size() + self.relays.count() + self.input_spools.size(),
        );
    }
}

impl Driver for ProcessDriver {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Run(run) => self.request(DescriptorRequest::Run(run)),
            Effect::Exec(run) => self.request(DescriptorRequest::Exec(run)),
            Effect::Dispatch(branch) => self.ready.push_back(Event::no_engine(branch.process)),
            Effect::Open { .. } => self.request(DescriptorRequest::Open(effect)),
            Effect::Query { operation, directory, query } => {
                self.request(DescriptorRequest::Query(operation, directory, query));
            }
            Effect::Abandon(operation) => self.abandon(operation),
            Effect::OpenScope { scope, parent, pass } => {
                self.open_scope(scope, parent);
                if let Some(pass) = pass {
                    self.turns.set_pass(scope, pass);
                }
            }
            Effect::Watch { scope, watch } => self.watches.begin(scope, watch, Instant::now()),
            Effect::SetSignal(scope, signal) => self.scopes.set_signal(scope, signal),
            Effect::Terminate(scope) => self.end_scope(scope, EndStep::First),
            Effect::Escalate(scope) => self.end_scope(scope, EndStep::Escalate),
            Effect::Kill { scope, strong } => self.end_scope(scope, EndStep::Kill { strong }),
            Effect::HandOver { scope, into } => self.hand_over(scope, into),
            Effect::Relay { operation, io } => {
                self.relays.begin(&self.io, operation, io);
                if self.relays.use_the_terminal() {
                    self.tty.status_line.hide_for_output();
                }
            }
            Effect::FinishRelay(operation) => {
                let (relays, mut external_fds) = self.relays();
                relays.finish(&mut external_fds, operation);
            }
            Effect::CloseIo(io) => {
                self.io.close(io);
                let (relays, mut external_fds) = self.relays();
                relays.end_table(&mut external_fds, io);
                self.reconsider_inputs();
                self.admission.note_free();
            }
            Effect::Fill(buffer, bytes) => self.io.fill(buffer, bytes),
            Effect::ForgetOutput(buffer) => self.relays.forget_kept(buffer),
            Effect::DropBuffer(buffer) => {
                self.io.drop_buffer(buffer);
                self.relays.take_kept(buffer);
                self.admission.note_free();
            }
            Effect::Commit { operation, files } => self.commit_staged_files(operation, &files),
            Effect::BeginView(request) => self.begin_view(*request),
            Effect::CommitView { operation, view, files, is_inner } => {
                self.commit_view(operation, view, &files, is_inner);
            }
            Effect::DropView(view) => self.drop_view(view),
            Effect::DropStagedFile(draft) => self.io.drop_staged_file(draft),
            Effect::KeepInput(input_spool) => self.keep_input(input_spool),
            Effect::DropSpool(input_spool) => self.drop_replay(input_spool),
            Effect::DropScratch(scratch) => self.drop_scratch(scratch),
            Effect::Enter(entry) => self.request(DescriptorRequest::Enter(entry)),
            Effect::Leave(pass, passed) => {
                self.take_turns(|turns, external_fds| turns.leave(external_fds, pass, passed));
            }
            Effect::RecordDurations(name, lines) => self.durations.record(name, lines),
            Effect::Log(record) => {
                if record.level <= self.attachments.log_level {
                    self.tty.status_line.hide();
                    (self.attachments.log)(&record);
                    if record.event.delay().is_some() {
                        self.tty.status_line.expect_delay();
                    }
                }
            }
        }
    }

    fn watch(&mut self, machine: &Machine) {
        self.update_status(machine);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        loop {
            self.admit(until);
            self.advance_scopes();
            if self.ready.is_empty() || self.polled.elapsed() >= POLL_INTERVAL {
                self.poll(until);
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.now() >= until
                || self.tty.status_line.needs_update()
                || !self.external_fds.is_empty()
            {
                return None;
            }
        }
    }
}

impl Durable for ProcessDriver {
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        let (fd, position) = self.io.position(io, descriptor)?;
        // A current attempt is lost, and the next one begins at the same offset.
        Some(self.input_spools.start_of(fd).unwrap_or(position))
    }

    fn written(&mut self, buffer: BufferId, from: u64) -> std::io::Result<Option<BufferPart>> {
        self.io.written(buffer, from)
    }

    fn record_commits(&mut self, run: u64) {
        self.views.record_commits(run);
    }

    fn take_over_view(&mut self, view: ViewId, directories: &[BString]) -> bool {
        self.views.add_committed(view, directories)
    }

    fn catch_up(&mut self) {
        self.reap_all();
    }
}
