//! What processes there are: from `/proc`, or from `ps` where there is none.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bstr::ByteSlice;
use wait_timeout::ChildExt;

use super::super::marks::{self, Mark, Marker};
use ftsh_sys as sys;

/// `ps` that takes longer is given up.
const PS_LIMIT: Duration = Duration::from_secs(2);
/// Its end is looked for as often: SIGCHLD, which tells of it, may be the shell's.
const PS_SLICE: Duration = Duration::from_millis(2);

/// A process as a list of all shows it.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its parent's id.
    pub parent: i32,
    /// Its group.
    pub group: i32,
    /// Whether it has ended, and only waits to be waited for.
    pub ended: bool,
    /// When it was started, to tell it from another one that has its id later; 0 if that isn't known.
    pub started: u64,
}

/// Whether `/proc` says who the children of a process are (Linux 3.5 with the usual options). Found
/// out once, for the supervisor as for the interpreter.
pub fn lists_children() -> bool {
    static LISTS: OnceLock<bool> = OnceLock::new();
    *LISTS.get_or_init(|| {
        let pid = std::process::id();
        fs::exists(format!("/proc/{pid}/task/{pid}/children")).unwrap_or(false)
    })
}

/// The children of one thread. Complete if no other thread waits for them meanwhile.
pub fn children_of_thread(pid: i32, thread: i32) -> io::Result<Vec<i32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children"))?;
    Ok(text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// The children of a process, and of all its threads. Complete for a stopped process. Fails where
/// part of the list would be missing.
pub fn children(pid: i32) -> io::Result<Vec<i32>> {
    let tasks = if_there(fs::read_dir(format!("/proc/{pid}/task")))?.into_iter().flatten();
    let mut lists = Vec::new();
    for task in tasks {
        lists.push(task?.path().join("children"));
    }
    // A thread that ends leaves its children to the first one: that is read last.
    lists.reverse();
    let mut children = Vec::new();
    for list in lists {
        let text = if_there(fs::read_to_string(list))?.unwrap_or_default();
        children.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Ok(children)
}

/// Returns none where `/proc` or a process is missing or hidden from this user. Any other error, such
/// as too many open files, says nothing about the process, and is returned.
fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH | libc::EACCES | libc::EPERM) => Ok(None),
            _ => Err(error),
        },
    }
}

/// True if the system has `/proc`.
pub fn has_proc() -> bool {
    if_there(fs::metadata("/proc/self/stat")).map_or(true, |found| found.is_some())
}

/// Returns a process and all its descendants. Fails where part of the list would be missing.
pub fn tree(root: i32) -> io::Result<Vec<i32>> {
    let all = if lists_children() { None } else { Some(by_parent(&all()?)) };
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        next += 1;
        found.extend(match &all {
            None => children(pid)?,
            Some(all) => all.get(&pid).cloned().unwrap_or_default(),
        });
    }
    Ok(found)
}

/// Returns a process and all that it descends from. Fails where part of the list would be missing.
pub fn ancestry(pid: i32) -> io::Result<Vec<i32>> {
    let mut found = vec![pid];
    let mut last = pid;
    while let Some(process) = one(last)?.filter(|process| process.parent > 0) {
        last = process.parent;
        found.push(last);
    }
    Ok(found)
}

/// True if a signal has stopped a process.
pub fn is_stopped(pid: i32) -> bool {
    let line = stat(pid).unwrap_or_default();
    Stat::of(&line).is_some_and(|stat| stat.field(3) == Some("T"))
}

/// The files that a process has open and whose names have `part` in them: device and
/// number of each. Others aren't touched:
/// their file system may not answer.
pub fn files(pid: i32, part: &[u8]) -> io::Result<Vec<(u64, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let path = entry?.path();
        let name = match fs::read_link(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue, // it is closed by now
            name => name?,
        };
        if name.as_os_str().as_bytes().contains_str(part) {
            files.extend(if_there(fs::metadata(&path))?.map(|data| (data.dev(), data.ino())));
        }
    }
    Ok(files)
}

/// All processes. Fails where some would be missing.
pub fn all() -> io::Result<Vec<Process>> {
    if has_proc() {
        pids()?.into_iter().filter_map(|pid| one(pid).transpose()).collect()
    } else {
        from_ps()
    }
}

/// The ids of all processes. Fails where some would be missing.
pub fn pids() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(pids)
}

/// Returns what `/proc` says about a process; none if there is no such process. Fails if the system
/// could not read that.
pub fn one(pid: i32) -> io::Result<Option<Process>> {
    Ok(Stat::of(&stat(pid)?).and_then(|stat| stat.process(pid)))
}

/// The line of `/proc` about a process, empty if there is no such process. Fails if the system could
/// not read the line.
pub fn stat(pid: i32) -> io::Result<String> {
    // In one piece: some fifty numbers and a short name.
    let mut line = [0; 2048];
    let read = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut line));
    let count = if_there(read)?.unwrap_or(0);
    Ok(String::from_utf8_lossy(&line[..count]).into_owned())
}

