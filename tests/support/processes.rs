//! Finding a run's processes.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A process that carries a run's mark.
#[derive(Debug)]
pub struct Survivor {
    /// Its id.
    pub pid: i32,
    /// Its command line, for people.
    pub command: String,
}

/// By which variable runs mark their processes.
pub const MARK: &str = "FTSH_TEST_RUN";

/// What is known of a process that has been looked at: its mark. By its id and the number of its
/// folder, which no other process ever has. What was there before the tests has none.
static KNOWN: LazyLock<Mutex<HashMap<(i32, u64), String>>> = LazyLock::new(|| {
    let own = start_time(std::process::id() as i32);
    let is_older = |&(pid, _): &(i32, u64)| start_time(pid) < own;
    Mutex::new(all().filter(is_older).map(|process| (process, String::new())).collect())
});

/// The live processes whose environment has the entry `mark` (`FTSH_TEST_RUN=value`). Zombies have none.
///
/// Reading an environment is most of the work, and a process that has the mark of another run never
/// gets this one, so each is read once for all runs but its own.
pub fn marked(mark: &str) -> Vec<Survivor> {
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

/// The environment of a process; empty for a zombie. A program that is just taking the place of
/// another one has none for a moment, which may be over when that is looked at.
fn environment(pid: i32) -> Vec<u8> {
    let read = || fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let start = Instant::now();
    loop {
        let environment = read();
        if !environment.is_empty() {
            return environment;
        }
        if !is_being_replaced(pid) || start.elapsed() > Duration::from_secs(10) {
            return read();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a process has memory, but nothing that says where in it its arguments or its environment
/// end.
fn is_being_replaced(pid: i32) -> bool {
    let stat = Stat::of(pid);
    let is_set = |number| stat.field(number).is_some_and(|field| field != "0");
    let (memory, arguments_end, environment) = (is_set(23), is_set(49), is_set(50));
    memory && (!arguments_end || environment && !is_set(51))
}

/// When a process started, in ticks of the system; none if it is gone.
fn start_time(pid: i32) -> Option<u64> {
    Stat::of(pid).field(22)?.parse().ok()
}

/// What `/proc/PID/stat` says.
struct Stat(String);

impl Stat {
    fn of(pid: i32) -> Self {
        Self(fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default())
    }

    /// Counted as in proc(5); the third is the first after the name.
    fn field(&self, number: usize) -> Option<&str> {
        self.0.rsplit(") ").next()?.split(' ').nth(number - 3)
    }
}

/// The live processes one of whose arguments is `mark`: for those that wipe their environment.
pub fn with_argument(mark: &str) -> Vec<Survivor> {
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

/// All processes but this one and the first, which is no run's and may hide what it has: their ids,
/// and the numbers of their folders.
fn all() -> impl Iterator<Item = (i32, u64)> {
    let own = std::process::id() as i32;
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.ino())))
        .filter(move |&(pid, _)| pid != own && pid != 1)
}
