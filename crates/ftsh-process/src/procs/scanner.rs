//! Repeated scans of all processes and their tags.
//!
//! A scan covers all processes of the machine. Most are the same each time, so the tag of a process
//! is read once for each program that the process executes. Reading an environment may wait for the
//! process, as long as others keep it from running.

use std::collections::{HashMap, HashSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::list::{ProcDir, ProcessEntry, ProgramIdentity, Stat, TagLookup, pids};
use crate::tag::{ScopeTag, Tagger};

/// Maximum number of reads of a changing list.
const MAX_READS: usize = 20;

/// Time limit for a program that is being loaded, and interval of checks.
const LOADING_TIMEOUT: Duration = Duration::from_millis(10);
const LOADING_INTERVAL: Duration = Duration::from_micros(200);

/// Scanner with the tags of the last scan.
pub(crate) struct ProcessScanner {
    /// Creates and recognizes the tags of this run.
    pub tagger: Tagger,
    /// Start time of this process. Older processes cannot have a tag of this run.
    since: Option<u64>,
    tags: HashMap<i32, (ProgramIdentity, Option<ScopeTag>)>,
}

/// Result of a scan.
pub(crate) struct Scan {
    /// All running processes with their tags.
    pub processes: Vec<(ProcessEntry, Option<ScopeTag>)>,
    /// True if the whole list and all tags were read.
    pub is_listed: bool,
    /// True if, in addition, no program was still being loaded.
    pub is_certain: bool,
}

impl ProcessScanner {
    /// Creates a scanner for the tags of a run.
    pub(crate) fn new(tagger: Tagger) -> Self {
        Self { tagger, since: None, tags: HashMap::new() }
    }

    /// Lists all running processes with their tags. A process that starts another and ends before
    /// its turn would escape a single list. The list is therefore read until no process appeared or
    /// vanished.
    pub(crate) fn scan(&mut self) -> Scan {
        let mut seen = HashSet::new();
        let (mut found, mut loading) = (Vec::new(), Vec::new());
        let mut before = std::mem::take(&mut self.tags);
        if self.since.is_none()
            && let Ok(own) = ProcDir(std::process::id() as i32).entry()
        {
            self.since = own.map(|own| own.started);
        }
        let since = self.since.unwrap_or(0);
        let mut is_certain = true;
        for look in 0..MAX_READS {
            let mut missed = false;
            let Ok(mut pids) = pids() else {
                is_certain = false;
                break;
            };
            pids.retain(|&pid| seen.insert(pid));
            for pid in pids {
                let Ok(text) = ProcDir(pid).stat() else {
                    is_certain = false;
                    continue;
                };
                let stat = Stat::of(&text);
                match stat.as_ref().and_then(|stat| stat.process(pid)) {
                    Some(process) if (1..since).contains(&process.started) => {
                        found.extend((!process.ended).then_some((process, None)));
                    }
                    Some(process) if !process.ended => {
                        let program = stat.and_then(|stat| stat.program());
                        let known = before.remove(&pid);
                        match self.tag(pid, program, known) {
                            tagged if tagged.is_open() => loading.push(process),
                            tagged => found.push((process, tagged.ours())),
                        }
                    }
                    Some(_) if look == 0 => {} // already ended
                    _ => missed = true,
                }
            }
            if !missed && look > 0 {
                break;
            }
        }
        let start = Instant::now();
        let mut is_listed = is_certain;
        for process in loading {
            let tagged = self.loaded(process.pid, start);
            is_listed &= tagged != TagLookup::Unreadable;
            is_certain &= !tagged.is_open();
            found.push((process, tagged.ours()));
        }
        Scan { processes: found, is_listed, is_certain }
    }

    /// Waits until a program is loaded, within the limit of the whole scan: on a busy machine, some
    /// program is always being loaded.
    fn loaded(&self, pid: i32, start: Instant) -> TagLookup {
        loop {
            let tagged = ProcDir(pid).tag(&self.tagger);
            if !tagged.is_open() || start.elapsed() >= LOADING_TIMEOUT {
                return tagged;
            }
            sleep(LOADING_INTERVAL);
        }
    }

    fn tag(
        &mut self,
        pid: i32,
        program: Option<ProgramIdentity>,
        known: Option<(ProgramIdentity, Option<ScopeTag>)>,
    ) -> TagLookup {
        if let Some((of, tag)) = known.filter(|&(of, _)| Some(of) == program) {
            self.tags.insert(pid, (of, tag));
            return tag.map_or(TagLookup::Absent, TagLookup::Ours);
        }
        let tagged = ProcDir(pid).tag(&self.tagger);
        // A program executed meanwhile is noticed by the next scan.
        if !tagged.is_open() {
            self.tags.extend(program.map(|program| (pid, (program, tagged.ours()))));
        }
        tagged
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;
    use ftsh_machine::effect::ScopeId;

    #[test]
    fn a_tag_is_read_once_for_each_program() {
        let tagger = Tagger::new().expect("random numbers");
        let mut scanner = ProcessScanner::new(tagger.clone());
        let tag = |scope| format!("{}={}", ScopeTag::VARIABLE, tagger.value(ScopeId(scope), ""));
        // Each line of input makes the process execute the next program: without a tag, with one,
        // with another.
        let wait = "echo; read line";
        let last = format!("{wait}; exec env {} sh -c '{wait}'", tag(5));
        let next = format!("{wait}; exec env '{}' sh -c \"$1\"", tag(3));
        let mut child = Command::new("sh")
            .args(["-c", &next, "sh", &last])
            .env_remove(ScopeTag::VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let pid = child.id() as i32;
        let (mut input, mut output) =
            (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        for scope in [None, Some(3), Some(5)] {
            output.read_exact(&mut [0]).expect("it is there");
            for _ in 0..2 {
                let found =
                    scanner.scan().processes.into_iter().find(|(process, _)| process.pid == pid);
                let tag = found.expect("it lives").1.map(|tag| tag.scope);
                assert_eq!(tag, scope.map(ScopeId));
                assert!(scanner.tags.contains_key(&pid), "it would be read again");
            }
            input.write_all(b"\n").expect("it reads");
        }
        child.wait().expect("it ends");
        scanner.scan();
        assert!(!scanner.tags.contains_key(&pid), "what is gone is remembered");
    }
}