/// Such a line.
pub struct Stat<'a> {
    /// From the third field on.
    fields: Vec<&'a str>,
}

impl<'a> Stat<'a> {
    /// None if there isn't one.
    pub fn of(line: &'a str) -> Option<Self> {
        // The name before is in parentheses, and may hold any characters.
        let (_, fields) = line.rsplit_once(')')?;
        Some(Self { fields: fields.split_ascii_whitespace().collect() })
    }

    /// A field, numbered as in proc(5).
    fn field(&self, number: usize) -> Option<&'a str> {
        self.fields.get(number - 3).copied()
    }

    fn number<T: FromStr>(&self, field: usize) -> Option<T> {
        self.field(field)?.parse().ok()
    }

    /// The process that it describes.
    pub fn process(&self, pid: i32) -> Option<Process> {
        let ended = matches!(self.field(3)?, "Z" | "X") && !self.is_headless();
        let (parent, group) = (self.number(4)?, self.number(5)?);
        Some(Process { pid, parent, group, ended, started: self.number(22).unwrap_or(0) })
    }

    /// What the process executes; none if that isn't to be seen.
    pub fn program(&self) -> Option<Program> {
        let environment = (self.number(50)?, self.number(51)?);
        (environment.1 > 0).then_some(Program { started: self.number(22)?, environment })
    }

    /// Whether a process's first thread has ended, but others go on.
    fn is_headless(&self) -> bool {
        self.field(3) == Some("Z") && self.number(20).is_some_and(|threads: u32| threads > 1)
    }

    /// Whether a process whose environment is empty has none yet: the kernel has not said where it
    /// ends.
    fn is_loading(&self) -> bool {
        self.field(3) != Some("Z") && self.field(51) == Some("0")
    }
}

/// A program that a process executes, other than any that it executed before or will: each has its
/// environment at a place of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    started: u64,
    environment: (u64, u64),
}

/// A process's name, as far as one can be had.
pub fn name(pid: i32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

/// The signals that a process catches or ignores, as bits from that of signal 1 on; none where that
/// can't be seen.
pub fn answers(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let sets = status.lines().filter_map(|line| {
        let set = line.strip_prefix("SigIgn:").or_else(|| line.strip_prefix("SigCgt:"))?;
        u64::from_str_radix(set.trim(), 16).ok()
    });
    sets.fold(0, |all, set| all | set)
}

/// What a process's environment says about where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// To a scope of ours.
    Ours(Mark),
    /// Nothing.
    Absent,
    /// Nothing yet: its program is only just being loaded.
    Unclear,
    /// Nothing known: the system could not read the environment.
    Unreadable,
}

impl Marked {
    /// The mark, if it is one of ours.
    pub fn ours(self) -> Option<Mark> {
        match self {
            Self::Ours(mark) => Some(mark),
            Self::Absent | Self::Unclear | Self::Unreadable => None,
        }
    }

    /// True if only a later look can find out.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Unclear | Self::Unreadable)
    }
}

/// Reads a process's mark.
pub fn mark(pid: i32, marker: &Marker) -> Marked {
    mark_by(pid, |value| marker.find(value))
}

/// The same, by what it is to be found in the variable.
pub fn mark_by(pid: i32, find: impl Fn(&[u8]) -> Option<Mark>) -> Marked {
    // An environment ends in the middle when the process executes another program while it is
    // read. So that there is no mark is believed only if the same is read twice.
    let mut last = None;
    for _ in 0..10 {
        let environment = match environment(pid) {
            Ok(Some(environment)) => environment,
            Ok(None) => return Marked::Absent,
            Err(_) => return Marked::Unreadable,
        };
        let mut variables = environment.split_inclusive(|&byte| byte == 0);
        let value = variables.find_map(|variable| {
            let variable = variable.strip_suffix(b"\0")?; // whole
            variable.strip_prefix(marks::VARIABLE.as_bytes())?.strip_prefix(b"=")
        });
        if let Some(mark) = value.and_then(&find) {
            return Marked::Ours(mark);
        }
        if environment.is_empty() {
            let Ok(stat) = stat(pid) else { return Marked::Unreadable };
            if Stat::of(&stat).is_some_and(|stat| stat.is_loading()) {
                return Marked::Unclear;
            }
        }
        if last.as_ref() == Some(&environment) {
            return Marked::Absent;
        }
        last = Some(environment);
    }
    Marked::Unclear
}

/// Returns a process's environment; none if the process is gone or another user's. Fails if the
/// system could not read the environment.
fn environment(pid: i32) -> io::Result<Option<Vec<u8>>> {
    let environment = if_there(fs::read(format!("/proc/{pid}/environ")))?;
    if environment.as_ref().is_some_and(|environment| !environment.is_empty()) {
        return Ok(environment);
    }
    // Where only the first thread has ended, its environment is empty or missing, depending on the
    // kernel.
    if Stat::of(&stat(pid)?).is_some_and(|stat| stat.is_headless()) {
        return environment_of_threads(pid).map(Some);
    }
    Ok(environment)
}

