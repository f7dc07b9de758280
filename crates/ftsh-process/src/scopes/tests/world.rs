//! Model of processes, with few process ids that are reused at once.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::time::Duration;

use nix::errno::Errno;

use crate::children;
use crate::procs::ProcessEntry;
use ftsh_machine::effect::{ProcessId, ScopeId};
use ftsh_machine::event::CommandStatus;

/// First thread of the shell. Workers have negative numbers, other processes positive ones.
pub(super) const SHELL: i32 = 0;
/// Parent of orphans outside the shell.
const INIT: i32 = 1;

/// All processes.
#[derive(Default)]
pub(crate) struct World {
    /// True if orphans become children of the shell.
    pub adopts: bool,
    pub processes: BTreeMap<i32, Process>,
    pub workers: Vec<Worker>,
    /// Starts reported by workers and not yet taken.
    pub answers: VecDeque<(ProcessId, i32)>,
    /// True exit status of each command.
    pub truth: HashMap<ProcessId, CommandStatus>,
    /// Changes between the list of children and its evaluation.
    pub meanwhile: Vec<Happening>,
    /// Number of processes started so far.
    pub started: u64,
    /// CPU time.
    pub time: Duration,
    /// Number of queries of processes.
    pub looks: u32,
}

#[derive(Clone)]
pub(crate) struct Process {
    pub parent: i32,
    pub group: i32,
    pub command: Option<ProcessId>,
    /// True scope of the process.
    pub scope: ScopeId,
    /// True if its environment has a tag; otherwise its descendants have none either.
    pub tagged: bool,
    /// Number of reads of its environment that find the program still being loaded.
    pub loading: u32,
    /// True if SIGTERM ends the process.
    pub ends_on_sigterm: bool,
    pub status: Option<CommandStatus>,
    /// Ordinal number of the process.
    number: u64,
}

impl Process {
    /// Returns the process's entry in a list.
    pub(crate) fn seen(&self, pid: i32) -> ProcessEntry {
        let ended = self.status.is_some();
        let (parent, group, started) = (self.parent, self.group, self.number);
        ProcessEntry { pid, parent, group, ended, started }
    }
}

#[derive(Default)]
pub(crate) struct Worker {
    pub command: Option<(ProcessId, ScopeId)>,
    pub started: Option<i32>,
    pub ended: bool,
}

/// Change of the world, independent of the shell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    /// A worker advances: starts the program, reports the start, ends.
    Work(usize),
    /// A process starts another.
    Fork { which: usize, leads: bool, wipes: bool, ends_on_sigterm: bool, loading: u32 },
    /// A process ends.
    End(usize, i32),
}

impl World {
    pub(crate) fn start(&mut self, parent: i32, command: Option<ProcessId>, scope: ScopeId) -> i32 {
        let is_free =
            |pid: &i32| self.processes.iter().all(|(other, it)| other != pid && it.group != *pid);
        let pid = (2..1000).find(is_free).expect("one is free");
        let (group, tagged, ends_on_sigterm) = (pid, true, true);
        self.started += 1;
        let (loading, status, number) = (0, None, self.started);
        let process = Process {
            parent,
            group,
            command,
            scope,
            tagged,
            loading,
            ends_on_sigterm,
            status,
            number,
        };
        self.processes.insert(pid, process);
        pid
    }

    /// Returns the living processes.
    pub(crate) fn living(&self) -> Vec<i32> {
        let living = self.processes.iter().filter(|(_, process)| process.status.is_none());
        living.map(|(&pid, _)| pid).collect()
    }

    /// Returns a process and its descendants.
    pub(crate) fn tree(&self, root: i32) -> Vec<i32> {
        let mut all = vec![root];
        let mut next = 0;
        while let Some(&pid) = all.get(next) {
            all.extend(self.children(pid));
            next += 1;
        }
        all.retain(|pid| self.processes.contains_key(pid));
        all
    }

    /// Returns the children of a process.
    pub(crate) fn children(&self, parent: i32) -> Vec<i32> {
        let children = self.processes.iter().filter(|(_, process)| process.parent == parent);
        children.map(|(&pid, _)| pid).collect()
    }

    /// Ends a living process.
    pub(crate) fn end(&mut self, pid: i32, status: CommandStatus) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if process.status.is_some() {
            return;
        }
        process.status = Some(status);
        self.truth.extend(process.command.map(|command| (command, status)));
        // Every parent but the shell reaps its children at once.
        if process.parent > SHELL {
            self.processes.remove(&pid);
        }
        for child in self.children(pid) {
            self.give(child, if self.adopts { SHELL } else { INIT });
        }
    }

    fn give(&mut self, pid: i32, parent: i32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.parent = parent;
        if parent > SHELL && process.status.is_some() {
            self.processes.remove(&pid);
        }
    }

    /// Applies a change.
    pub(crate) fn happens(&mut self, what: Happening) {
        match what {
            Happening::Work(which) if !self.workers.is_empty() => {
                let index = which % self.workers.len();
                let thread = -1 - index as i32;
                let worker = &mut self.workers[index];
                match (worker.command, worker.started) {
                    _ if worker.ended => {}
                    (Some((command, scope)), None) => {
                        let pid = self.start(thread, Some(command), scope);
                        self.workers[index].started = Some(pid);
                    }
                    (Some((command, _)), Some(pid)) => {
                        (worker.command, worker.started) = (None, None);
                        self.answers.push_back((command, pid));
                    }
                    (None, _) => {
                        worker.ended = true;
                        self.children(thread).into_iter().for_each(|pid| self.give(pid, SHELL));
                    }
                }
            }
            Happening::Fork { which, leads, wipes, ends_on_sigterm, loading } => {
                let living = self.living();
                if living.is_empty() {
                    return;
                }
                let parent = living[which % living.len()];
                let of = self.processes[&parent].clone();
                let pid = self.start(parent, None, of.scope);
                let process = self.processes.get_mut(&pid).expect("it was started");
                process.group = if leads { pid } else { of.group };
                process.tagged = of.tagged && !wipes;
                (process.ends_on_sigterm, process.loading) = (ends_on_sigterm, loading);
            }
            Happening::End(which, code) => {
                let living = self.living();
                if !living.is_empty() {
                    self.end(living[which % living.len()], CommandStatus::Exited(code));
                }
            }
            Happening::Work(_) => {}
        }
    }
}

impl children::ChildQueries for std::rc::Rc<std::cell::RefCell<World>> {
    fn of_first_thread(&mut self) -> io::Result<Vec<i32>> {
        let mut world = self.borrow_mut();
        let seen = world.children(SHELL);
        for what in std::mem::take(&mut world.meanwhile) {
            world.happens(what);
        }
        Ok(seen)
    }

    fn wait(&mut self, pid: i32) -> Result<Option<CommandStatus>, Errno> {
        let mut world = self.borrow_mut();
        let process = world.processes.get(&pid).filter(|process| process.parent <= SHELL);
        let status = process.ok_or(Errno::ECHILD)?.status;
        if status.is_some() {
            world.processes.remove(&pid);
        }
        Ok(status)
    }
}
