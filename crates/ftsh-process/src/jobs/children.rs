//! The children of this process, and the only place where they are waited for.
//!
//! A command is waited for by its process id alone, once it is known whose it is. Until then the
//! system keeps how it ended, and gives its id to nobody else. So no status can get lost, however
//! starts and ends come together.
//!
//! What isn't known is either an orphan, which is waited for wherever it is found, or a command that
//! a worker has started and whose answer hasn't been taken. The system keeps these apart: orphans
//! come to the first thread, while a command is its worker's child until that ends, which is after
//! the answer. So orphans are looked for among the children of the first thread, and answers are
//! taken between the look and the judgement.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use nix::errno::Errno;

use super::super::os::cgroup::KillCount;
use super::super::os::ending;
use super::super::procs::list;
use ftsh_machine::effect::ProcessId;
use ftsh_machine::event::Status;
use ftsh_sys as sys;

/// What the system says of the children of this process.
pub trait System {
    /// Those of the first thread, the ended ones that weren't waited for included.
    fn of_first_thread(&mut self) -> io::Result<Vec<i32>>;

    /// How a child ended, if it has. From then on there is no such child.
    fn wait(&mut self, pid: i32) -> Result<Option<Status>, Errno>;
}

/// The system this runs on.
pub struct Real;

impl System for Real {
    fn of_first_thread(&mut self) -> io::Result<Vec<i32>> {
        let pid = std::process::id() as i32;
        list::children_of_thread(pid, pid)
    }

    fn wait(&mut self, pid: i32) -> Result<Option<Status>, Errno> {
        Ok(match sys::wait_for(pid, false)? {
            Some((_, sys::Change::Ended(ended))) => Some(ending::status(ended)),
            _ => None,
        })
    }
}

/// A process that runs a command.
#[derive(Debug)]
pub struct Child {
    /// The command.
    pub process: ProcessId,
    /// Readable when it has ended.
    pub pidfd: Option<OwnedFd>,
}

/// Children that run no command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Orphans that live.
    pub orphans: Vec<i32>,
    /// Orphans that have ended; they are gone.
    pub ended: Vec<i32>,
    /// Those of `Children::preexisting` that have ended; they are gone.
    pub preexisting: Vec<i32>,
}

/// All children.
pub struct Children<S = Real> {
    system: S,
    /// Our own process id.
    pub parent: i32,
    /// Whether pidfds tell of their end; signals do otherwise.
    pub pidfds: bool,
    /// Those without a pidfd are looked for at this moment.
    pub sweep: Option<Instant>,
    commands: HashMap<i32, Child>,
    /// Commands that a worker has told of, before the loop deals with them.
    told: HashSet<i32>,
    /// Tells commands that the system killed for lack of memory.
    pub kill_count: KillCount,
    /// Those that the process had before it became a shell, and its own helpers.
    pub preexisting: HashSet<i32>,
    unwatched: usize,
    ended: usize,
}

impl<S: System> Children<S> {
    /// None yet.
    pub fn new(system: S) -> Self {
        Self {
            system,
            parent: std::process::id() as i32,
            pidfds: false,
            sweep: None,
            commands: HashMap::new(),
            told: HashSet::new(),
            kill_count: KillCount::default(),
            preexisting: HashSet::new(),
            unwatched: 0,
            ended: 0,
        }
    }

    /// A command was started: this is its process, which nobody has waited for.
    pub fn insert(&mut self, pid: i32, child: Child) {
        self.told.remove(&pid);
        self.unwatched += usize::from(child.pidfd.is_none());
        self.commands.insert(pid, child);
    }

    /// The command that a process runs, if it is known.
    pub fn get(&self, pid: i32) -> Option<&Child> {
        self.commands.get(&pid)
    }

    /// The processes of commands.
    pub fn pids(&self) -> impl Iterator<Item = i32> {
        self.commands.keys().copied()
    }

    /// How many commands run.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// How many commands the loop isn't told the end of.
    pub fn unwatched(&self) -> usize {
        self.unwatched
    }

    /// Their processes.
    pub fn unwatched_pids(&self) -> Vec<i32> {
        let unwatched = self.commands.iter().filter(|(_, child)| child.pidfd.is_none());
        unwatched.map(|(&pid, _)| pid).collect()
    }

