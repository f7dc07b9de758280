//! Commands with their processes, the scopes that they belong to, and watches of scopes.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use bstr::BString;
use nix::errno::Errno;

use super::console::Console;
use super::system_view::SystemView;
use super::tokens::{CHILDREN, WATCHES};
use crate::children::{self, Children, CommandChild};
use crate::jobs::{ActiveCommand, CommandStage, JobRecipient, JobResult, Reactor};
use crate::kill::{ShutdownSweep, stop_and_kill};
use crate::paths::FdError;
use crate::procs::{ProcDir, ProcessScanner, has_proc};
use crate::scopes::{EndStep, EndedCommand, ScopeTree};
use crate::tag::{ScopeTag, Tagger};
use crate::tty::Terminal;
use crate::watch::{SampleReport, ScopeWatches};
use crate::workers::Control;
use ftsh_machine::effect::{ProcessId, ScopeId, Watch};
use ftsh_machine::event::{CommandStatus, Event, SpawnErrorKind};
use ftsh_machine::record::{Level, LogEvent};
use ftsh_machine::time::Deadline;
use ftsh_sys as sys;

/// Delay of a check of all children without a pidfd.
const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

/// Processes of a run.
pub(super) struct Processes {
    commands: HashMap<ProcessId, ActiveCommand>,
    children: Children,
    scopes: ScopeTree,
    /// Scopes whose processes are watched.
    watches: ScopeWatches,
    /// Scanner of all processes, used without a subreaper.
    scanner: ProcessScanner,
    /// Set after the warning that daemons may be left.
    has_warned: bool,
}

impl Processes {
    /// Creates the tables of a run whose processes are tagged. `adopts` is true if this process is
    /// a subreaper. Fails if existing children cannot be listed.
    pub(super) fn new(tagger: Tagger, adopts: bool, pidfds: bool) -> io::Result<Self> {
        let mut children = Children::new(children::RealChildren);
        children.pidfds = pidfds;
        if !sys::has_no_children() {
            children.preexisting = ProcDir(children.parent).children()?.into_iter().collect();
        }
        Ok(Self {
            commands: HashMap::new(),
            children,
            scopes: ScopeTree::new(adopts),
            watches: ScopeWatches::default(),
            scanner: ProcessScanner::new(tagger),
            has_warned: false,
        })
    }

    /// Returns the children of this process.
    pub(super) fn children(&mut self) -> &mut Children {
        &mut self.children
    }

    pub(super) fn scopes(&mut self) -> &mut ScopeTree {
        &mut self.scopes
    }

    /// Returns the process id of this process.
    pub(super) fn parent(&self) -> i32 {
        self.children.parent
    }

    /// Returns the number of processes of commands.
    pub(super) fn child_count(&self) -> usize {
        self.children.len()
    }

    /// True if orphans become children of this process.
    pub(super) fn adopts(&self) -> bool {
        self.scopes.adopts()
    }

    /// True if any scope is being emptied.
    pub(super) fn is_emptying(&self) -> bool {
        self.scopes.is_emptying()
    }

    /// Returns the tags of the run's processes.
    pub(super) fn tagger(&self) -> &Tagger {
        &self.scanner.tagger
    }

    /// Returns the variable that tags the processes of a scope.
    pub(super) fn tag(&self, scope: ScopeId, notes: &str) -> (&'static str, BString) {
        (ScopeTag::VARIABLE, self.scanner.tagger.value(scope, notes))
    }

    /// Returns the tag notes about the time limit of a scope. `text` writes a deadline.
    pub(super) fn note_grants(
        &mut self,
        scope: ScopeId,
        deadline: Deadline,
        text: impl Fn(Deadline) -> BString,
    ) -> String {
        let around = self.scopes.around(scope);
        let (tagger, pid) = (&self.scanner.tagger, self.children.parent);
        self.scopes.grants.note(tagger, pid, deadline, &around, text)
    }

    /// Returns the scopes and their queries.
    pub(super) fn scopes_and_system<'a>(
        &'a mut self,
        reactor: &'a mut Reactor,
        terminal: &'a mut Option<Terminal>,
    ) -> (&'a mut ScopeTree, SystemView<'a>) {
        let view = SystemView {
            children: &mut self.children,
            reactor,
            terminal,
            commands: &self.commands,
            scanner: &mut self.scanner,
        };
        (&mut self.scopes, view)
    }
}

/// Commands.
impl Processes {
    pub(super) fn enter(&mut self, process: ProcessId, scope: ScopeId, command: ActiveCommand) {
        self.scopes.begin(scope, process);
        self.commands.insert(process, command);
    }

    /// Returns a command that has not ended.
    pub(super) fn command(&mut self, process: ProcessId) -> Option<&mut ActiveCommand> {
        self.commands.get_mut(&process)
    }

    /// True if a command has not ended.
    pub(super) fn has_command(&self, process: ProcessId) -> bool {
        self.commands.contains_key(&process)
    }

    /// True if all commands have ended.
    pub(super) fn has_no_commands(&self) -> bool {
        self.commands.is_empty()
    }

