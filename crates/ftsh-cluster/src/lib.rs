//! Driver around the process driver that runs branches on other machines.
//!
//! An engine, such as `srun` or `ssh`, starts `ftsh --branch` on a node and connects the standard
//! streams. The engine's command runs in a separate process family. When the script's family ends,
//! the driver first requests the end of the branches over the connections. Each node's shell can
//! then clean up its own processes. The process driver prints the output of branches as `echo`
//! would.

mod backlog;
mod cancels;
mod carried;
mod connection;
mod conversation;
mod engine_state;
mod engines;
mod files;
mod hosts;
mod interactive;
mod poll_schedule;
mod queue_poll;
mod remote_branch;
mod sending;
mod ship;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use self::cancels::Cancels;
use self::engine_state::EngineState;
use self::engines::Engine;
use self::remote_branch::{AwaitedEvent, END_TIMEOUT, RemoteBranch, ReservedIds};
use self::sending::ShellProgram;
use bstr::BString;
use ftsh_machine::driver::{BufferPart, Driver, Durable};
use ftsh_machine::effect::{BufferId, Dispatch, Effect, IoId, ScopeId, ViewId};
use ftsh_machine::event::{Blame, CommandStatus, SpawnErrorKind};
use ftsh_machine::record::Level;
use ftsh_machine::{Event, Machine, Time};
use ftsh_process::{DigestKey, Digests, ProcessDriver};
use ftsh_remote::family::Families;
use ftsh_remote::orphans::OrphanedBranches;
use ftsh_remote::{Lease, StoreId};
use ftsh_syntax::engine::EngineId;

pub use self::engines::{environment_prefixes, is_for_carrier, node_name};

/// Settings of a cluster driver that options and environment decide.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterConfig {
    /// Time that a branch on another machine continues without contact to this shell.
    pub lease: Duration,
    /// True if this program is copied to the other machines.
    pub ship: bool,
}

/// Runs effects on this system, and branches on others.
pub struct ClusterDriver {
    inner: Box<ProcessDriver>,
    config: ClusterConfig,
    /// Implementation of each engine.
    implementation: fn(EngineId) -> &'static dyn Engine,
    /// Pause before the first poll of an engine's queue.
    first_poll: Duration,
    /// State of the engines that this run has used.
    engines: BTreeMap<EngineId, EngineState>,
    /// This program, loaded by the first submission.
    program: Option<ShellProgram>,
    branches: BTreeMap<u64, RemoteBranch>,
    cancels: Cancels,
    families: Families,
    /// Branches that wait for a free host.
    waiting: VecDeque<Dispatch>,
    orphans: OrphanedBranches,
    ready: VecDeque<Event>,
    count: u64,
    /// Store of the run's files on nodes, and the digests of the files here.
    store: StoreId,
    digests: Arc<Digests>,
}

/// Result of one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitResult {
    /// An event arrived, or the driver handled work of its own.
    Busy,
    /// No event arrived before the time limit, or the process driver returned early.
    Idle,
}

impl ClusterDriver {
    /// Creates a driver around a process driver.
    pub fn new(inner: Box<ProcessDriver>, config: ClusterConfig) -> Self {
        Self {
            inner,
            config,
            implementation: engines::of,
            first_poll: poll_schedule::FIRST_PAUSE,
            engines: BTreeMap::new(),
            program: None,
            branches: BTreeMap::new(),
            cancels: Cancels::default(),
            families: Families::default(),
            waiting: VecDeque::new(),
            orphans: OrphanedBranches::default(),
            ready: VecDeque::new(),
            count: 0,
            store: StoreId::default(),
            digests: Arc::new(Digests::new(DigestKey::default())),
        }
    }

    /// Returns the name of this start, which is part of the tags of its processes.
    pub fn tag_name(&self) -> &str {
        self.inner.tag_name()
    }

    /// Returns the scopes of the branches that may run somewhere.
    fn remote_scopes(&self) -> Vec<ScopeId> {
        let unfinished = self.branches.values().filter(|it| it.awaited != AwaitedEvent::Delivered);
        unfinished.map(|it| it.dispatched.scope).chain(self.orphans.scopes()).collect()
    }

    /// Handles an event of the process driver. Returns the event if the machine needs the event.
    fn filter_event(&mut self, event: Event) -> Option<Event> {
        let own = match &event {
            Event::Spawned { process, .. }
            | Event::SpawnFailed { process, .. }
            | Event::Exited { process, .. } => ReservedIds::of_process(*process),
            Event::Done { operation, .. } => ReservedIds::of_operation(*operation),
            Event::Emptied { scope } => match ReservedIds::of_scope(*scope) {
                Some(own) => Some(own),
                None => {
                    let remote = self.remote_scopes();
                    return self.families.emptied(*scope, &remote).then_some(event);
                }
            },
            _ => None,
        };
        let Some((number, is_engine)) = own else { return Some(event) };
        match event {
            Event::Exited { status, .. } if self.engine_with_poll(number).is_some() => {
                self.poll_ended(number, status);
            }
            Event::Exited { status, .. } if self.cancels.has(number) => {
                self.cancel_ended(number, status, "it said nothing");
            }
            Event::SpawnFailed { error, .. } if self.cancels.has(number) => {
                self.cancel_ended(number, CommandStatus::Lost, &error.message);
            }
            Event::Emptied { .. } if self.cancels.has(number) => {
                self.cancel_ended(number, CommandStatus::Lost, "it took longer than 10 s");
            }
            Event::SpawnFailed { .. } | Event::Emptied { .. }
                if self.engine_with_poll(number).is_some() =>
            {
                self.poll_ended(number, CommandStatus::Lost);
            }
            Event::SpawnFailed { error, .. } if is_engine => {
                if let Some(it) = self.branches.get_mut(&number) {
                    let is_missing = matches!(
                        error.kind,
                        SpawnErrorKind::NotFound | SpawnErrorKind::NotExecutable
                    );
                    let blame = if is_missing { Blame::Request } else { Blame::Engine };
                    it.engine_ended = true;
                    it.take_job();
                    it.head.closed(&error.message, blame);
                }
                self.process_outputs(number);
            }
            Event::Exited { status, .. } if is_engine => self.engine_ended(number, status),
            // The engine's command was killed, and no exit event follows.
            Event::Emptied { .. }
                if self.branches.get(&number).is_some_and(|it| !it.engine_ended) =>
            {
                self.engine_ended(number, CommandStatus::Lost);
            }
            Event::Exited { .. } | Event::SpawnFailed { .. } => {
                if let Some(it) = self.branches.get_mut(&number) {
                    it.is_printing = false;
                }
                self.process_outputs(number);
            }
            _ => {}
        }
        None
    }

