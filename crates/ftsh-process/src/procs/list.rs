//! Processes and what `/proc` reports about them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;
use std::sync::OnceLock;

use bstr::ByteSlice;

use crate::tag::{ScopeTag, Tagger};

/// Entry of a list of processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessEntry {
    /// Process id.
    pub pid: i32,
    /// Process id of the parent.
    pub parent: i32,
    /// Process group.
    pub group: i32,
    /// True for a zombie, which has ended but has not been reaped.
    pub ended: bool,
    /// Start time, which distinguishes processes that reuse an id; 0 if unknown.
    pub started: u64,
}

impl ProcessEntry {
    /// Returns all processes. Fails rather than return part of the list.
    pub(crate) fn all() -> io::Result<Vec<Self>> {
        pids()?.into_iter().filter_map(|pid| ProcDir(pid).entry().transpose()).collect()
    }
}

/// Folder of a process in `/proc`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcDir(pub i32);

impl ProcDir {
    /// Returns the children of one thread. The list is complete if no other thread waits for the
    /// children meanwhile.
    pub(crate) fn children_of_thread(self, thread: i32) -> io::Result<Vec<i32>> {
        let text = fs::read_to_string(format!("/proc/{}/task/{thread}/children", self.0))?;
        Ok(text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// Returns the children of all threads of a process. The list is complete for a stopped process.
    /// Fails rather than return part of the list.
    pub(crate) fn children(self) -> io::Result<Vec<i32>> {
        let tasks = if_there(fs::read_dir(format!("/proc/{}/task", self.0)))?.into_iter().flatten();
        let mut lists = Vec::new();
        for task in tasks {
            lists.push(task?.path().join("children"));
        }
        // A thread that ends leaves its children to the first thread, whose list is therefore read
        // last.
        lists.reverse();
        let mut children = Vec::new();
        for list in lists {
            let text = if_there(fs::read_to_string(list))?.unwrap_or_default();
            children
                .extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
        Ok(children)
    }

    /// Returns a process and all its descendants. Fails rather than return part of the list.
    pub(crate) fn tree(self) -> io::Result<Vec<i32>> {
        let all = if lists_children() { None } else { Some(by_parent(&ProcessEntry::all()?)) };
        let mut found = vec![self.0];
        let mut next = 0;
        while let Some(&pid) = found.get(next) {
            next += 1;
            found.extend(match &all {
                None => Self(pid).children()?,
                Some(all) => all.get(&pid).cloned().unwrap_or_default(),
            });
        }
        Ok(found)
    }

    /// Returns a process and all its ancestors. Fails rather than return part of the list.
    pub(crate) fn ancestry(self) -> io::Result<Vec<i32>> {
        let mut found = vec![self.0];
        let mut last = self.0;
        while let Some(process) = Self(last).entry()?.filter(|process| process.parent > 0) {
            last = process.parent;
            found.push(last);
        }
        Ok(found)
    }

    /// True if a signal has stopped a process.
    pub(crate) fn is_stopped(self) -> bool {
        let line = self.stat().unwrap_or_default();
        Stat::of(&line).is_some_and(|stat| stat.field(3) == Some("T"))
    }

    /// True if a process is in an uninterruptible call, or has ended but for a thread in such a call.
    pub(crate) fn hangs(self) -> bool {
        let line = self.stat().unwrap_or_default();
        Stat::of(&line).is_some_and(|stat| matches!(stat.field(3), Some("D" | "Z")))
    }

    /// Returns device and inode of each open file of a process whose name contains `part`. Other files
    /// are not touched: their file system may hang.
    pub(crate) fn files(self, part: &[u8]) -> io::Result<Vec<(u64, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(format!("/proc/{}/fd", self.0))? {
            let path = entry?.path();
            let name = match fs::read_link(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue, // closed meanwhile
                name => name?,
            };
            if name.as_os_str().as_bytes().contains_str(part) {
                files.extend(if_there(fs::metadata(&path))?.map(|data| (data.dev(), data.ino())));
            }
        }
        Ok(files)
    }

    /// Reads a process from `/proc`; none if there is no such process. Fails if the system could not
    /// read the entry.
    pub(crate) fn entry(self) -> io::Result<Option<ProcessEntry>> {
        Ok(Stat::of(&self.stat()?).and_then(|stat| stat.process(self.0)))
    }

    /// Reads the `stat` line of a process, empty if there is no such process. Fails if the system could
    /// not read the line.
    pub(crate) fn stat(self) -> io::Result<String> {
        // Read by one call: the line has some fifty numbers and a short name.
        let mut line = [0; 2048];
        let read =
            File::open(format!("/proc/{}/stat", self.0)).and_then(|mut file| file.read(&mut line));
        let count = if_there(read)?.unwrap_or(0);
        Ok(String::from_utf8_lossy(&line[..count]).into_owned())
    }

    /// Returns the name of a process, or an empty string.
    pub(crate) fn name(self) -> String {
        let name = fs::read(format!("/proc/{}/comm", self.0)).unwrap_or_default();
        String::from_utf8_lossy(&name).trim_end().to_owned()
    }

    /// Returns the signals that a process catches or ignores, as bits from signal 1 on; zero where the
    /// system hides them.
    pub(crate) fn handled_signals(self) -> u64 {
        self.signal_sets(&["SigIgn:", "SigCgt:"])
    }

    /// Returns the signals that a process has yet to receive, in the form of [`Self::handled_signals`].
    pub(crate) fn pending_signals(self) -> u64 {
        self.signal_sets(&["SigPnd:", "ShdPnd:"])
    }

    fn signal_sets(self, names: &[&str]) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap_or_default();
        let sets = status.lines().filter_map(|line| {
            let set = names.iter().find_map(|name| line.strip_prefix(name))?;
            u64::from_str_radix(set.trim(), 16).ok()
        });
        sets.fold(0, |all, set| all | set)
    }

    /// Reads the tag of a process.
    pub(crate) fn tag(self, tagger: &Tagger) -> TagLookup {
        self.tag_by(|value| tagger.find(value))
    }

    /// Reads the tag of a process and parses its value by `find`.
    pub(crate) fn tag_by(self, find: impl Fn(&[u8]) -> Option<ScopeTag>) -> TagLookup {
        // The text ends early when the process executes another program during the read. A missing tag
        // is therefore accepted only after two equal reads.
        let mut last = None;
        for _ in 0..10 {
            let environment = match self.environment() {
                Ok(Some(environment)) => environment,
                Ok(None) => return TagLookup::Absent,
                Err(_) => return TagLookup::Unreadable,
            };
            let mut variables = environment.split_inclusive(|&byte| byte == 0);
            let value = variables.find_map(|variable| {
                let variable = variable.strip_suffix(b"\0")?; // complete
                variable.strip_prefix(ScopeTag::VARIABLE.as_bytes())?.strip_prefix(b"=")
            });
            if let Some(tag) = value.and_then(&find) {
                return TagLookup::Ours(tag);
            }
            if environment.is_empty() {
                let Ok(stat) = self.stat() else { return TagLookup::Unreadable };
                if Stat::of(&stat).is_some_and(|stat| stat.is_loading()) {
                    return TagLookup::Unclear;
                }
            }
            if last.as_ref() == Some(&environment) {
                return TagLookup::Absent;
            }
            last = Some(environment);
        }
        TagLookup::Unclear
    }

    /// Reads the environment of a process; none if the process is gone or belongs to another user.
    /// Fails if the system could not read the environment.
    fn environment(self) -> io::Result<Option<Vec<u8>>> {
        let environment = if_there(fs::read(format!("/proc/{}/environ", self.0)))?;
        if environment.as_ref().is_some_and(|environment| !environment.is_empty()) {
            return Ok(environment);
        }
        // After the first thread has ended, its environment is empty or missing, depending on the
        // kernel.
        if Stat::of(&self.stat()?).is_some_and(|stat| stat.is_headless()) {
            return self.environment_of_threads().map(Some);
        }
        Ok(environment)
    }

    /// Returns the first environment among the threads of a process, empty if no thread has one.
    fn environment_of_threads(self) -> io::Result<Vec<u8>> {
        for thread in
            if_there(fs::read_dir(format!("/proc/{}/task", self.0)))?.into_iter().flatten()
        {
            let environment =
                if_there(fs::read(thread?.path().join("environ")))?.unwrap_or_default();
            if !environment.is_empty() {
                return Ok(environment);
            }
        }
        Ok(Vec::new())
    }
}

/// True if `/proc` lists the children of a process (Linux 3.5, unless disabled at compile time).
/// Tested once, for both supervisor and interpreter.
pub(crate) fn lists_children() -> bool {
    static LISTS: OnceLock<bool> = OnceLock::new();
    *LISTS.get_or_init(|| {
        let pid = std::process::id();
        fs::exists(format!("/proc/{pid}/task/{pid}/children")).unwrap_or(false)
    })
}

/// Returns none where `/proc` or a process is missing or hidden from this user. Returns other
/// errors, such as too many open files: they do not show that a process is gone.
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
pub(crate) fn has_proc() -> bool {
    if_there(fs::metadata("/proc/self/stat")).map_or(true, |found| found.is_some())
}

/// Returns the ids of all processes, none where `/proc` is missing. Fails rather than return part of
/// the list.
pub(crate) fn pids() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in if_there(fs::read_dir("/proc"))?.into_iter().flatten() {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(pids)
}

/// Parsed `stat` line of a process, as in proc(5).
pub(crate) struct Stat<'a> {
    /// Fields from the third on.
    fields: Vec<&'a str>,
}

impl<'a> Stat<'a> {
    /// Parses a line; none if the line is empty.
    pub(crate) fn of(line: &'a str) -> Option<Self> {
        // The process name before the fields is in parentheses, and may contain any character.
        let (_, fields) = line.rsplit_once(')')?;
        Some(Self { fields: fields.split_ascii_whitespace().collect() })
    }