    /// Returns the commands that have not ended.
    pub(super) fn commands(&self) -> impl Iterator<Item = &ActiveCommand> {
        self.commands.values()
    }

    /// True if no command can write to the terminal.
    pub(super) fn are_quiet(&self) -> bool {
        self.commands().all(|command| command.quiet)
    }

    /// Removes a command that has ended. Its scope must be left next.
    pub(super) fn remove(&mut self, process: ProcessId) -> Option<ActiveCommand> {
        self.commands.remove(&process)
    }

    /// Executes a command by a worker.
    pub(super) fn work(
        &mut self,
        reactor: &mut Reactor,
        (process, scope): (ProcessId, ScopeId),
        mut command: ActiveCommand,
        job: impl FnOnce(&Control) -> JobResult + Send + 'static,
    ) {
        match reactor.submit(JobRecipient::Command(process), job) {
            Ok(handle) => {
                command.stage = CommandStage::Working(handle);
                if command.starting {
                    reactor.begin_start();
                }
                self.enter(process, scope, command);
            }
            Err(error) => {
                let error = FdError::Worker(error).into_spawn_error(SpawnErrorKind::System);
                reactor.refuse(process, error);
            }
        }
    }

    /// Stops a command before its start. Returns false if the start has begun: then the process is
    /// handled after the start.
    pub(super) fn stop_start(&mut self, reactor: &mut Reactor, process: ProcessId) -> bool {
        let Some(command) = self.commands.get(&process) else { return false };
        match &command.stage {
            CommandStage::Queued => true,
            CommandStage::Running => false,
            CommandStage::Working(handle) => {
                let is_cancelled = reactor.cancel(handle);
                if is_cancelled && command.starting {
                    reactor.end_start();
                }
                is_cancelled
            }
        }
    }
}

/// Children.
impl Processes {
    /// True if pidfds report the end of children.
    pub(super) fn uses_pidfds(&self) -> bool {
        self.children.pidfds
    }

    /// Watches the process of a command for its end, by a pidfd if one is wanted.
    pub(super) fn watch_end(
        &mut self,
        reactor: &mut Reactor,
        pid: i32,
        process: ProcessId,
        wants_pidfd: bool,
    ) {
        let pidfd = if wants_pidfd { pidfd(reactor, pid).ok() } else { None };
        if pidfd.is_none() {
            self.sweep_soon(); // the process may have ended already
        }
        self.children.insert(pid, CommandChild { process, pidfd });
    }

    /// Schedules a check of the children without a pidfd.
    pub(super) fn sweep_soon(&mut self) {
        self.children.sweep.get_or_insert_with(|| Instant::now() + SWEEP_INTERVAL);
    }

    /// Returns true once if a check of the children without a pidfd is due.
    pub(super) fn take_sweep(&mut self, now: Instant) -> bool {
        self.children.sweep.take_if(|due| *due <= now).is_some()
    }

    /// Reaps the process of a command, if it has ended, and returns the command with its status.
    pub(super) fn reap(
        &mut self,
        reactor: &mut Reactor,
        pid: i32,
    ) -> Option<(ProcessId, CommandStatus)> {
        let (child, status) = self.children.end_of(pid)?;
        if let Some(pidfd) = &child.pidfd {
            reactor.poller().remove(pidfd.as_fd());
        }
        Some((child.process, status))
    }

    /// True if processes other than commands and the monitor of keys exist. Processes left by
    /// commands may write at any time.
    pub(super) fn has_others(&self, monitor: Option<i32>) -> bool {
        let ours = |pid: &i32| self.children.is_command(*pid) || monitor == Some(*pid);
        let children = || ProcDir(self.children.parent).children_of_thread(self.children.parent);
        self.adopts() && !children().is_ok_and(|children| children.iter().all(ours))
    }

    /// Returns the way to find and kill all processes of the run.
    pub(super) fn shutdown_sweep(&self) -> ShutdownSweep {
        if self.adopts() {
            ShutdownSweep::Children(self.children.preexisting.clone())
        } else {
            ShutdownSweep::Tagged(self.scanner.tagger.clone(), self.children.pids().collect())
        }
    }

    /// Returns the children that no command has started.
    pub(super) fn strange_children(&self) -> io::Result<Vec<i32>> {
        let mut children = ProcDir(self.children.parent).children()?;
        children.retain(|pid| !self.children.preexisting.contains(pid));
        Ok(children)
    }

    /// Returns all processes with a tag of this run. Fails if the processes cannot be listed now.
    pub(super) fn tagged_processes(&mut self) -> io::Result<Vec<i32>> {
        let own = std::process::id() as i32;
        let scan = self.scanner.scan();
        if !scan.is_listed {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let all = scan.processes.into_iter();
        let tagged = all.filter(|(process, tag)| tag.is_some() && process.pid != own);
        Ok(tagged.map(|(process, _)| process.pid).collect())
    }
}

fn pidfd(reactor: &mut Reactor, pid: i32) -> io::Result<OwnedFd> {
    let pidfd = sys::pidfd_open(pid)?;
    reactor.poller().add(pidfd.as_fd(), CHILDREN + pid as u64)?;
    Ok(pidfd)
}

/// Scopes.
impl Processes {
    /// Records the end of a command in its scope.
    pub(super) fn leave_scope(
        &mut self,
        reactor: &mut Reactor,
        terminal: &mut Option<Terminal>,
        process: ProcessId,
    ) -> Option<EndedCommand> {
        let (scopes, mut system) = self.scopes_and_system(reactor, terminal);
        scopes.ended(process, &mut system)
    }