/// The first environment among those of a process's threads, empty if no thread has one.
fn environment_of_threads(pid: i32) -> io::Result<Vec<u8>> {
    for thread in if_there(fs::read_dir(format!("/proc/{pid}/task")))?.into_iter().flatten() {
        let environment = if_there(fs::read(thread?.path().join("environ")))?.unwrap_or_default();
        if !environment.is_empty() {
            return Ok(environment);
        }
    }
    Ok(Vec::new())
}

/// Returns all processes according to `ps`; none where `ps` is missing or does not work, since
/// another look would find no more. Fails if `ps` could not run at the moment.
pub fn from_ps() -> io::Result<Vec<Process>> {
    let arguments = ["-A", "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "stat="];
    let spawned = Command::new("ps")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Some(mut ps) = if_there(spawned)? else { return Ok(Vec::new()) };
    let output = ps.stdout.take();
    // Read by a thread: `ps` may write more than a pipe holds, and may hang.
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        output.map_or(Ok(0), |mut output| output.read_to_end(&mut text)).map(|_| text)
    });
    let start = Instant::now();
    let ended = sys::keeping_children(|| {
        loop {
            match ps.wait_timeout(PS_SLICE) {
                Ok(None) if start.elapsed() < PS_LIMIT => {}
                result => return matches!(result, Ok(Some(_))),
            }
        }
    });
    if !ended {
        let _ = ps.kill();
        let _ = ps.wait();
    }
    let text = reader.join().unwrap_or_else(|_| Err(ErrorKind::Other.into()))?;
    if !ended {
        return Err(ErrorKind::TimedOut.into());
    }
    Ok(String::from_utf8_lossy(&text).lines().filter_map(parse_ps).collect())
}

fn parse_ps(line: &str) -> Option<Process> {
    let mut fields = line.split_ascii_whitespace();
    let mut number = || fields.next()?.parse().ok();
    let (pid, parent, group) = (number()?, number()?, number()?);
    let state = fields.next()?;
    // One whose first thread alone has ended has several: `l`.
    let ended = state.starts_with('Z') && !state.contains('l');
    Some(Process { pid, parent, group, ended, started: 0 })
}

/// Who is whose child.
pub fn by_parent(processes: &[Process]) -> HashMap<i32, Vec<i32>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process.pid);
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procs::few_descriptors;

    #[test]
    fn proc_and_ps_agree_about_this_process() {
        let own = std::process::id() as i32;
        let find = |all: Vec<Process>| {
            let found = all.into_iter().find(|process| process.pid == own);
            found.map(|process| (process.parent, process.group, process.ended))
        };
        let listed = all().expect("a list");
        assert!(find(listed.clone()).is_some());
        assert_eq!(find(listed), find(from_ps().expect("ps")));
    }

    #[test]
    fn a_process_that_cannot_be_read_is_not_gone() {
        const NAME: &str = concat!(module_path!(), "::a_process_that_cannot_be_read_is_not_gone");
        if !few_descriptors::is_alone(NAME) {
            return;
        }
        let own = std::process::id() as i32;
        let marker = Marker::new().expect("random numbers");
        few_descriptors::none_during(|| {
            assert!(one(own).is_err());
            assert!(ancestry(own).is_err());
            assert!(all().is_err());
            assert!(from_ps().is_err());
            assert!(children(own).is_err());
            assert_eq!(mark(own, &marker), Marked::Unreadable);
            assert!(has_proc());
        });
        assert!(one(own).expect("readable").is_some());
        assert!(one(i32::MAX).expect("readable").is_none());
        assert_eq!(mark(own, &marker), Marked::Absent);
        let parent = std::os::unix::process::parent_id() as i32;
        assert_eq!(ancestry(own).expect("readable")[..2], [own, parent]);
    }

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) Z (b) S 3 5 5 0 -1 4227084 124 0 0 0 0 0 0 0 20 0 1 0 491337";
        let parse = |text: &str| Stat::of(text)?.process(7);
        let found = parse(stat).expect("a process");
        assert_eq!((found.pid, found.parent, found.group, found.ended), (7, 3, 5, false));
        assert!(parse("").is_none());
        assert_eq!(parse_ps("  12  1 12 Z+").map(|process| process.ended), Some(true));
        assert!(parse_ps("garbage").is_none());
    }

    #[test]
    fn a_process_lives_as_long_as_a_thread() {
        for (state, threads, ended) in
            [("S", 1, false), ("S", 2, false), ("Z", 1, true), ("Z", 2, false), ("X", 0, true)]
        {
            let stat =
                format!("7 (a) {state} 3 5 5 0 -1 4 124 0 0 0 0 0 0 0 20 0 {threads} 0 4913");
            let found =
                Stat::of(&stat).and_then(|stat| stat.process(7)).map(|process| process.ended);
            assert_eq!(found, Some(ended), "{stat}");
        }
        for (state, ended) in [("Sl", false), ("Z", true), ("Zl+", false), ("Zs", true)] {
            let found = parse_ps(&format!("7 3 5 {state}")).map(|process| process.ended);
            assert_eq!(found, Some(ended), "{state}");
        }
    }
}
