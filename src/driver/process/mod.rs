//! The process driver: real processes, real files, real time, on one thread.
//!
//! The loop waits for pidfds, signals and the answers of worker threads. What may block is done by
//! workers, so that time limits hold whatever a file system does.

mod admission;
mod aside;
mod block;
mod buffer;
mod child;
mod children;
mod command;
mod emptying;
mod family;
mod farewell;
mod files;
mod glob;
mod io;
mod keep;
mod keys;
mod lease;
mod live;
mod offload;
mod patience;
mod poll;
mod proc;
mod purge;
mod repair;
mod replace;
mod signal;
mod spawn;
mod store;
mod stream;
mod supervisor;
mod survey;
mod sys;
mod table;
mod tag;
mod terminal;
#[cfg(test)]
mod tests;
mod turn;
mod witness;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bstr::BString;

pub use self::aside::{Aside, Attended};
pub use self::keep::Keep;
pub use self::lease::forget_dead_limit;
pub use self::live::columns;
pub use self::patience::Patience;
pub use self::repair::{Edited, Repair};
pub use self::signal::die_by;
pub use self::supervisor::{Duties, Supervision, resume, supervise};
pub use self::sys::{exit_now, has_room, random, size, with_large_stack};

use self::admission::{Admission, Request};
use self::children::Children;
use self::command::{Answer, Command, Waiting};
use self::family::Families;
use self::io::{Io, plain};
use self::live::Live;
use self::offload::{Handle, Pool, Ticket};
use self::poll::Poller;
use self::signal::{Interrupts, Signals};
use self::tag::Key;
use self::terminal::Terminal;
use super::Driver;
use crate::machine::Machine;
use crate::machine::effect::{Directory, Effect, OperationId, ProcessId, Query};
use crate::machine::event::{Event, Reply};
use crate::machine::record::{Level, LogEvent, Record};
use crate::machine::size::{LONGEST, too_long};
use crate::machine::time::Time;
use crate::outlet;

/// What a command's last line may end with isn't part of the value.
const LINE_END: u64 = 2;

/// Buffers up to this size are read on the loop.
const SMALL: u64 = 1024 * 1024;

/// Signals and children are looked at this often even while events are waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Writes records to a log.
pub type Log = Box<dyn FnMut(&Record)>;

