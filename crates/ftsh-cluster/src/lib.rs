//! A driver around the process driver that has branches run on other machines.
//!
//! An engine, as `srun` or `ssh`, starts `ftsh --branch` there and keeps its streams; that is a command like
//! others here, but in a family apart: when the script's is ended, branches are first asked to end by
//! themselves, through that connection, so that the shell on the node clears away what they have started.
//! What they print is printed as `echo` would, by the process driver.

mod away;
mod backlog;
mod connection;
mod conversation;
mod engine_state;
mod engines;
mod hosts;
mod inquiry;
mod interactive;
mod looking;
mod sending;
mod ship;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use bstr::BString;

use self::away::{Awaited, Away, Names};
use self::engine_state::EngineState;
use self::engines::Engine;
use self::sending::Program;
use ftsh_machine::driver::{Driver, Durable, Written};
use ftsh_machine::effect::{BufferId, Dispatch, Effect, IoId, ScopeId};
use ftsh_machine::event::{Blame, SpawnErrorKind, Status};
use ftsh_machine::{Event, Machine, Time};
use ftsh_process::ProcessDriver;
use ftsh_remote::Lease;
use ftsh_remote::family::Families;
use ftsh_remote::orphans::Orphans;
use ftsh_syntax::engine::EngineId;

pub use self::engines::{environment_prefixes, node_name};

/// What a cluster driver is told.
pub struct Settings {
    /// How long branches go on without hearing of this shell.
    pub lease: Duration,
    /// Variables for every command, wherever it runs.
    pub told: Vec<(&'static str, BString)>,
    /// Whether this program is sent along.
    pub ship: bool,
}

/// Runs effects on this system, and branches on others.
pub struct ClusterDriver {
    inner: ProcessDriver,
    settings: Settings,
    /// Implementation of each engine.
    implementation: fn(EngineId) -> &'static dyn Engine,
    /// Pause before an engine's queue is polled first.
    first_poll: Duration,
    /// State of the engines that this run has used.
    engines: BTreeMap<EngineId, EngineState>,
    /// The program that runs, once that is known.
    program: Option<Program>,
    away: BTreeMap<u64, Away>,
    families: Families,
    /// Branches that wait for a free host.
    waiting: VecDeque<Dispatch>,
    orphans: Orphans,
    ready: VecDeque<Event>,
    count: u64,
}

/// What a turn of waiting has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Something has happened.
    Busy,
    /// Somebody wants a look at the machine, or it is time.
    Idle,
}

impl ClusterDriver {
    /// A driver around this one.
    pub fn new(inner: ProcessDriver, settings: Settings) -> Self {
        Self {
            inner,
            settings,
            implementation: engines::of,
            first_poll: inquiry::SOON,
            engines: BTreeMap::new(),
            program: None,
            away: BTreeMap::new(),
            families: Families::default(),
            waiting: VecDeque::new(),
            orphans: Orphans::default(),
            ready: VecDeque::new(),
            count: 0,
        }
    }

    /// What the processes of this start are known by.
    pub fn mark(&self) -> &str {
        self.inner.mark()
    }

    /// The scopes of the branches that may be somewhere.
    fn scopes_away(&self) -> Vec<ScopeId> {
        let away = self.away.values().filter(|away| away.awaited != Awaited::Told);
        away.map(|away| away.errand.scope).chain(self.orphans.scopes()).collect()
    }

