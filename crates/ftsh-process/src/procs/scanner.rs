//! Repeated scans of all processes and their tags.
//!
//! A scan covers all processes of the machine. Most are the same each time, so the tag of a process
//! is read once for each program that the process executes. Reading an environment may wait for the
//! process, as long as others keep it from running.

use std::collections::{HashMap, HashSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::super::marks::{Mark, Marker};
use super::list::{self, Marked, Process, Program, Stat};

/// Maximum number of reads of a changing list.
const LOOKS: usize = 20;

/// Time limit for a program that is being loaded, and interval of checks.
const LOADING: Duration = Duration::from_millis(10);
const LOOK: Duration = Duration::from_micros(200);

/// Scanner with the tags of the last scan.
pub struct Scanner {
    /// Creates and recognizes the tags of this run.
    pub marker: Marker,
    /// Start time of this process. Older processes cannot have a tag of this run.
    since: Option<u64>,
    marks: HashMap<i32, (Program, Option<Mark>)>,
}

/// Result of a scan.
pub struct Scan {
    /// All running processes with their tags.
    pub processes: Vec<(Process, Option<Mark>)>,
    /// True if the whole list and all tags were read.
    pub is_listed: bool,
    /// True if, in addition, no program was still being loaded.
    pub is_certain: bool,
}

impl Scanner {
    /// Creates a scanner for the tags of a run.
    pub fn new(marker: Marker) -> Self {
        Self { marker, since: None, marks: HashMap::new() }
    }

    /// Lists all running processes with their tags. A process that starts another and ends before
    /// its turn would escape a single list. The list is therefore read until no process appeared or
    /// vanished.
    pub fn scan(&mut self) -> Scan {
        let mut seen = HashSet::new();
        let (mut found, mut loading) = (Vec::new(), Vec::new());
        let mut before = std::mem::take(&mut self.marks);
        if self.since.is_none()
            && let Ok(own) = list::one(std::process::id() as i32)
        {
            self.since = own.map(|own| own.started);
        }
        let since = self.since.unwrap_or(0);
        let mut is_certain = true;
        for look in 0..LOOKS {
            let mut missed = false;
            let Ok(mut pids) = list::pids() else {
                is_certain = false;
                break;
            };
            pids.retain(|&pid| seen.insert(pid));
            for pid in pids {
                let Ok(text) = list::stat(pid) else {
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
                        match self.mark(pid, program, known) {
                            marked if marked.is_open() => loading.push(process),
                            marked => found.push((process, marked.ours())),
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
            let marked = self.loaded(process.pid, start);
            is_listed &= marked != Marked::Unreadable;
            is_certain &= !marked.is_open();
            found.push((process, marked.ours()));
        }
        Scan { processes: found, is_listed, is_certain }
    }

    /// Waits until a program is loaded, within the limit of the whole scan: on a busy machine, some
    /// program is always being loaded.
    fn loaded(&self, pid: i32, start: Instant) -> Marked {
        loop {
            let marked = list::mark(pid, &self.marker);
            if !marked.is_open() || start.elapsed() >= LOADING {
                return marked;
            }
            sleep(LOOK);
        }
    }

    fn mark(
        &mut self,
        pid: i32,
        program: Option<Program>,
        known: Option<(Program, Option<Mark>)>,
    ) -> Marked {
        if let Some((of, mark)) = known.filter(|&(of, _)| Some(of) == program) {
            self.marks.insert(pid, (of, mark));
            return mark.map_or(Marked::Absent, Marked::Ours);
        }
        let marked = list::mark(pid, &self.marker);
        // A program executed meanwhile is noticed by the next scan.
        if !marked.is_open() {
            self.marks.extend(program.map(|program| (pid, (program, marked.ours()))));
        }
        marked
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::marks::VARIABLE;
    use ftsh_machine::effect::ScopeId;

    #[test]
    fn a_mark_is_read_once_for_each_program() {
        let marker = Marker::new().expect("random numbers");
        let mut scanner = Scanner::new(marker.clone());
        let mark = |scope| format!("{VARIABLE}={}", marker.value(ScopeId(scope), ""));
        // Each line of input makes the process execute the next program: without a tag, with one,
        // with another.
        let wait = "echo; read line";
        let last = format!("{wait}; exec env {} sh -c '{wait}'", mark(5));
        let next = format!("{wait}; exec env '{}' sh -c \"$1\"", mark(3));
        let mut child = Command::new("sh")
            .args(["-c", &next, "sh", &last])
            .env_remove(VARIABLE)
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
                let mark = found.expect("it lives").1.map(|mark| mark.scope);
                assert_eq!(mark, scope.map(ScopeId));
                assert!(scanner.marks.contains_key(&pid), "it would be read again");
            }
            input.write_all(b"\n").expect("it reads");
        }
        child.wait().expect("it ends");
        scanner.scan();
        assert!(!scanner.marks.contains_key(&pid), "what is gone is remembered");
    }
}
