//! Children of this process. All waits for children happen here.
//!
//! A command is reaped by its process id, once its command is known. Until then, the system keeps
//! its status and does not reuse its id. No status can get lost, whatever the order of starts and
//! ends.
//!
//! An unknown child is either an orphan, which is reaped when found, or a command whose start a
//! worker has not reported yet. The system distinguishes the two. Orphans become children of the
//! first thread. A command stays a child of its worker until the worker ends, which is after the
//! report. Orphans are therefore searched among the children of the first thread, and reports are
//! taken between the search and its evaluation.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use nix::errno::Errno;

use crate::procs::ProcDir;
use crate::system::{KillCount, command_status};
use ftsh_machine::effect::ProcessId;
use ftsh_machine::event::CommandStatus;
use ftsh_sys as sys;

/// Queries about the children of this process.
pub(crate) trait ChildQueries {
    /// Returns the children of the first thread, including zombies.
    fn of_first_thread(&mut self) -> io::Result<Vec<i32>>;

    /// Reaps a child if it has ended, and returns its status.
    fn wait(&mut self, pid: i32) -> Result<Option<CommandStatus>, Errno>;
}

/// Queries to the operating system.
pub(crate) struct RealChildren;

impl ChildQueries for RealChildren {
    fn of_first_thread(&mut self) -> io::Result<Vec<i32>> {
        let pid = std::process::id() as i32;
        ProcDir(pid).children_of_thread(pid)
    }

    fn wait(&mut self, pid: i32) -> Result<Option<CommandStatus>, Errno> {
        Ok(match sys::wait_for(pid, false)? {
            Some((_, sys::ChildChange::Ended(ended))) => Some(command_status(ended)),
            _ => None,
        })
    }
}

/// Process of a command.
#[derive(Debug)]
pub(crate) struct CommandChild {
    /// Command that the process runs.
    pub process: ProcessId,
    /// Descriptor that is readable after the end of the process.
    pub pidfd: Option<OwnedFd>,
}

/// Children that run no command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OtherChildren {
    /// Living orphans.
    pub orphans: Vec<i32>,
    /// Reaped orphans.
    pub ended: Vec<i32>,
    /// Reaped members of `Children::preexisting`.
    pub preexisting: Vec<i32>,
}

/// All children of this process.
pub(crate) struct Children<S = RealChildren> {
    system: S,
    /// Process id of this process.
    pub parent: i32,
    /// True if pidfds report the end of children; otherwise signals do.
    pub pidfds: bool,
    /// Time of the next check of children without a pidfd.
    pub sweep: Option<Instant>,
    commands: HashMap<i32, CommandChild>,
    /// Processes of commands reported by workers and not yet handled by the event loop.
    reported: HashSet<i32>,
    /// Detects commands killed for lack of memory.
    pub kill_count: KillCount,
    /// Children started before this process became a shell, and its helpers.
    pub preexisting: HashSet<i32>,
    unwatched: usize,
    ended: usize,
}

impl<S: ChildQueries> Children<S> {
    /// Creates an empty table.
    pub(crate) fn new(system: S) -> Self {
        Self {
            system,
            parent: std::process::id() as i32,
            pidfds: false,
            sweep: None,
            commands: HashMap::new(),
            reported: HashSet::new(),
            kill_count: KillCount::default(),
            preexisting: HashSet::new(),
            unwatched: 0,
            ended: 0,
        }
    }

    /// Adds the process of a started command, not yet reaped.
    pub(crate) fn insert(&mut self, pid: i32, child: CommandChild) {
        self.reported.remove(&pid);
        self.unwatched += usize::from(child.pidfd.is_none());
        self.commands.insert(pid, child);
    }

    /// Returns the command of a process, if known.
    pub(crate) fn get(&self, pid: i32) -> Option<&CommandChild> {
        self.commands.get(&pid)
    }

    /// Returns the processes of commands.
    pub(crate) fn pids(&self) -> impl Iterator<Item = i32> {
        self.commands.keys().copied()
    }

    /// Returns the number of running commands.
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns the number of commands without a pidfd.
    pub(crate) fn unwatched(&self) -> usize {
        self.unwatched
    }

    /// Returns the processes of commands without a pidfd.
    pub(crate) fn unwatched_pids(&self) -> Vec<i32> {
        let unwatched = self.commands.iter().filter(|(_, child)| child.pidfd.is_none());
        unwatched.map(|(&pid, _)| pid).collect()
    }

    /// Returns the number of ended commands.
    pub(crate) fn ended(&self) -> usize {
        self.ended
    }

    /// True if a process runs a command.
    pub(crate) fn is_command(&self, pid: i32) -> bool {
        self.commands.contains_key(&pid) || self.reported.contains(&pid)
    }