/// What a process driver is told.
pub struct Settings {
    /// The script, for the log.
    pub file: Arc<str>,
    /// How much to log.
    pub log_level: Level,
    /// The log.
    pub log: Log,
    /// Variables for every command, such as `FTSH_KILL_TIMEOUT`; they win over exported ones.
    pub told: Vec<(&'static str, BString)>,
    /// How long those have to kill in that this shell starts.
    pub patience: Patience,
    /// Whether a terminal shows what the run waits for.
    pub live: bool,
    /// What `supervise` returned, if it was called.
    pub supervision: Option<Supervision>,
    /// How the terminal is to be left if the supervisor is killed.
    pub repair: Option<Repair>,
}

impl Default for Settings {
    /// No log.
    fn default() -> Self {
        Self {
            file: "".into(),
            log_level: Level::NOTHING,
            log: Box::new(|_| ()),
            told: Vec::new(),
            patience: Patience::of(Duration::ZERO),
            live: false,
            supervision: None,
            repair: None,
        }
    }
}

/// Runs effects on the system it runs on. There can be only one in a process at a time, for
/// signals and children belong to the process; the process should have no other children.
pub struct ProcessDriver {
    settings: Settings,
    start: Instant,
    /// `start` on the wall clock, since 1970.
    start_unix: Duration,
    ready: VecDeque<Event>,
    poller: Poller,
    polled: Instant,
    signals: Signals,
    pool: Pool<Answer>,
    io: Io,
    found: spawn::Found,
    commands: HashMap<ProcessId, Command>,
    children: Children,
    /// Answers of workers that were taken already, but not dealt with.
    answers: VecDeque<(Ticket, Answer)>,
    operations: HashMap<OperationId, Handle>,
    waiting: HashMap<Ticket, Waiting>,
    families: Families,
    admission: Admission,
    /// Children without a pidfd are looked for at this moment.
    sweep: Option<Instant>,
    limit: sys::FileLimit,
    containment: Containment,
    /// Whether pidfds tell of the end of children; signals do otherwise.
    pidfds: bool,
    supervision: Option<Supervision>,
    interrupts: Interrupts,
    terminal: Option<Terminal>,
    repair: Option<Repair>,
    /// The name of this run in the environment of its commands.
    key: Key,
    /// Our own process id.
    pid: i32,
    /// How many commands workers are starting.
    starting: usize,
    /// What people are told.
    live: Live,
}

/// How processes that lost their parents are found.
enum Containment {
    /// They come to us.
    Subreaper,
    /// By the groups they are in, and their mark; with `ps` where there is no `/proc`.
    Groups { ps: bool },
}

const SIGNALS: poll::Token = 0;
const ANSWERS: poll::Token = 1;
const SUPERVISOR: poll::Token = 2;
const ASIDE: poll::Token = 3;
const KEYS: poll::Token = 4;
/// A child's pidfd has its process id plus this.
const CHILDREN: poll::Token = 1 << 32;

impl ProcessDriver {
    /// A driver whose time starts now. Fails if the system has no descriptors or random numbers
    /// left.
    pub fn new(mut settings: Settings) -> std::io::Result<Self> {
        let start = Instant::now();
        let start_unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // What is open now is what scripts see: before anything of our own is opened.
        let io = Io::new();
        let containment = containment();
        let pidfds = has_pidfds();
        let mut poller = Poller::new(!pidfds)?;
        let terminal = Terminal::open();
        let live = Live::new(settings.live);
        let signals = Signals::catch()?;
        let (supervision, repair) = (settings.supervision.take(), settings.repair.take());
        if let Some(supervision) = &supervision {
            if let Err(error) = &terminal {
                Supervision::part_without_terminal(error);
            }
            supervision.release_signals();
        }
        let pool = Pool::new()?;
        poller.add(signals.readiness(), SIGNALS)?;
        poller.add(pool.readiness(), ANSWERS)?;
        if let Some(supervision) = &supervision {
            poller.add(supervision.readiness(), SUPERVISOR)?;
        }
        let key = match &supervision {
            Some(supervision) => supervision.key().clone(),
            None => Key::new()?,
        };
        let pid = std::process::id() as i32;
        let mut children = Children::new(children::Real);
        if !sys::has_no_children() {
            children.preexisting = proc::children(pid).into_iter().collect();
        }
        let mut driver = Self {
            settings,
            start,
            start_unix,
            ready: VecDeque::new(),
            poller,
            polled: start,
            signals,
            pool,
            io,
            found: spawn::Found::default(),
            commands: HashMap::new(),
            children,
            answers: VecDeque::new(),
            operations: HashMap::new(),
            waiting: HashMap::new(),
            families: Families::new(),
            admission: Admission::new(start),
            sweep: None,
            limit: sys::FileLimit::default(),
            containment,
            pidfds,
            supervision,
            interrupts: Interrupts::default(),
            terminal: terminal.ok(),
            repair,
            key,
            pid,
            starting: 0,
            live,
        };
        if !pidfds {
            driver.log(0, LogEvent::Note("no pidfds: signals tell of the end of commands".into()));
        }
        if let Containment::Groups { ps } = driver.containment {
            let source = if ps { "ps" } else { "/proc" };
            let note = format!("no subreaper: daemons are looked for through {source}");
            driver.log(0, LogEvent::Note(note));
        }
        outlet::allow_threads();
        Ok(driver)
    }

    /// Whether the log tells of processes and signals.
    fn logs_processes(&self) -> bool {
        self.settings.log_level >= Level::PROCESSES
    }

    /// Writes to the log what the level asks for.
    fn log(&mut self, line: u32, event: LogEvent) {
        if event.level() <= self.settings.log_level {
            self.live.hide();
            let (at, file) = (self.now(), self.settings.file.clone());
            let (level, task, attempt, uncaught) = (event.level(), None, None, false);
            (self.settings.log)(&Record { at, level, task, file, line, attempt, uncaught, event });
        }
    }

    fn answer(&mut self, operation: OperationId, result: Result<Reply, String>) {
        self.ready.push_back(Event::Done { operation, result });
    }

    /// Has a worker answer an operation.
    fn operate(
        &mut self,
        operation: OperationId,
        job: impl FnOnce(&offload::Control) -> Answer + Send + 'static,
    ) {
        match self.pool.submit(job) {
            Ok(handle) => {
                self.waiting.insert(handle.ticket, Waiting::Operation(operation));
                self.operations.insert(operation, handle);
            }
            Err(error) => self.answer(operation, Err(no_worker(&error))),
        }
    }

