//! Driver tests on the real system.
//!
//! A driver owns its process's signals and children. Each test therefore runs in a process of its
//! own, with all features of the system and without some.

mod channels;
mod commands;
mod durable;
mod input_spools;
#[expect(unsafe_code, reason = "a filter of system calls")]
#[path = "../../../../../tests/support/old_kernel.rs"]
mod old_kernel;
mod redirects;
mod scopes;
mod transactions;

use std::collections::VecDeque;
use std::io::{Read, Seek};
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bstr::BString;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use self::old_kernel::take_features;
use crate::driver::ProcessDriver;
use crate::driver::config::{Attachments, ProcessConfig};
use ftsh_machine::driver::Driver;
use ftsh_machine::effect::{
    Action, BufferId, Directory, Effect, FdChange, FdSource, IoId, OperationId, ProcessId, Query,
    Run, ScopeId, ScratchId, TaskId,
};
use ftsh_machine::event::{CommandStatus, Event, Refusal, Reply};
use ftsh_machine::time::{Deadline, Time};
use ftsh_sys as sys;

/// Environment variable with the way of a test: the features of the system that are missing.
const WAY: &str = "FTSH_TEST_WAY";

fn way() -> String {
    std::env::var(WAY).unwrap_or_default()
}

/// Upper bound of any step.
const LONG: Duration = Duration::from_secs(20);

/// Declares tests that each run in processes of their own.
macro_rules! each_alone {
    ($($(#[$attribute:meta])* fn $name:ident($world:ident) $body:block)*) => {$(
        #[test]
        $(#[$attribute])*
        fn $name() {
            super::alone(concat!(module_path!(), "::", stringify!($name)), |$world| $body);
        }
    )*};
}
use each_alone;

fn alone(path: &str, body: fn(&mut World)) {
    alone_with(path, Attachments::default, body);
}

fn alone_with(path: &str, attachments: impl FnOnce() -> Attachments, body: fn(&mut World)) {
    let name = path.split_once("::").map_or(path, |(_crate, rest)| rest);
    if std::env::var_os("FTSH_TEST_ALONE").is_some_and(|alone| alone == name) {
        // `&` and `nohup` in a script start the tests with ignored signals.
        sys::ignore_only(&[]);
        take_features(&way()).expect("a filter");
        return body(&mut World::with_attachments(attachments()));
    }
    keep_inherited();
    let program = std::env::current_exe().expect("a test has a program");
    for way in ["0", "pidfd", "1"] {
        // A pipe could be held open by processes that a failing test leaves behind.
        let mut log = tempfile::tempfile().expect("a file");
        let copy = || log.try_clone().expect("a descriptor");
        let status = process::Command::new(&program)
            .args(["--exact", name, "--nocapture", "--include-ignored"])
            .env("FTSH_TEST_ALONE", name)
            .env(WAY, way)
            .stdin(process::Stdio::null())
            .stdout(copy())
            .stderr(copy())
            .status()
            .expect("a test can start itself");
        let mut text = String::new();
        log.rewind().expect("a file");
        log.read_to_string(&mut text).expect("text");
        assert!(status.success() && text.contains("1 passed"), "way {way}: {text}");
        if std::env::var_os("FTSH_TEST_VERBOSE").is_some() {
            eprintln!("{text}");
        }
    }
}

/// Moves descriptors inherited from the test runner out of the way of scripts.
fn keep_inherited() {
    for number in 3..=9 {
        if let Some(fd) = sys::Inherited::of(number) {
            let _ = fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC));
        }
    }
}

