//! All processes that run, and what marks they carry, again and again.
//!
//! Who wants to know that looks at everything on the machine. Most of it is the same each time, so a
//! process's environment is read but once for each program that it executes. That may have to wait for
//! it: on a busy machine, as long as others keep it from running.

use std::collections::{HashMap, HashSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::super::marks::{Mark, Marker};
use super::list::{self, Marked, Process, Program, Stat};

/// How often a list that changes is read at most.
const LOOKS: usize = 20;

/// How long a program that is being loaded is waited for, and how often it is looked at.
const LOADING: Duration = Duration::from_millis(10);
const LOOK: Duration = Duration::from_micros(200);

/// What is known of the processes that there were last time.
pub struct Scanner {
    /// Makes and knows this run's mark.
    pub marker: Marker,
    /// When this process was started: it marks none that is older.
    since: Option<u64>,
    marks: HashMap<i32, (Program, Option<Mark>)>,
}

/// What there is.
pub struct Scan {
    /// All processes that run, and what marks they carry.
    pub processes: Vec<(Process, Option<Mark>)>,
    /// True if the system could read the whole list and all marks.
    pub is_listed: bool,
    /// True if besides each could be told: not one whose program is only just being loaded.
    pub is_certain: bool,
}

impl Scanner {
    /// Of processes that carry this run's mark, and of all others.
    pub fn new(marker: Marker) -> Self {
        Self { marker, since: None, marks: HashMap::new() }
    }

    /// All processes that run, and what marks they carry. One that starts another and ends before it is
    /// told would slip through a single list, so it looks again until nothing came and went.
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
                    Some(_) if look == 0 => {} // it ended before
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

    /// Waits for what is being loaded: on a machine where others begin all the time, some always is.
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
        // Should it have executed another program meanwhile, that is seen next time.
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
        // It executes others when it is told to: without a mark, with one, with another one.
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