    /// Reaps a command's process, if it has ended, and removes it from the table.
    pub(crate) fn end_of(&mut self, pid: i32) -> Option<(CommandChild, CommandStatus)> {
        if !self.commands.contains_key(&pid) {
            return None;
        }
        let status = match self.system.wait(pid) {
            Ok(status) => status?,
            Err(_) => CommandStatus::Lost,
        };
        let child = self.commands.remove(&pid)?;
        self.unwatched -= usize::from(child.pidfd.is_none());
        self.ended += 1;
        Some((child, status))
    }

    /// Returns the children that run no command, and reaps those that have ended. `answers` returns
    /// the processes reported by workers so far. Fails if the children cannot be listed.
    pub(crate) fn others(
        &mut self,
        mut answers: impl FnMut() -> Vec<i32>,
    ) -> io::Result<OtherChildren> {
        let mut others = OtherChildren::default();
        loop {
            let before = others.ended.len();
            let seen = self.system.of_first_thread()?;
            self.reported.extend(answers());
            others.orphans.clear();
            self.judge(seen, &mut others);
            // The children of an ended process became children of this process, perhaps after the
            // list was read.
            if others.ended.len() == before {
                return Ok(others);
            }
        }
    }

    fn judge(&mut self, seen: Vec<i32>, others: &mut OtherChildren) {
        for pid in seen {
            if self.is_command(pid) {
                continue;
            }
            let preexisting = self.preexisting.contains(&pid);
            match self.system.wait(pid) {
                Ok(Some(_)) if preexisting => {
                    self.preexisting.remove(&pid);
                    others.preexisting.push(pid);
                }
                Ok(Some(_)) => others.ended.push(pid),
                Ok(None) if !preexisting => others.orphans.push(pid),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    const FIRST: usize = 0;

    /// System with few process ids, which are reused at once.
    #[derive(Default)]
    struct Model {
        processes: BTreeMap<i32, Process>,
        workers: Vec<Worker>,
        /// Starts reported by workers and not yet taken.
        answers: Vec<(ProcessId, i32)>,
        commands: u64,
        /// True exit status of each command.
        truth: HashMap<ProcessId, CommandStatus>,
        /// Exit statuses reported to the event loop.
        heard: HashMap<ProcessId, CommandStatus>,
        /// Steps of workers between the list of children and its evaluation.
        meanwhile: Vec<Step>,
        orphans: usize,
    }

    struct Process {
        thread: usize,
        command: Option<ProcessId>,
        status: Option<CommandStatus>,
    }

    #[derive(Default)]
    struct Worker {
        command: Option<ProcessId>,
        started: Option<i32>,
        ended: bool,
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// The event loop starts a command itself.
        Start,
        /// A worker receives a command to start.
        Submit,
        /// A worker advances: starts the program, reports the start, ends.
        Work(usize),
        /// A worker cannot execute its program, and reaps the process itself.
        Fail(usize),
        /// A process becomes a child of the first thread.
        Orphan,
        /// A process ends.
        End(usize, i32),
        /// The event loop handles one report.
        Take,
        /// The event loop lists orphans while workers continue.
        Look(Vec<Step>),
        /// The event loop reaps its commands.
        Reap,
    }

    impl Model {
        fn start(&mut self, thread: usize, command: Option<ProcessId>) -> i32 {
            let mut free = (2..1000).filter(|pid| !self.processes.contains_key(pid));
            let pid = free.next().expect("one is free");
            self.processes.insert(pid, Process { thread, command, status: None });
            pid
        }

        fn new_command(&mut self) -> ProcessId {
            self.commands += 1;
            ProcessId(self.commands)
        }

        /// Applies a step that does not involve the event loop.
        fn step(&mut self, step: &Step) {
            match *step {
                Step::Work(which) if !self.workers.is_empty() => {
                    let index = which % self.workers.len();
                    let worker = &mut self.workers[index];
                    match (worker.command, worker.started) {
                        _ if worker.ended => {}
                        (Some(command), None) => {
                            let pid = self.start(index + 1, Some(command));
                            self.workers[index].started = Some(pid);
                        }
                        (Some(command), Some(pid)) => {
                            (worker.command, worker.started) = (None, None);
                            self.answers.push((command, pid));
                        }
                        (None, _) => {
                            worker.ended = true;
                            let left = self.processes.values_mut();
                            for process in left.filter(|process| process.thread == index + 1) {
                                process.thread = FIRST;
                            }
                        }
                    }
                }
                Step::Fail(which) if !self.workers.is_empty() => {
                    let index = which % self.workers.len();
                    let worker = &mut self.workers[index];
                    if let (Some(command), None) = (worker.command, worker.started) {
                        worker.command = None;
                        self.truth.insert(command, CommandStatus::Exited(127));
                        self.heard.insert(command, CommandStatus::Exited(127));
                    }
                }
                Step::Orphan => {
                    self.start(FIRST, None);
                    self.orphans += 1;
                }
                Step::End(which, code) if !self.processes.is_empty() => {
                    let index = which % self.processes.len();
                    let process = self.processes.values_mut().nth(index).expect("it is there");
                    if process.status.is_none() {
                        process.status = Some(CommandStatus::Exited(code));
                        let command = process.command;
                        self.truth.extend(command.map(|it| (it, CommandStatus::Exited(code))));
                    }
                }
                _ => {}
            }
        }
    }

    impl ChildQueries for Rc<RefCell<Model>> {
        fn of_first_thread(&mut self) -> io::Result<Vec<i32>> {
            let mut model = self.borrow_mut();
            let all = model.processes.iter();
            let seen = all.filter(|(_, it)| it.thread == FIRST).map(|(&pid, _)| pid).collect();
            for step in std::mem::take(&mut model.meanwhile) {
                model.step(&step);
            }
            Ok(seen)
        }

        fn wait(&mut self, pid: i32) -> Result<Option<CommandStatus>, Errno> {
            let mut model = self.borrow_mut();
            let status = model.processes.get(&pid).ok_or(Errno::ECHILD)?.status;
            if status.is_some() {
                model.processes.remove(&pid);
            }
            Ok(status)
        }
    }

    struct Loop {
        model: Rc<RefCell<Model>>,
        children: Children<Rc<RefCell<Model>>>,
        orphans: usize,
    }

    impl Loop {
        fn new() -> Self {
            let model = Rc::new(RefCell::new(Model::default()));
            Self { children: Children::new(model.clone()), model, orphans: 0 }
        }

        fn insert(&mut self, process: ProcessId, pid: i32) {
            self.children.insert(pid, CommandChild { process, pidfd: None });
        }

        fn step(&mut self, step: &Step) {
            match step {
                Step::Start => {
                    let process = self.model.borrow_mut().new_command();
                    let pid = self.model.borrow_mut().start(FIRST, Some(process));
                    self.insert(process, pid);
                }
                Step::Submit => {
                    let command = Some(self.model.borrow_mut().new_command());
                    let worker = Worker { command, ..Worker::default() };
                    self.model.borrow_mut().workers.push(worker);
                }
                Step::Take => {
                    let mut model = self.model.borrow_mut();
                    if !model.answers.is_empty() {
                        let (process, pid) = model.answers.remove(0);
                        drop(model);
                        self.insert(process, pid);
                    }
                }
                Step::Look(meanwhile) => {
                    self.model.borrow_mut().meanwhile.clone_from(meanwhile);
                    let model = self.model.clone();
                    let answers = || model.borrow().answers.iter().map(|&(_, pid)| pid).collect();
                    let others = self.children.others(answers).expect("a list");
                    self.orphans += others.ended.len();
                    for pid in others.orphans {
                        let model = self.model.borrow();
                        let process = &model.processes[&pid];
                        assert_eq!(process.command, None, "{pid} is a command, not an orphan");
                    }
                }
                Step::Reap => {
                    for pid in self.children.unwatched_pids() {
                        if let Some((child, status)) = self.children.end_of(pid) {
                            let before =
                                self.model.borrow_mut().heard.insert(child.process, status);
                            assert_eq!(before, None, "{pid} ended twice");
                        }
                    }
                }
                other => self.model.borrow_mut().step(other),
            }
        }
    }

    fn context() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..50usize).prop_map(Step::Work),
            1 => (0..50usize).prop_map(Step::Fail),
            1 => Just(Step::Orphan),
            4 => (0..50usize, 0..99i32).prop_map(|(which, code)| Step::End(which, code)),
        ]
    }