#[test]
fn inherited_descriptors_are_moved_away() {
    let name = "what_leads_to_one_file_is_held_in_order";
    let path = module_path!()
        .split_once("::")
        .map(|(_crate, rest)| format!("{rest}::transactions::{name}"));
    let result = process::Command::new("sh")
        .args(["-c", "exec 3> /dev/null 9< /dev/null; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().expect("a test has a program"))
        .args(["--exact", &path.expect("a path")])
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&result.stdout);
    assert!(result.status.success() && text.contains("1 passed"), "{text}");
}

/// Driver with its earlier events.
struct World {
    driver: ProcessDriver,
    last: u64,
    events: VecDeque<Event>,
    directory: Directory,
    umask: Option<u16>,
    redirects: Vec<FdChange>,
    deadline: Deadline,
}

impl World {
    fn with_attachments(attachments: Attachments) -> Self {
        Self {
            driver: *ProcessDriver::new(ProcessConfig::default(), attachments)
                .expect("a driver can be made"),
            last: 0,
            events: VecDeque::new(),
            directory: Directory::default(),
            umask: None,
            redirects: Vec::new(),
            deadline: Deadline::NONE,
        }
    }

    fn id(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Sets the redirections of further commands.
    fn with(&mut self, redirects: &[(u8, FdSource)]) -> &mut Self {
        let changes = |(descriptor, source): &(u8, FdSource)| FdChange {
            descriptor: *descriptor,
            source: source.clone(),
        };
        self.redirects = redirects.iter().map(changes).collect();
        self
    }

    fn start_in(&mut self, scope: ScopeId, action: Action) -> ProcessId {
        let process = ProcessId(self.id());
        let run = self.request(process, scope, action);
        self.driver.perform(Effect::Run(Box::new(run)));
        process
    }

    fn request(&self, process: ProcessId, scope: ScopeId, action: Action) -> Run {
        Run {
            process,
            task: TaskId(0),
            scope,
            action,
            directory: self.directory.clone(),
            umask: self.umask,
            io: IoId::INHERITED,
            is_last: false,
            redirects: self.redirects.clone(),
            feeds: 0,
            deadline: self.deadline,
            grace: None,
            line: 1,
        }
    }

    fn start(&mut self, action: Action) -> ProcessId {
        self.start_in(ScopeId::SCRIPT, action)
    }

    /// Returns the first event accepted by `wanted`, past or future.
    fn expect<T>(&mut self, what: &str, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
        if let Some(found) = self.look(&mut wanted) {
            return found;
        }
        let limit = self.driver.now() + LONG;
        while let Some(event) = self.driver.wait(limit) {
            self.events.push_back(event);
            if let Some(found) = self.look(&mut wanted) {
                return found;
            }
        }
        let children = crate::procs::ProcDir(process::id() as i32).children();
        panic!("no {what}, but {:?}; children: {children:?}", self.events)
    }

    fn look<T>(&mut self, wanted: &mut impl FnMut(&Event) -> Option<T>) -> Option<T> {
        let at = self.events.iter().position(|event| wanted(event).is_some())?;
        self.events.remove(at).and_then(|event| wanted(&event))
    }

    /// Returns the end of a command: `exit 0`, `signal 15`, `Redirect: reason`; with the line it
    /// read.
    fn end_of(&mut self, wanted: ProcessId) -> String {
        self.expect("end of the command", |event| match event {
            Event::Exited { process, status, line, .. } if *process == wanted => {
                let status = match status {
                    CommandStatus::Exited(code) => format!("exit {code}"),
                    CommandStatus::Signaled(signal) => format!("signal {signal}"),
                    CommandStatus::OutOfMemory => "out of memory".into(),
                    CommandStatus::Lost => "lost".into(),
                };
                Some(match line {
                    Some(line) => format!("{status}: {line}"),
                    None => status,
                })
            }
            Event::SpawnFailed { process, error } if *process == wanted => {
                Some(format!("{:?}: {}", error.kind, error.message))
            }
            _ => None,
        })
    }

    fn pid_of(&mut self, wanted: ProcessId) -> i32 {
        self.expect("start of the command", |event| match event {
            Event::Spawned { process, pid } if *process == wanted => Some(*pid),
            _ => None,
        })
    }

    /// Opens a table.
    fn open(&mut self, io: IoId, base: IoId, redirects: Vec<FdChange>) {
        let operation = OperationId(self.id());
        let (directory, umask) = (self.directory.clone(), self.umask);
        self.driver.perform(Effect::Open { operation, io, base, directory, umask, redirects });
        assert_eq!(self.done(operation), Ok(Reply::Truth(true)));
    }

    /// Starts a command from a table.
    fn start_from(&mut self, io: IoId, action: Action) -> ProcessId {
        let process = ProcessId(self.id());
        let mut run = self.request(process, ScopeId::SCRIPT, action);
        run.io = io;
        self.driver.perform(Effect::Run(Box::new(run)));
        process
    }

    fn ask(&mut self, query: Query) -> Result<Reply, Refusal> {
        let operation = OperationId(self.id());
        let directory = self.directory.clone();
        self.driver.perform(Effect::Query { operation, directory, query });
        self.done(operation)
    }

    fn done(&mut self, wanted: OperationId) -> Result<Reply, Refusal> {
        self.expect("answer", |event| match event {
            Event::Done { operation, result } if *operation == wanted => Some(result.clone()),
            _ => None,
        })
    }

    fn content(&mut self, buffer: BufferId) -> BString {
        match self.ask(Query::Buffer(buffer)) {
            Ok(Reply::Text(text)) => text,
            other => panic!("not the content of a buffer: {other:?}"),
        }
    }

    /// Runs a command to its end with its output in a buffer. Returns its end and its output.
    fn output(&mut self, action: Action) -> (String, BString) {
        let buffer = BufferId(self.id());
        let create = FdSource::BufferCreate(buffer, BString::default());
        self.redirects.push(FdChange { descriptor: 1, source: create });
        let process = self.start(action);
        self.redirects.pop();
        let end = self.end_of(process);
        (end, self.content(buffer))
    }

    fn emptied(&mut self, wanted: ScopeId) {
        self.expect("emptied scope", |event| {
            (*event == Event::Emptied { scope: wanted }).then_some(())
        });
    }

    /// True if no further event arrives within a short time.
    fn is_quiet(&mut self) -> bool {
        let limit = self.driver.now() + Duration::from_millis(5);
        self.events.is_empty() && self.driver.wait(limit).is_none()
    }
}

/// Returns a refusal for a reason of the system.
fn refused(message: impl Into<String>, errno: &str) -> Refusal {
    Refusal { message: message.into(), errno: Some(errno.into()) }
}

/// Kills all processes of the test.
impl Drop for World {
    fn drop(&mut self) {
        self.driver.perform(Effect::Terminate(ScopeId::SCRIPT));
        self.driver.perform(Effect::Kill { scope: ScopeId::SCRIPT, strong: true });
        // Needed after a failed test too.
        let start = Instant::now();
        while start.elapsed() < LONG {
            let soon = self.driver.now() + Duration::from_millis(100);
            if self.driver.wait(soon) == Some(Event::Emptied { scope: ScopeId::SCRIPT }) {
                break;
            }
        }
    }
}

/// Returns a unique value of `MARK`.
fn mark(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

fn program(words: &[&str]) -> Action {
    with_variables(words, &[])
}

fn shell(script: &str) -> Action {
    program(&["sh", "-c", script])
}

fn with_variables(words: &[&str], variables: &[(&str, &str)]) -> Action {
    let exported = std::env::vars().map(|(name, value)| (name.into(), value.into())).collect();
    Action::Program {
        words: words.iter().map(|&word| word.into()).collect(),
        environment: Arc::new(exported),
        overrides: variables.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
    }
}

/// Waits for a condition that no event reports.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// True if a process lives and is no zombie.
fn lives(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

/// Returns the living processes with this value of `MARK` in their environment.
fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("MARK={mark}");
    let processes = std::fs::read_dir("/proc").expect("a system with /proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    pids.filter(has).filter(|&pid| lives(pid)).collect()
}

/// Describes processes for a failure: what they execute, and whose children they are.
fn stories(pids: &[i32]) -> String {
    let story = |pid: &i32| {
        let read = |file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let [command, stat, environment] = ["cmdline", "stat", "environ"].map(read);
        let tags = environment.split(|&byte| byte == 0).filter(|it| it.starts_with(b"FTSH_"));
        let texts = [command, stat, tags.collect::<Vec<_>>().join(&b' ')];
        texts.map(|text| String::from_utf8_lossy(&text).replace('\0', " ")).join("\n")
    };
    pids.iter().map(story).collect()
}