    /// Returns a field by its number in proc(5).
    fn field(&self, number: usize) -> Option<&'a str> {
        self.fields.get(number - 3).copied()
    }

    fn number<T: FromStr>(&self, field: usize) -> Option<T> {
        self.field(field)?.parse().ok()
    }

    /// Converts the line to an entry of a list.
    pub(crate) fn process(&self, pid: i32) -> Option<ProcessEntry> {
        let ended = matches!(self.field(3)?, "Z" | "X") && !self.is_headless();
        let (parent, group) = (self.number(4)?, self.number(5)?);
        Some(ProcessEntry { pid, parent, group, ended, started: self.number(22).unwrap_or(0) })
    }

    /// Returns the identity of the executed program; none if the kernel hides it.
    pub(crate) fn program(&self) -> Option<ProgramIdentity> {
        let environment = (self.number(50)?, self.number(51)?);
        (environment.1 > 0).then_some(ProgramIdentity { started: self.number(22)?, environment })
    }

    /// True if the first thread has ended while other threads continue.
    fn is_headless(&self) -> bool {
        self.field(3) == Some("Z") && self.number(20).is_some_and(|threads: u32| threads > 1)
    }

    /// True if the program is still being loaded: the kernel has not recorded the end of its
    /// environment.
    fn is_loading(&self) -> bool {
        self.field(3) != Some("Z") && self.field(51) == Some("0")
    }
}