    /// Returns the time of the next internal work of the driver.
    fn next_due(&self) -> Time {
        let due = self.branches.values().map(RemoteBranch::next_due).min().unwrap_or(Time::NEVER);
        due.min(self.next_poll())
            .min(self.orphans.next_due())
            .min(self.next_stale())
            .min(self.cancels.next_due())
    }

    fn handle_due(&mut self) {
        let now = self.inner.now();
        if let Some(held) = self.orphans.pass(now) {
            self.report_empty();
            for dispatch in held {
                self.dispatch(dispatch);
            }
        }
        let due = self.branches.values().filter(|it| it.next_due() <= now);
        for number in due.map(RemoteBranch::number).collect::<Vec<_>>() {
            let Some(it) = self.branches.get_mut(&number) else { continue };
            it.head.handle_timeout(now);
            if let Some(note) = it.take_silence(now) {
                self.inner.log_note(Level::FAILURES, note);
            }
            // The node waits while this shell writes the files.
            if it.transfer.as_ref().is_some_and(|it| it.is_receiving) {
                it.kill_at = it.kill_at.map(|at| at.max(now + END_TIMEOUT));
            }
            if it.kill_at.take_if(|at| *at <= now).is_some() {
                let scope = it.ids.scope();
                self.inner.perform(Effect::Terminate(scope));
                self.inner.perform(Effect::Kill { scope, strong: true });
                if !it.is_needless() {
                    self.cancel_job(number);
                }
            }
            self.process_outputs(number);
        }
        self.return_stale();
        self.poll_queues();
        self.cancels.give_up(&mut self.inner);
        self.cancel_stale();
    }

    /// Waits for an event on this machine or of a branch, and handles internal work.
    fn turn(&mut self, until: Time) -> WaitResult {
        let due = self.next_due();
        let event = self.inner.wait(until.min(due));
        let was_ready = self.read_connections();
        self.handle_due();
        let is_ours = was_ready || (due <= self.now() && due < until);
        let turn = if event.is_some() || is_ours { WaitResult::Busy } else { WaitResult::Idle };
        if let Some(event) = event.and_then(|event| self.filter_event(event)) {
            self.ready.push_back(event);
        }
        turn
    }

    /// Reports the scopes that are now empty.
    fn report_empty(&mut self) {
        let remote = self.remote_scopes();
        let empty = self.families.empty(&remote).into_iter();
        self.ready.extend(empty.map(|scope| Event::Emptied { scope }));
    }

    /// Reads the ready connections. Returns true if any connection was ready.
    fn read_connections(&mut self) -> bool {
        let keys = self.inner.take_ready_keys();
        for key in &keys {
            self.on_ready(*key);
        }
        !keys.is_empty()
    }
}

impl Driver for ClusterDriver {
    fn now(&self) -> Time {
        self.inner.now()
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Dispatch(dispatch) => return self.dispatch(*dispatch),
            Effect::OpenScope { scope, parent, .. } => self.families.open(scope, parent),
            Effect::HandOver { scope, into } => {
                self.families.hand_over(scope, into);
                self.orphans.hand_over(scope, into);
            }
            // A repeated request is sent to the nodes as well.
            Effect::Terminate(scope) | Effect::Kill { scope, .. } => self.end(scope),
            _ => {}
        }
        self.inner.perform(effect);
    }

    fn watch(&mut self, machine: &Machine) {
        self.inner.watch(machine);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.turn(until) == WaitResult::Idle && self.ready.is_empty() {
                return None;
            }
        }
    }
}

impl Durable for ClusterDriver {
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        self.inner.position(io, descriptor)
    }

    fn written(&mut self, buffer: BufferId, from: u64) -> io::Result<Option<BufferPart>> {
        self.inner.written(buffer, from)
    }

    fn outlived_by(&self, branch: &Dispatch) -> Duration {
        Lease::gone_after(self.config.lease, branch.branch.config.kill_timeout)
    }

    fn inherit(&mut self, orphans: Vec<(ScopeId, Time)>) {
        self.orphans.inherit(orphans);
    }

    fn record_commits(&mut self, run: u64) {
        self.inner.record_commits(run);
    }

    fn take_over_view(&mut self, view: ViewId, directories: &[BString]) -> io::Result<bool> {
        self.inner.take_over_view(view, directories)
    }

    fn catch_up(&mut self) {
        self.inner.catch_up();
    }
}