    fn steps() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => context(),
            1 => Just(Step::Start),
            2 => Just(Step::Submit),
            2 => Just(Step::Take),
            2 => proptest::collection::vec(context(), 0..8).prop_map(Step::Look),
            2 => Just(Step::Reap),
        ]
    }

    proptest! {
        #[test]
        fn no_status_is_lost_whatever_comes_first(
            steps in proptest::collection::vec(steps(), 0..120),
        ) {
            let mut this = Loop::new();
            for step in &steps {
                this.step(step);
            }
            // All workers and processes end, and the event loop handles all reports.
            let workers = this.model.borrow().workers.len();
            for index in 0..3 * workers {
                this.step(&Step::Work(index % workers));
            }
            let processes = this.model.borrow().processes.len();
            (0..processes).for_each(|index| this.step(&Step::End(index, 0)));
            (0..steps.len()).for_each(|_| this.step(&Step::Take));
            this.step(&Step::Look(Vec::new()));
            this.step(&Step::Reap);
            let model = this.model.borrow();
            prop_assert_eq!(&model.heard, &model.truth);
            prop_assert_eq!(model.heard.len() as u64, model.commands);
            prop_assert_eq!(this.orphans, model.orphans);
            prop_assert!(model.processes.is_empty());
            prop_assert_eq!(this.children.len() + this.children.unwatched(), 0);
            prop_assert!(this.children.reported.is_empty());
        }
    }
}