/// Identity of a program executed by a process. Each `execve` places the environment elsewhere, so
/// programs executed one after the other differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramIdentity {
    started: u64,
    environment: (u64, u64),
}

/// Result of reading the tag of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagLookup {
    /// The tag belongs to this run.
    Ours(ScopeTag),
    /// No tag of this run.
    Absent,
    /// Not yet known: the program is still being loaded.
    Unclear,
    /// Unknown: the system could not read the environment.
    Unreadable,
}

impl TagLookup {
    /// Returns the tag of this run, if present.
    pub(crate) fn ours(self) -> Option<ScopeTag> {
        match self {
            Self::Ours(tag) => Some(tag),
            Self::Absent | Self::Unclear | Self::Unreadable => None,
        }
    }

    /// True if only a later read can decide.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Unclear | Self::Unreadable)
    }
}

/// Groups process ids by parent.
pub(crate) fn by_parent(processes: &[ProcessEntry]) -> HashMap<i32, Vec<i32>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process.pid);
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::few_descriptors::{is_alone, none_during};

    #[test]
    fn an_unreadable_process_is_not_gone() {
        const NAME: &str = concat!(module_path!(), "::an_unreadable_process_is_not_gone");
        if !is_alone(NAME) {
            return;
        }
        let own = std::process::id() as i32;
        let tagger = Tagger::new().expect("random numbers");
        none_during(|| {
            assert!(ProcDir(own).entry().is_err());
            assert!(ProcDir(own).ancestry().is_err());
            assert!(ProcessEntry::all().is_err());
            assert!(ProcDir(own).children().is_err());
            assert_eq!(ProcDir(own).tag(&tagger), TagLookup::Unreadable);
            assert!(has_proc());
        });
        assert!(ProcDir(own).entry().expect("readable").is_some());
        assert!(ProcDir(i32::MAX).entry().expect("readable").is_none());
        assert_eq!(ProcDir(own).tag(&tagger), TagLookup::Absent);
        let parent = std::os::unix::process::parent_id() as i32;
        assert_eq!(ProcDir(own).ancestry().expect("readable")[..2], [own, parent]);
    }

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) Z (b) S 3 5 5 0 -1 4227084 124 0 0 0 0 0 0 0 20 0 1 0 491337";
        let parse = |text: &str| Stat::of(text)?.process(7);
        let found = parse(stat).expect("a process");
        assert_eq!((found.pid, found.parent, found.group, found.ended), (7, 3, 5, false));
        assert!(parse("").is_none());
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
    }
}