    fn query(&mut self, operation: OperationId, directory: Directory, query: Query) {
        let Query::Buffer(id) = query else {
            self.operate(operation, move |control| {
                Answer::Reply(files::answer(&directory, &query, control))
            });
            return;
        };
        if let Some(content) = self.io.text(id) {
            let content = content.clone();
            return self.answer(operation, Ok(Reply::Text(content)));
        }
        let buffer = match self.io.existing(id) {
            Ok(buffer) => buffer,
            Err(message) => return self.answer(operation, Err(message)),
        };
        let length = buffer.len();
        if length > LONGEST as u64 + LINE_END {
            return self.answer(operation, Err(too_long(length as usize)));
        }
        let read = move || {
            let content = buffer.content().map(Reply::Text);
            content.map_err(|error| format!("the variable can't be read: {}", plain(&error)))
        };
        if length <= SMALL {
            self.answer(operation, read());
        } else {
            self.operate(operation, move |_| Answer::Reply(read()));
        }
    }

    fn abandon(&mut self, operation: OperationId) {
        if self.admission.abandon(operation) {
            return;
        }
        if let Some(handle) = self.operations.remove(&operation) {
            self.waiting.remove(&handle.ticket);
            self.pool.cancel(&handle);
            self.admission.note_free();
        }
    }

    /// A limit as commands want to know it: seconds since 1970.
    fn unix(&self, deadline: Time) -> BString {
        let moment = self.start_unix.saturating_add(deadline.elapsed());
        format!("{}.{:06}", moment.as_secs(), moment.subsec_micros()).into()
    }

    fn open(&mut self, effect: Effect) {
        let Effect::Open { operation, io, base, directory, redirects } = effect else { return };
        self.make_room();
        let plan = match self.io.plan(base, &directory, redirects) {
            Ok(plan) => plan,
            Err(message) => return self.answer(operation, Err(message)),
        };
        if plan.may_block() {
            self.operate(operation, move |control| Answer::Table(io, plan.carry_out(control)));
        } else {
            let table = plan.carry_out(&offload::Control::default());
            let result = table.map(|table| {
                self.io.insert(io, table);
                Reply::Truth(true)
            });
            self.answer(operation, result);
        }
    }

    /// Asks for more descriptors before the usual limit is reached.
    fn make_room(&mut self) {
        self.limit.make_room_for(self.children.len() + self.io.size());
    }
}

/// For tests, and only in builds for them: `pidfd` does without pidfds, `1` without subreapers as well,
/// `ps` also without `/proc`.
const TEST_FALLBACK: &str = "FTSH_TEST_FALLBACK";

fn is_asked_for(fallbacks: &[&str]) -> bool {
    cfg!(debug_assertions)
        && std::env::var_os(TEST_FALLBACK)
            .is_some_and(|value| fallbacks.iter().any(|fallback| value == **fallback))
}

fn has_pidfds() -> bool {
    static PIDFDS: OnceLock<bool> = OnceLock::new();
    *PIDFDS.get_or_init(|| !is_asked_for(&["pidfd", "1", "ps"]) && sys::has_pidfds())
}

/// Has orphans come to this process from now on, if that can be had and their list as well.
fn become_subreaper() -> bool {
    !is_asked_for(&["1", "ps"]) && proc::lists_children() && sys::become_subreaper(true)
}

fn containment() -> Containment {
    if become_subreaper() {
        return Containment::Subreaper;
    }
    let ps = is_asked_for(&["ps"]) || !std::path::Path::new("/proc/self/stat").exists();
    Containment::Groups { ps }
}

fn no_worker(error: &std::io::Error) -> String {
    format!("no thread to be had: {}", plain(error))
}

impl Driver for ProcessDriver {
    fn now(&self) -> Time {
        Time::after(self.start.elapsed())
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Run(run) => self.request(Request::Run(run)),
            Effect::Exec(run) => self.exec(*run),
            Effect::Open { .. } => self.request(Request::Open(effect)),
            Effect::Query { operation, directory, query } => {
                self.request(Request::Query(operation, directory, query));
            }
            Effect::Abandon(operation) => self.abandon(operation),
            Effect::OpenScope { scope, parent } => self.open_scope(scope, parent),
            Effect::Terminate(scope) => self.terminate(scope),
            Effect::Kill { scope, strong } => self.kill(scope, strong),
            Effect::HandOver { scope, into } => self.hand_over(scope, into),
            Effect::CloseIo(io) => {
                self.io.close(io);
                self.admission.note_free();
            }
            Effect::DropBuffer(buffer) => {
                self.io.drop_buffer(buffer);
                self.admission.note_free();
            }
            Effect::Log(record) => {
                if record.level <= self.settings.log_level {
                    self.live.hide();
                    (self.settings.log)(&record);
                }
            }
        }
    }

    fn watch(&mut self, machine: &Machine) {
        self.look_at(machine);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        loop {
            self.admit(until);
            self.settle();
            if self.ready.is_empty() || self.polled.elapsed() >= POLL_INTERVAL {
                self.poll(until);
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.now() >= until || self.live.wants_a_look() {
                return None;
            }
        }
    }
}