    /// Closes a scope that ended in success.
    pub(super) fn hand_over(
        &mut self,
        reactor: &mut Reactor,
        terminal: &mut Option<Terminal>,
        scope: ScopeId,
        into: ScopeId,
    ) {
        self.watches.end(&[scope]);
        let (scopes, mut system) = self.scopes_and_system(reactor, terminal);
        scopes.hand_over(scope, into, &mut system);
    }

    /// Takes a step towards the end of everything in a scope, which is not watched any more.
    pub(super) fn end_scope(&mut self, scope: ScopeId, step: EndStep) {
        if !self.watches.is_empty() {
            self.watches.end(&self.scopes.inside(scope));
        }
        self.scopes.end(scope, step, Instant::now());
    }

    /// Kills processes of a scope with all their descendants.
    pub(super) fn kill_trees(&mut self, console: &mut Console, scope: ScopeId, pids: &[i32]) {
        let found = if pids.is_empty() { Vec::new() } else { stop_and_kill(pids) };
        for pid in self.scopes.killed(scope, &found, Instant::now()) {
            // A process of another user cannot be signaled.
            if sys::kill(pid, 0) != Err(Errno::EPERM) {
                console.log(0, LogEvent::Signaled { pid, signal: libc::SIGKILL });
            }
        }
    }

    /// Warns once, where daemons cannot be found, that a canceled attempt may have left some.
    pub(super) fn warn_of_unseen_daemons(&mut self, console: &mut Console) {
        if !self.adopts() && !has_proc() && !std::mem::replace(&mut self.has_warned, true) {
            let warning =
                "without /proc, daemons of a canceled attempt are not found and keep running";
            console.log_at(Level::FAILURES, 0, LogEvent::Note(warning.into()));
        }
    }

    /// Returns the processes left by ended commands, each with its descendants; none if they cannot
    /// be listed now.
    pub(super) fn left_behind(
        &mut self,
        reactor: &mut Reactor,
        terminal: &mut Option<Terminal>,
    ) -> Option<HashSet<i32>> {
        let (scopes, mut system) = self.scopes_and_system(reactor, terminal);
        let mut stack = scopes.reap(&mut system)?;
        let mut found = HashSet::new();
        while let Some(pid) = stack.pop() {
            if found.insert(pid) {
                stack.extend(ProcDir(pid).children().ok()?);
            }
        }
        Some(found)
    }
}

/// Watches of scopes.
impl Processes {
    /// Begins to watch a scope.
    pub(super) fn watch_scope(&mut self, scope: ScopeId, watch: Watch) {
        self.watches.begin(scope, watch, Instant::now());
    }

    /// Returns the time of the next work that no descriptor reports.
    pub(super) fn due(&self) -> Option<Instant> {
        let all = [self.children.sweep, self.scopes.next_look(), self.watches.due()];
        all.into_iter().flatten().min()
    }

    /// Handles the result of the last sample.
    pub(super) fn take_samples(&mut self, reactor: &mut Reactor, console: &mut Console) {
        for report in self.watches.take_reports() {
            match report {
                SampleReport::Stalled(scope) => reactor.emit(Event::Stalled { scope }),
                SampleReport::OverMemory(scope, memory) => {
                    reactor.emit(Event::OverMemory { scope, memory });
                }
                SampleReport::Unreadable(scope) => {
                    let note = format!(
                        "no process of scope {} can be read, so `stalled` counts it as progressing",
                        scope.0
                    );
                    console.log_at(Level::FAILURES, 0, LogEvent::Note(note));
                }
            }
        }
    }

    /// True if the time of the next sample of the watched scopes has come.
    pub(super) fn may_sample(&self, now: Instant) -> bool {
        self.watches.due().is_some_and(|due| due <= now)
    }

    /// True if a sample can be taken now.
    pub(super) fn is_sample_due(&mut self, now: Instant) -> bool {
        self.watches.is_sample_due(now)
    }

    /// Requests a sample of the watched scopes.
    pub(super) fn sample(
        &mut self,
        reactor: &mut Reactor,
        terminal: &mut Option<Terminal>,
        now: Instant,
    ) -> io::Result<()> {
        let scopes = self.watches.scopes();
        let (tree, mut system) = self.scopes_and_system(reactor, terminal);
        let mut roots: Vec<(ScopeId, Vec<i32>)> = Vec::with_capacity(scopes.len());
        for scope in scopes {
            roots.push((scope, tree.roots(scope, &mut system)));
        }
        if let Some(news) = self.watches.sample(now, roots.into_iter().collect())? {
            // Without this descriptor, news is taken when the next sample is due.
            let _ = reactor.poller().add(news, WATCHES);
        }
        Ok(())
    }
}
