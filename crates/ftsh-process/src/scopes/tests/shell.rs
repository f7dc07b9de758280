//! Model of the driver's use of scopes, in a modeled world, with the invariants.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::world::{Happening, SHELL, Worker, World};
use crate::children::{Children, CommandChild};
use crate::events::signal_number;
use crate::procs::{ProcessEntry, TagLookup};
use crate::scopes::system::{OrphanList, ScopeQueries};
use crate::scopes::{EndStep, ScopeAction, ScopeTree};
use crate::tag::ScopeTag;
use ftsh_machine::effect::{ProcessId, ScopeId, Signal};
use ftsh_machine::event::CommandStatus;

/// Step of the shell or of the world.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Happens(Happening),
    /// A scope opens inside another.
    Open(usize),
    /// A scope ends in success.
    HandOver(usize),
    /// The first signal of a scope is SIGINT, which ends no process.
    Interrupt(usize),
    /// A scope is to be emptied.
    Terminate(usize),
    /// Half of the kill timeout of a scope has passed.
    Escalate(usize),
    /// The kill timeout of a scope has passed.
    Kill(usize),
    /// The event loop starts a command itself.
    Start(usize),
    /// A worker receives a command to start.
    Submit(usize),
    /// The event loop handles one answer.
    Take,
    /// The event loop lists orphans while the world changes.
    Look(Vec<Happening>),
    /// The event loop waits for its commands.
    Reap,
    /// Time passes, and the event loop advances the scopes being emptied.
    Settle(u64),
}

/// Scope from the machine's point of view.
struct Scope {
    parent: ScopeId,
    is_ending: bool,
}

pub(super) struct Shell {
    world: Rc<RefCell<World>>,
    children: Children<Rc<RefCell<World>>>,
    tree: ScopeTree,
    now: Instant,
    /// Open scopes.
    scopes: BTreeMap<ScopeId, Scope>,
    last: u64,
    /// Running commands with their scopes.
    commands: BTreeMap<ProcessId, ScopeId>,
    /// Commands whose end is no longer awaited.
    cut: HashSet<ProcessId>,
    reported: BTreeMap<ProcessId, CommandStatus>,
}

/// World from the point of view of scopes.
struct View<'a> {
    world: &'a Rc<RefCell<World>>,
    children: &'a mut Children<Rc<RefCell<World>>>,
    now: Instant,
}

impl View<'_> {
    /// Counts a query. Every fifth query fails.
    fn look(&self) -> io::Result<()> {
        let mut world = self.world.borrow_mut();
        world.looks += 1;
        if world.looks.is_multiple_of(5) { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
    }
}

impl ScopeQueries for View<'_> {
    fn orphans(&mut self) -> Option<OrphanList> {
        let answers = || self.world.borrow().answers.iter().map(|&(_, pid)| pid).collect();
        let others = self.children.others(answers).ok()?;
        let world = self.world.borrow();
        for pid in others.orphans.iter().filter_map(|pid| world.processes.get(pid)) {
            assert_eq!(pid.command, None, "a command is taken for an orphan");
        }
        Some(OrphanList { alive: others.orphans, ended: others.ended })
    }

    fn has_no_children(&mut self) -> bool {
        self.world.borrow().processes.values().all(|process| process.parent > SHELL)
    }

    fn tag(&mut self, pid: i32) -> TagLookup {
        let mut world = self.world.borrow_mut();
        let Some(process) = world.processes.get_mut(&pid) else { return TagLookup::Absent };
        if process.loading > 0 {
            process.loading -= 1;
            return TagLookup::Unclear;
        }
        if !process.tagged {
            return TagLookup::Absent;
        }
        TagLookup::Ours(ScopeTag { scope: process.scope, depth: 0, shell: None })
    }

    fn name(&mut self, pid: i32) -> String {
        pid.to_string()
    }

    fn group(&mut self, pid: i32) -> Option<i32> {
        self.world.borrow().processes.get(&pid).map(|process| process.group)
    }

    fn is_group_alive(&mut self, group: i32) -> bool {
        self.world.borrow().processes.values().any(|process| process.group == group)
    }

    fn children(&mut self, pid: i32) -> io::Result<Vec<i32>> {
        self.look()?;
        Ok(self.world.borrow().children(pid))
    }

    fn loading(&mut self, command: ProcessId) -> Vec<i32> {
        let world = self.world.borrow();
        let loading = world.workers.iter().find(|it| it.command.map(|it| it.0) == Some(command));
        loading.and_then(|worker| worker.started).into_iter().collect()
    }

    fn process(&mut self, pid: i32) -> io::Result<Option<ProcessEntry>> {
        self.look()?;
        Ok(self.world.borrow().processes.get(&pid).map(|it| it.seen(pid)))
    }

    fn clock(&mut self) -> (Instant, Duration) {
        let mut world = self.world.borrow_mut();
        world.time += Duration::from_millis(1);
        (self.now, world.time)
    }

    fn tagged(&mut self) -> Option<Vec<(ProcessEntry, Option<ScopeTag>)>> {
        self.look().ok()?;
        let world = self.world.borrow();
        let process = |pid: i32| {
            let it = &world.processes[&pid];
            let tag = ScopeTag { scope: it.scope, depth: 0, shell: None };
            (it.seen(pid), it.tagged.then_some(tag))
        };
        Some(world.living().into_iter().map(process).collect())
    }

    fn is_own(&mut self, _pid: i32) -> bool {
        false
    }
}