    /// How many commands have ended.
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// Whether a process is a command's.
    pub fn is_command(&self, pid: i32) -> bool {
        self.commands.contains_key(&pid) || self.told.contains(&pid)
    }

    /// Waits for a command's process, if it has ended; then it is no longer among these.
    pub fn end_of(&mut self, pid: i32) -> Option<(Child, Status)> {
        if !self.commands.contains_key(&pid) {
            return None;
        }
        let status = match self.system.wait(pid) {
            Ok(status) => status?,
            Err(_) => Status::Lost,
        };
        let child = self.commands.remove(&pid)?;
        self.unwatched -= usize::from(child.pidfd.is_none());
        self.ended += 1;
        Some((child, status))
    }

    /// Looks for children that run no command, and waits for those that have ended. `answers` says
    /// which commands workers have told of until now. Fails if the system can't be asked.
    pub fn others(&mut self, mut answers: impl FnMut() -> Vec<i32>) -> io::Result<Others> {
        let mut others = Others::default();
        loop {
            let before = others.ended.len();
            let seen = self.system.of_first_thread()?;
            self.told.extend(answers());
            others.orphans.clear();
            self.judge(seen, &mut others);
            // What has ended left its own children to us, perhaps after the list was made.
            if others.ended.len() == before {
                return Ok(others);
            }
        }
    }

    fn judge(&mut self, seen: Vec<i32>, others: &mut Others) {
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

    /// A system with few process ids, which are given out again at once.
    #[derive(Default)]
    struct Model {
        processes: BTreeMap<i32, Process>,
        workers: Vec<Worker>,
        /// Commands that workers have told of.
        answers: Vec<(ProcessId, i32)>,
        commands: u64,
        /// How each command ended.
        truth: HashMap<ProcessId, Status>,
        /// What the loop was told.
        heard: HashMap<ProcessId, Status>,
        /// What workers do between the look at the children and the judgement.
        meanwhile: Vec<Step>,
        orphans: usize,
    }

    struct Process {
        thread: usize,
        command: Option<ProcessId>,
        status: Option<Status>,
    }

    #[derive(Default)]
    struct Worker {
        command: Option<ProcessId>,
        started: Option<i32>,
        ended: bool,
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// The loop starts a command itself.
        Start,
        /// A worker gets a command to start.
        Submit,
        /// A worker goes on: it starts the program, tells of it, ends.
        Work(usize),
        /// A worker's program can't be executed: it waits for it itself.
        Fail(usize),
        /// A process comes to the first thread.
        Orphan,
        /// Some process ends.
        End(usize, i32),
        /// The loop deals with one answer.
        Take,
        /// The loop looks for orphans while this happens.
        Look(Vec<Step>),
        /// The loop waits for its commands.
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

        /// What happens whatever the loop does.
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
                        self.truth.insert(command, Status::Exited(127));
                        self.heard.insert(command, Status::Exited(127));
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
                        process.status = Some(Status::Exited(code));
                        let command = process.command;
                        self.truth.extend(command.map(|it| (it, Status::Exited(code))));
                    }
                }
                _ => {}
            }
        }
    }

    impl System for Rc<RefCell<Model>> {
        fn of_first_thread(&mut self) -> io::Result<Vec<i32>> {
            let mut model = self.borrow_mut();
            let all = model.processes.iter();
            let seen = all.filter(|(_, it)| it.thread == FIRST).map(|(&pid, _)| pid).collect();
            for step in std::mem::take(&mut model.meanwhile) {
                model.step(&step);
            }
            Ok(seen)
        }

        fn wait(&mut self, pid: i32) -> Result<Option<Status>, Errno> {
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
            self.children.insert(pid, Child { process, pidfd: None });
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

    fn outside() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..50usize).prop_map(Step::Work),
            1 => (0..50usize).prop_map(Step::Fail),
            1 => Just(Step::Orphan),
            4 => (0..50usize, 0..99i32).prop_map(|(which, code)| Step::End(which, code)),
        ]
    }

    fn steps() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => outside(),
            1 => Just(Step::Start),
            2 => Just(Step::Submit),
            2 => Just(Step::Take),
            2 => proptest::collection::vec(outside(), 0..8).prop_map(Step::Look),
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
            // All workers end, all processes end, and the loop hears of all.
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
            prop_assert!(this.children.told.is_empty());
        }
    }
}
