//! Search for the processes of a run.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Process with the mark of a run.
#[derive(Debug)]
pub(crate) struct Survivor {
    /// Process id.
    pub pid: i32,
    /// Command line, for people.
    pub command: String,
}

impl Survivor {
    /// Waits for a helper of `srun`, which ends by itself a moment after `srun`. Returns false for
    /// other processes, and if the helper stays.
    pub(crate) fn ends_by_itself(&self) -> bool {
        let start = Instant::now();
        let is_there = || fs::exists(format!("/proc/{}/exe", self.pid)).unwrap_or(false);
        while self.command.starts_with("srun ") && start.elapsed() < Duration::from_secs(10) {
            if !is_there() {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Describes the process for people: parent, state, the system call it waits in.
    pub(crate) fn state(&self) -> String {
        let read = |file| fs::read_to_string(format!("/proc/{}/{file}", self.pid));
        let status = read("status").unwrap_or_default();
        let fields: Vec<_> = ["State", "PPid", "SigPnd", "ShdPnd", "SigBlk"]
            .into_iter()
            .filter_map(|name| status.lines().find(|line| line.starts_with(name)))
            .map(|line| line.replace('\t', " "))
            .collect();
        let waits = [read("wchan"), read("syscall")].map(Result::unwrap_or_default);
        let (pid, command) = (self.pid, &self.command);
        format!("{pid} {command}: {}, {}\n", fields.join(", "), waits.join(" ").trim())
    }
}

/// Variable with the mark in the environment of a run's processes.
pub(crate) const MARK: &str = "FTSH_TEST_RUN";

/// Mark of a run. Dropping the mark kills the processes that have it.
pub(crate) struct Mark {
    /// Entry of the environment, `FTSH_TEST_RUN=value`.
    entry: String,
    /// True after the last process is gone.
    is_gone: bool,
}

impl Mark {
    /// Creates the mark of another run.
    pub(crate) fn new() -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        Self { entry: format!("{MARK}={}-{number}", std::process::id()), is_gone: false }
    }

    /// Returns name and value of the variable.
    pub(crate) fn variable(&self) -> (&str, &str) {
        self.entry.split_once('=').expect("a mark has a value")
    }

    /// Returns the live processes of the run.
    pub(crate) fn processes(&self) -> Vec<Survivor> {
        marked(&self.entry)
    }

    /// Returns the live processes after the end of the run. Without any, none appears later.
    pub(crate) fn survivors(&mut self) -> Vec<Survivor> {
        let survivors = self.processes();
        self.is_gone = survivors.is_empty();
        survivors
    }

    /// Kills the processes of the run by their ids.
    pub(crate) fn kill(&mut self) {
        for _ in 0..100 {
            for survivor in self.survivors() {
                let _ = kill(Pid::from_raw(survivor.pid), Signal::SIGKILL);
            }
            if self.is_gone {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if !self.is_gone {
            self.kill();
        }
    }
}

/// Marks of known processes, by process id and inode of the process's folder, which are never
/// reused together.
///
/// Processes older than the tests have no mark.
static KNOWN: LazyLock<Mutex<HashMap<(i32, u64), String>>> = LazyLock::new(|| {
    let own = start_time(std::process::id() as i32);
    let is_older = |&(pid, _): &(i32, u64)| start_time(pid) < own;
    Mutex::new(all().filter(is_older).map(|process| (process, String::new())).collect())
});

/// Returns the live processes whose environment has the entry `mark` (`FTSH_TEST_RUN=value`).
/// Zombies have none.
///
/// Reading an environment is the main cost. A process with the mark of another run never gets this
/// mark, and therefore each process is read once for all other runs.
pub(crate) fn marked(mark: &str) -> Vec<Survivor> {
    with(|pid, folder| {
        let known = || KNOWN.lock().expect("nothing panics with it");
        if known().get(&(pid, folder)).is_some_and(|other| other != mark) {
            return false;
        }
        let environment = environment(pid);
        let mut entries = environment.split(|&byte| byte == 0);
        let prefix = format!("{MARK}=");
        let Some(found) = entries.find(|entry| entry.starts_with(prefix.as_bytes())) else {
            return false;
        };
        let found = String::from_utf8_lossy(found);
        let is_ours = found == mark;
        if !is_ours {
            known().insert((pid, folder), found.into_owned());
        }
        is_ours
    })
}

/// Returns the environment of a process; empty for a zombie.
///
/// A program in the middle of an `exec` has no environment for a moment, which may end at any time.
/// Processes of other users hide their environment, and seem to be in an `exec` for ever.
fn environment(pid: i32) -> Vec<u8> {
    let read = || fs::read(format!("/proc/{pid}/environ"));
    let start = Instant::now();
    loop {
        match read() {
            Ok(environment) if environment.is_empty() => {}
            found => return found.unwrap_or_default(),
        }
        if !is_being_replaced(pid) || start.elapsed() > Duration::from_secs(10) {
            return read().unwrap_or_default();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns true if a process has memory without known ends of its arguments and environment.
fn is_being_replaced(pid: i32) -> bool {
    let stat = Stat::of(pid);
    let is_set = |number| stat.field(number).is_some_and(|field| field != "0");
    let (memory, arguments_end, environment) = (is_set(23), is_set(49), is_set(50));
    memory && (!arguments_end || environment && !is_set(51))
}

/// Returns the start of a process in ticks of the system, or `None` if the process is gone.
fn start_time(pid: i32) -> Option<u64> {
    Stat::of(pid).field(22)?.parse().ok()
}

/// Content of `/proc/PID/stat`.
struct Stat(String);

impl Stat {
    fn of(pid: i32) -> Self {
        Self(fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default())
    }

    /// Returns a field by its number in proc(5); number 3 is the first after the name.
    fn field(&self, number: usize) -> Option<&str> {
        self.0.rsplit(") ").next()?.split(' ').nth(number - 3)
    }
}

/// Returns the live processes with an argument `mark`, for programs that clear their environment.
pub(crate) fn with_argument(mark: &str) -> Vec<Survivor> {
    with(|pid, _| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|&byte| byte == 0).any(|a| a == mark.as_bytes()))
    })
}

fn with(matches: impl Fn(i32, u64) -> bool) -> Vec<Survivor> {
    all()
        .filter(|&(pid, folder)| matches(pid, folder))
        .map(|(pid, _)| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned();
            Survivor { pid, command }
        })
        .collect()
}

/// Returns all processes with the inodes of their folders, except this process and process 1, which
/// may be unreadable.
fn all() -> impl Iterator<Item = (i32, u64)> {
    let own = std::process::id() as i32;
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.ino())))
        .filter(move |&(pid, _)| pid != own && pid != 1)
}