impl Shell {
    pub(super) fn new(adopts: bool) -> Self {
        let world = Rc::new(RefCell::new(World { adopts, ..World::default() }));
        let script = Scope { parent: ScopeId::SCRIPT, is_ending: false };
        Self {
            children: Children::new(world.clone()),
            world,
            tree: ScopeTree::new(adopts),
            now: Instant::now(),
            scopes: BTreeMap::from([(ScopeId::SCRIPT, script)]),
            last: 0,
            commands: BTreeMap::new(),
            cut: HashSet::new(),
            reported: BTreeMap::new(),
        }
    }

    /// Returns the exit codes reported to the machine.
    pub(super) fn reported_codes(&self) -> Vec<i32> {
        let code = |status: &CommandStatus| {
            if let CommandStatus::Exited(code) = status { *code } else { -1 }
        };
        self.reported.values().map(code).collect()
    }

    /// Counts queries, of which every fifth fails.
    pub(super) fn count_looks(&mut self, count: u32) {
        self.world.borrow_mut().looks += count;
    }

    /// Returns the number of living processes.
    pub(super) fn living(&self) -> usize {
        self.world.borrow().living().len()
    }

    fn around(&self, scope: ScopeId) -> Vec<ScopeId> {
        let up = |id: &ScopeId| (*id != ScopeId::SCRIPT).then(|| self.scopes[id].parent);
        std::iter::successors(Some(scope), up).collect()
    }

    fn is_in(&self, scope: ScopeId, outer: ScopeId) -> bool {
        self.scopes.contains_key(&scope) && self.around(scope).contains(&outer)
    }

    fn is_doomed(&self, scope: ScopeId) -> bool {
        self.around(scope).iter().any(|id| self.scopes[id].is_ending)
    }

    fn choose(&self, which: usize, fits: impl Fn(&ScopeId) -> bool) -> Option<ScopeId> {
        let fitting: Vec<ScopeId> = self.scopes.keys().copied().filter(|id| fits(id)).collect();
        (!fitting.is_empty()).then(|| fitting[which % fitting.len()])
    }

    fn view(&mut self) -> (&mut ScopeTree, View<'_>) {
        (&mut self.tree, View { world: &self.world, children: &mut self.children, now: self.now })
    }

    fn new_command(&mut self, scope: ScopeId) -> ProcessId {
        self.last += 1;
        let process = ProcessId(self.last);
        self.commands.insert(process, scope);
        self.tree.begin(scope, process);
        process
    }

    fn started(&mut self, process: ProcessId, pid: i32) {
        self.children.insert(pid, CommandChild { process, pidfd: None });
        self.tree.started(process, pid);
        self.act();
    }