    /// What the machine is told of an event of the process driver's.
    fn sift(&mut self, event: Event) -> Option<Event> {
        let own = match &event {
            Event::Spawned { process, .. }
            | Event::SpawnFailed { process, .. }
            | Event::Exited { process, .. } => Names::of_process(*process),
            Event::Done { operation, .. } => Names::of_operation(*operation),
            Event::Emptied { scope } => match Names::of_scope(*scope) {
                Some(own) => Some(own),
                None => {
                    let away = self.scopes_away();
                    return self.families.emptied(*scope, &away).then_some(event);
                }
            },
            _ => None,
        };
        let Some((number, is_engine)) = own else { return Some(event) };
        match event {
            Event::Exited { status, .. } if self.looking(number).is_some() => {
                self.looked(number, status);
            }
            Event::SpawnFailed { .. } | Event::Emptied { .. } if self.looking(number).is_some() => {
                self.looked(number, Status::Lost);
            }
            Event::SpawnFailed { error, .. } if is_engine => {
                if let Some(it) = self.away.get_mut(&number) {
                    let is_missing = matches!(
                        error.kind,
                        SpawnErrorKind::NotFound | SpawnErrorKind::NotExecutable
                    );
                    let blame = if is_missing { Blame::Request } else { Blame::Engine };
                    it.engine_ended = true;
                    it.head.closed(&error.message, blame);
                }
                self.go_on(number);
            }
            Event::Exited { status, .. } if is_engine => self.engine_ended(number, status),
            // It was killed, and nobody tells of its end.
            Event::Emptied { .. } if self.away.get(&number).is_some_and(|it| !it.engine_ended) => {
                self.engine_ended(number, Status::Lost);
            }
            Event::Exited { .. } | Event::SpawnFailed { .. } => {
                if let Some(it) = self.away.get_mut(&number) {
                    it.is_printing = false;
                }
                self.go_on(number);
            }
            _ => {}
        }
        None
    }

    /// The moment when something is to be done even if nothing happens.
    fn next_due(&self) -> Time {
        let due = self.away.values().map(Away::next_due).min().unwrap_or(Time::NEVER);
        due.min(self.next_look()).min(self.orphans.next_due()).min(self.next_stale())
    }

    fn take_due(&mut self) {
        let now = self.inner.now();
        if let Some(held) = self.orphans.pass(now) {
            self.tell_empty();
            for dispatch in held {
                self.dispatch(dispatch);
            }
        }
        let due = self.away.values().filter(|it| it.next_due() <= now);
        for number in due.map(Away::number).collect::<Vec<_>>() {
            let Some(it) = self.away.get_mut(&number) else { continue };
            it.head.handle_timeout(now);
            if it.kill_at.take_if(|at| *at <= now).is_some() {
                let scope = it.names.scope();
                self.inner.perform(Effect::Terminate(scope));
                self.inner.perform(Effect::Kill { scope, strong: true });
            }
            self.go_on(number);
        }
        self.give_back_stale();
        self.take_looks();
    }

    /// Waits for something to happen, here or to a branch, and takes note of it.
    fn turn(&mut self, until: Time) -> Turn {
        let due = self.next_due();
        let event = self.inner.wait(until.min(due));
        let heard = self.attend_to_connections();
        self.take_due();
        let is_ours = heard || (due <= self.now() && due < until);
        let turn = if event.is_some() || is_ours { Turn::Busy } else { Turn::Idle };
        if let Some(event) = event.and_then(|event| self.sift(event)) {
            self.ready.push_back(event);
        }
        turn
    }

    /// Tells of the scopes that are empty by now.
    fn tell_empty(&mut self) {
        let away = self.scopes_away();
        let empty = self.families.empty(&away).into_iter();
        self.ready.extend(empty.map(|scope| Event::Emptied { scope }));
    }

    /// Takes note of what has happened to connections.
    fn attend_to_connections(&mut self) -> bool {
        let keys = self.inner.take_ready();
        for key in &keys {
            self.hear(*key);
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
            // A second time is impatience, there as here.
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
            if self.turn(until) == Turn::Idle && self.ready.is_empty() {
                return None;
            }
        }
    }
}

impl Durable for ClusterDriver {
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        self.inner.position(io, descriptor)
    }

    fn written(&mut self, buffer: BufferId, from: u64) -> io::Result<Option<Written>> {
        self.inner.written(buffer, from)
    }

    fn outlived_by(&self, branch: &Dispatch) -> Duration {
        Lease::gone_after(self.settings.lease, branch.branch.settings.kill_timeout)
    }

    fn inherit(&mut self, orphans: Vec<(ScopeId, Time)>) {
        self.orphans.inherit(orphans);
    }

    fn catch_up(&mut self) {
        self.inner.catch_up();
    }
}