    pub(super) fn step(&mut self, step: &Step) {
        match *step {
            Step::Happens(what) => self.world.borrow_mut().happens(what),
            Step::Open(which) => {
                let Some(parent) = self.choose(which, |&id| !self.is_doomed(id)) else { return };
                self.last += 1;
                let (scope, now) = (ScopeId(self.last), self.now);
                self.scopes.insert(scope, Scope { parent, is_ending: false });
                let (tree, mut view) = self.view();
                tree.open(scope, parent, &mut view, now);
            }
            Step::HandOver(which) => self.hand_over(which),
            Step::Interrupt(which) => {
                let Some(scope) = self.choose(which, |&id| !self.is_doomed(id)) else { return };
                self.tree.set_signal(scope, Signal::Int);
            }
            Step::Escalate(which) => {
                let fits = |id: &ScopeId| self.scopes[id].is_ending;
                let Some(scope) = self.choose(which, fits) else { return };
                self.tree.end(scope, EndStep::Escalate, self.now);
            }
            Step::Terminate(which) => {
                let fits = |id: &ScopeId| !self.scopes[id].is_ending;
                let Some(scope) = self.choose(which, fits) else { return };
                self.terminate(scope);
            }
            Step::Kill(which) => {
                let fits = |id: &ScopeId| self.scopes[id].is_ending;
                let Some(scope) = self.choose(which, fits) else { return };
                self.tree.end(scope, EndStep::Kill { strong: true }, self.now);
            }
            Step::Start(which) => {
                let Some(scope) = self.choose(which, |&id| !self.is_doomed(id)) else { return };
                let process = self.new_command(scope);
                let pid = self.world.borrow_mut().start(SHELL, Some(process), scope);
                self.started(process, pid);
            }
            Step::Submit(which) => {
                let Some(scope) = self.choose(which, |&id| !self.is_doomed(id)) else { return };
                let command = Some((self.new_command(scope), scope));
                self.world.borrow_mut().workers.push(Worker { command, ..Worker::default() });
            }
            Step::Take => {
                let answer = self.world.borrow_mut().answers.pop_front();
                if let Some((process, pid)) = answer {
                    self.started(process, pid);
                }
            }
            Step::Look(ref meanwhile) => {
                self.world.borrow_mut().meanwhile.clone_from(meanwhile);
                let now = self.now;
                let (tree, mut view) = self.view();
                tree.adopt(&mut view, now);
                self.world.borrow_mut().meanwhile.clear();
            }
            Step::Reap => self.reap(),
            Step::Settle(milliseconds) => {
                self.now += Duration::from_millis(milliseconds);
                let now = self.now;
                let (tree, mut view) = self.view();
                tree.advance(&mut view, now);
            }
        }
        self.act();
    }

    fn hand_over(&mut self, which: usize) {
        let is_busy = |id: &ScopeId| self.commands.values().any(|scope| scope == id);
        let is_outer = |id: &ScopeId| self.scopes.values().any(|scope| scope.parent == *id);
        let fits = |id: &ScopeId| {
            *id != ScopeId::SCRIPT && !is_busy(id) && !is_outer(id) && !self.is_doomed(*id)
        };
        let Some(scope) = self.choose(which, fits) else { return };
        let into = self.scopes.remove(&scope).expect("it was chosen").parent;
        let (tree, mut view) = self.view();
        tree.hand_over(scope, into, &mut view);
        // Processes tagged with the first scope belong to the second from now on.
        for process in self.world.borrow_mut().processes.values_mut() {
            if process.scope == scope {
                process.scope = into;
            }
        }
    }

    fn terminate(&mut self, scope: ScopeId) {
        self.scopes.get_mut(&scope).expect("it was chosen").is_ending = true;
        let commands: Vec<_> = self.commands.iter().map(|(&process, &of)| (process, of)).collect();
        let cut = commands.into_iter().filter(|&(_, of)| self.is_in(of, scope));
        let cut: Vec<ProcessId> = cut.map(|(process, _)| process).collect();
        self.cut.extend(cut);
        self.tree.end(scope, EndStep::First, self.now);
    }

    fn reap(&mut self) {
        for pid in self.children.unwatched_pids() {
            if let Some((child, status)) = self.children.end_of(pid) {
                self.leave(child.process, Some(status));
            }
        }
    }

    fn leave(&mut self, process: ProcessId, status: Option<CommandStatus>) {
        self.commands.remove(&process);
        let (tree, mut view) = self.view();
        let ended = tree.ended(process, &mut view).expect("it was begun");
        if let Some(status) = status.filter(|_| ended.is_awaited) {
            assert_eq!(self.reported.insert(process, status), None, "{process:?} ended twice");
        }
    }

    /// Checks that only processes of a scope being emptied are signaled.
    fn signal(&self, pid: i32, signal: i32) {
        let mut world = self.world.borrow_mut();
        let Some(process) = world.processes.get(&pid) else { return };
        let is_known = self.scopes.contains_key(&process.scope);
        if process.tagged && is_known {
            assert!(self.is_doomed(process.scope), "{pid} of {:?} is signalled", process.scope);
        }
        let ends = signal == libc::SIGTERM && process.ends_on_sigterm;
        if ends || signal == libc::SIGKILL {
            world.end(pid, CommandStatus::Signaled(signal));
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.tree.take_action() {
            match action {
                ScopeAction::Signal(pid, signal) if pid > 0 => {
                    self.signal(pid, signal_number(signal));
                }
                ScopeAction::Signal(group, signal) => {
                    self.signal_group(-group, signal_number(signal));
                }
                ScopeAction::KillGroup(group) => self.signal_group(group, libc::SIGKILL),
                ScopeAction::KillTrees(scope, pids) => {
                    let world = self.world.borrow();
                    let found = pids.iter().flat_map(|&pid| world.tree(pid));
                    let found: BTreeSet<i32> = found.collect();
                    drop(world);
                    let found: Vec<i32> = found.into_iter().collect();
                    for &pid in &found {
                        self.signal(pid, libc::SIGKILL);
                    }
                    self.tree.killed(scope, &found, self.now);
                }
                ScopeAction::Cancel(process) => {
                    let mut world = self.world.borrow_mut();
                    let its = |it: &&mut Worker| it.command.map(|it| it.0) == Some(process);
                    let worker = world.workers.iter_mut().find(its);
                    if let Some(worker) = worker.filter(|worker| worker.started.is_none()) {
                        worker.command = None;
                        drop(world);
                        self.leave(process, None);
                    }
                }
                ScopeAction::Emptied(scope) => self.emptied(scope),
                ScopeAction::Log(_) => {}
            }
        }
    }

    fn signal_group(&self, group: i32, signal: i32) {
        let world = self.world.borrow();
        let members = world.processes.iter().filter(|(_, process)| process.group == group);
        let members: Vec<i32> = members.map(|(&pid, _)| pid).collect();
        drop(world);
        for pid in members {
            self.signal(pid, signal);
        }
    }

    /// Checks that no process of an empty scope is left or about to start.
    fn emptied(&mut self, scope: ScopeId) {
        assert!(self.scopes.get(&scope).is_some_and(|it| it.is_ending), "{scope:?} is no more");
        let world = self.world.borrow();
        for pid in world.living() {
            let process = &world.processes[&pid];
            let is_left = process.tagged && self.is_in(process.scope, scope);
            assert!(!is_left, "{pid} of {:?} is left", process.scope);
        }
        for (command, of) in world.workers.iter().filter_map(|worker| worker.command) {
            assert!(!self.is_in(of, scope), "{command:?} is still being started");
        }
        drop(world);
        let below: Vec<ScopeId> =
            self.scopes.keys().copied().filter(|&id| self.is_in(id, scope)).collect();
        for id in below {
            if id == ScopeId::SCRIPT {
                self.scopes.get_mut(&id).expect("it is there").is_ending = false;
            } else if id == scope || !self.scopes[&id].is_ending {
                // Inner scopes that are being emptied report their own ends.
                self.scopes.remove(&id);
            }
        }
    }

    /// Runs the model to its end and checks that no status was lost.
    pub(super) fn finish(mut self) {
        let workers = self.world.borrow().workers.len();
        for _ in 0..40 {
            (0..workers).for_each(|which| self.step(&Step::Happens(Happening::Work(which))));
            let ending = self.scopes.values().filter(|scope| scope.is_ending).count();
            (0..ending).for_each(|which| self.step(&Step::Kill(which)));
            while !self.world.borrow().answers.is_empty() {
                self.step(&Step::Take);
            }
            for step in [Step::Look(Vec::new()), Step::Reap, Step::Settle(100)] {
                self.step(&step);
            }
        }
        assert!(!self.tree.is_emptying(), "a scope is never emptied");
        assert!(
            self.scopes.values().all(|scope| !scope.is_ending),
            "the end of a scope was not reported"
        );
        let living = self.world.borrow().living();
        for pid in living {
            self.world.borrow_mut().end(pid, CommandStatus::Exited(0));
        }
        for step in [Step::Reap, Step::Look(Vec::new())] {
            self.step(&step);
        }
        let world = self.world.borrow();
        let truth: HashMap<ProcessId, CommandStatus> =
            world.truth.iter().map(|(&process, &status)| (process, status)).collect();
        for (process, status) in &truth {
            match self.reported.get(process) {
                Some(reported) => assert_eq!(reported, status, "{process:?}"),
                None => assert!(self.cut.contains(process), "{process:?} was not reported"),
            }
        }
        assert!(self.reported.keys().all(|process| truth.contains_key(process)));
        assert_eq!(world.processes.len(), 0, "all are waited for");
        assert!(self.commands.is_empty(), "{:?}", self.commands);
    }
}
