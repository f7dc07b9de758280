//! A driver around the process driver that has branches run on other machines.
//!
//! An engine, as `srun` or `ssh`, starts `ftsh --branch` there and keeps its streams; that is a command like
//! others here, but in a family apart: when the script's is ended, branches are first asked to end by
//! themselves, through that connection, so that the shell on the node clears away what they have started.
//! What they print is printed as `echo` would, by the process driver.

mod away;
mod connection;
mod engine;
mod family;
mod slurm;
mod ssh;
mod submission;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use bstr::BString;
use nix::libc::SIGTERM;

use self::away::{Awaited, Away, Names};
use self::connection::{Connection, Heard, Pipe};
use self::family::Families;
use self::ssh::Hosts;
use self::submission::Submission;
use crate::branch::{Branch, Head, Identity, Nonce, Output, Stream};
use crate::driver::process::{self, ProcessDriver};
use crate::driver::{Attended, Driver, Durable, Interactive, Written};
use crate::machine::effect::{
    Action, BufferId, Dispatch, Effect, Environment, FdChange, FdSource, IoId, ProcessId, Run,
    ScopeId,
};
use crate::machine::event::{Blame, Returned, SpawnErrorKind, Status};
use crate::machine::{Event, Machine, Outcome, Time};
use crate::os_error::plain;
use crate::syntax::clauses::Engine;

/// How long an engine's command has to end when it isn't needed any more.
const PATIENCE: Duration = Duration::from_secs(5);
/// What has been read is printed in pieces up to this size.
const PIECE: usize = 256 * 1024;

/// What a cluster driver is told.
pub struct Settings {
    /// How long branches go on without hearing of this shell.
    pub lease: Duration,
    /// From SIGTERM to SIGKILL, on each machine.
    pub kill_timeout: Duration,
    /// Variables for every command, wherever it runs.
    pub told: Vec<(&'static str, BString)>,
}

/// Runs effects on this system, and branches on others.
pub struct ClusterDriver {
    inner: ProcessDriver,
    settings: Settings,
    /// The program that runs, once that is known.
    program: Option<(Identity, BString)>,
    /// What the engines' commands find.
    environment: Environment,
    away: BTreeMap<u64, Away>,
    numbers: BTreeMap<ProcessId, u64>,
    families: Families,
    hosts: Hosts,
    /// Branches that wait for a free host.
    waiting: VecDeque<Dispatch>,
    ready: VecDeque<Event>,
    count: u64,
}

impl ClusterDriver {
    /// A driver around this one.
    pub fn new(inner: ProcessDriver, settings: Settings) -> Self {
        let environment = std::env::vars_os()
            .map(|(name, value)| (name.into_vec().into(), value.into_vec().into()))
            .collect();
        Self {
            inner,
            settings,
            program: None,
            environment,
            away: BTreeMap::new(),
            numbers: BTreeMap::new(),
            families: Families::default(),
            hosts: Hosts::default(),
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            count: 0,
        }
    }

    /// What the processes of this start are known by.
    pub fn mark(&self) -> &str {
        self.inner.mark()
    }

    fn dispatch(&mut self, dispatch: Dispatch) {
        let process = dispatch.process;
        if let Err((why, blame)) = self.send(dispatch) {
            let returned = Returned::NotBegun { node: None, why, blame };
            self.ready.push_back(Event::Returned { process, returned });
        }
    }

    fn send(&mut self, dispatch: Dispatch) -> Result<(), (String, Blame)> {
        let mine = |error: io::Error| (plain(&error), Blame::Engine);
        let engine = dispatch.on.engine;
        let (identity, program) = match &self.program {
            Some(program) => program.clone(),
            None => {
                let found = own_program().map_err(|error| (plain(&error), Blame::Request))?;
                self.program.insert(found).clone()
            }
        };
        let options = dispatch.on.options.clone().unwrap_or_default();
        let (host, others) = match engine {
            Engine::Slurm => (None, false),
            Engine::Ssh => {
                let chosen = self.hosts.choose(options.as_ref(), &dispatch.avoid);
                match chosen.map_err(|why| (why, Blame::Request))? {
                    Some((host, others)) => (Some(host), others),
                    None => {
                        self.waiting.push_back(dispatch);
                        return Ok(());
                    }
                }
            }
        };
        let Dispatch { process, task, scope, avoid, branch, io, line, .. } = dispatch;
        let names = Names::new(self.count);
        self.count += 1;
        let (connection, theirs) =
            Connection::open(&mut self.inner, names.first_key()).map_err(mine)?;
        self.inner.give(names.engine_io(), theirs).map_err(mine)?;
        let command = [program, "--branch".into()];
        let words = engine::submit(
            engine,
            &Submission {
                name: &names.job(self.inner.mark()),
                options: options.as_ref(),
                avoid: &avoid,
                command: &command,
                host: host.as_deref(),
            },
        );
        let told = self.settings.told.iter();
        let told = told.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let nonce = process::random().and_then(|one| Ok((one, process::random()?)));
        let (one, other) = nonce.map_err(mine)?;
        let nonce = Nonce((u128::from(one) << 64 | u128::from(other)).to_ne_bytes());
        let branch = Branch { identity, packed: *branch, told };
        let Settings { lease, kill_timeout, .. } = self.settings;
        let head = Head::new(branch, nonce, lease, kill_timeout, self.inner.now());
        if let Some(host) = &host {
            self.hosts.enter(host);
        }
        let away = Away {
            names,
            process,
            task,
            scope,
            line,
            engine,
            host,
            others,
            head,
            connection,
            engine_ended: false,
            unprinted: VecDeque::new(),
            is_printing: false,
            awaited: Awaited::End,
            returned: None,
            why: None,
            kill_at: None,
        };
        self.inner.open_apart(names.scope());
        // What it prints goes where the branch's descriptors lead, also once the machine has closed them.
        self.inner.perform(Effect::Open {
            operation: names.opening(),
            io: names.printing_io(),
            base: io,
            directory: None,
            umask: None,
            redirects: Vec::new(),
        });
        self.inner.perform(Effect::Run(Box::new(Run {
            process: names.engine(),
            task,
            scope: names.scope(),
            action: Action::Program {
                words,
                environment: self.environment.clone().into(),
                overrides: Vec::new(),
            },
            directory: None,
            umask: None,
            io: names.engine_io(),
            is_last: true,
            redirects: Vec::new(),
            feeds: 0,
            deadline: None,
            grace: None,
            line,
        })));
        self.numbers.insert(process, names.number());
        self.away.insert(names.number(), away);
        Ok(())
    }

    /// The scopes of the branches that may be somewhere.
    fn scopes_away(&self) -> Vec<ScopeId> {
        let away = self.away.values().filter(|away| away.awaited != Awaited::Told);
        away.map(|away| away.scope).collect()
    }

    /// Asks the branches of a scope to end.
    fn end(&mut self, scope: ScopeId) {
        let families = &self.families;
        self.waiting.retain(|it| !families.is_in(it.scope, scope));
        let concerned =
            |away: &&Away| away.awaited != Awaited::Told && families.is_in(away.scope, scope);
        let numbers: Vec<_> = self.away.values().filter(concerned).map(Away::number).collect();
        for number in numbers {
            if let Some(away) = self.away.get_mut(&number) {
                away.awaited = Awaited::Nothing;
                away.head.end(SIGTERM);
            }
            self.go_on(number);
        }
    }

    /// Does what a conversation asks for.
    fn go_on(&mut self, number: u64) {
        let Self { inner, away, ready, .. } = self;
        let Some(it) = away.get_mut(&number) else { return };
        while let Some(output) = it.head.poll_output() {
            match output {
                Output::Write(bytes) => it.connection.write(inner, &bytes),
                Output::Placed(node) if it.awaited == Awaited::End => {
                    let node = it.node(node);
                    ready.push_back(Event::Placed { process: it.process, node });
                }
                Output::Placed(_) => {}
                Output::Printed(stream, bytes) => it.unprinted.push_back((stream, bytes)),
                Output::Returned(returned) => {
                    it.connection.close(inner);
                    // One that has begun and told its end ends by itself.
                    let is_needless = !matches!(returned, Returned::Ended { .. });
                    if !it.engine_ended {
                        if is_needless {
                            inner.perform(Effect::Terminate(it.names.scope()));
                        }
                        it.kill_at = Some(Time::after(inner.now().elapsed() + PATIENCE));
                    }
                    it.returned = Some(it.told(returned));
                }
            }
        }
        self.print(number);
        self.conclude(number);
    }

    /// Prints what comes next.
    fn print(&mut self, number: u64) {
        let Some(it) = self.away.get_mut(&number) else { return };
        if it.is_printing {
            return;
        }
        let Some((stream, mut bytes)) = it.unprinted.pop_front() else { return };
        while let Some((next, more)) = it.unprinted.front()
            && *next == stream
            && bytes.len() + more.len() <= PIECE
        {
            bytes.extend_from_slice(more);
            it.unprinted.pop_front();
        }
        it.is_printing = true;
        let errors = FdChange { descriptor: 1, source: FdSource::Descriptor(2) };
        self.inner.perform(Effect::Run(Box::new(Run {
            process: it.names.printing(),
            task: it.task,
            scope: it.names.scope(),
            action: Action::Print(bytes.into()),
            directory: None,
            umask: None,
            io: it.names.printing_io(),
            is_last: false,
            redirects: if stream == Stream::Errors { vec![errors] } else { Vec::new() },
            feeds: 0,
            deadline: None,
            grace: None,
            line: it.line,
        })));
    }

    /// Tells what became of a branch, once all that it has printed is printed; forgets it when the engine's
    /// command has ended as well.
    fn conclude(&mut self, number: u64) {
        let Some(it) = self.away.get_mut(&number) else { return };
        if it.returned.is_none() || it.is_printing || !it.unprinted.is_empty() {
            return;
        }
        let awaited = std::mem::replace(&mut it.awaited, Awaited::Told);
        if awaited != Awaited::Told {
            self.numbers.remove(&it.process);
            self.inner.perform(Effect::CloseIo(it.names.printing_io()));
            if let Some(returned) = it.returned.clone()
                && awaited == Awaited::End
            {
                self.ready.push_back(Event::Returned { process: it.process, returned });
            }
            let host = it.host.take();
            let scopes = self.scopes_away();
            let empty = self.families.empty(&scopes).into_iter();
            self.ready.extend(empty.map(|scope| Event::Emptied { scope }));
            if let Some(host) = host {
                self.hosts.leave(&host);
                if let Some(next) = self.waiting.pop_front() {
                    self.dispatch(next);
                }
            }
        }
        if self.away.get(&number).is_some_and(|it| it.engine_ended) {
            self.away.remove(&number);
        }
    }

    /// A descriptor of a connection is ready.
    fn hear(&mut self, key: u64) {
        let number = key / Pipe::KEYS;
        let Some(pipe) = Pipe::ALL.get((key % Pipe::KEYS) as usize).copied() else { return };
        let Some(it) = self.away.get_mut(&number) else { return };
        if pipe == Pipe::Input {
            it.connection.go_on(&mut self.inner);
            return;
        }
        if let Heard::Bytes(bytes) = it.connection.read(&mut self.inner, pipe) {
            it.hear(pipe, self.inner.now(), &bytes);
        }
        self.go_on(number);
    }

    /// An engine's command has ended: nothing more is said but what was said already.
    fn engine_ended(&mut self, number: u64, status: Status) {
        let Some(it) = self.away.get_mut(&number) else { return };
        let code = match status {
            Status::Exited(code) => Some(code),
            Status::Signaled(_) | Status::Lost => None,
        };
        it.engine_ended = true;
        it.kill_at = None;
        for pipe in [Pipe::Output, Pipe::Errors] {
            while let Heard::Bytes(bytes) = it.connection.read(&mut self.inner, pipe) {
                it.hear(pipe, self.inner.now(), &bytes);
            }
        }
        self.go_on(number);
        if let Some(it) = self.away.get_mut(&number)
            && !it.head.is_over()
        {
            it.closed(code);
            self.go_on(number);
        }
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
        self.away.values().map(Away::next_due).min().unwrap_or(Time::NEVER)
    }

    fn take_due(&mut self) {
        let now = self.inner.now();
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

/// This program, and where it is.
fn own_program() -> io::Result<(Identity, BString)> {
    let identity = Identity::of(File::open("/proc/self/exe")?)?;
    Ok((identity, std::env::current_exe()?.into_os_string().into_vec().into()))
}

impl Driver for ClusterDriver {
    fn now(&self) -> Time {
        self.inner.now()
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Dispatch(dispatch) => return self.dispatch(*dispatch),
            Effect::OpenScope { scope, parent, .. } => self.families.open(scope, parent),
            Effect::HandOver { scope, into } => self.families.hand_over(scope, into),
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
            let due = self.next_due();
            let event = self.inner.wait(until.min(due));
            let heard = self.attend_to_connections();
            self.take_due();
            match event {
                Some(event) => {
                    if let Some(event) = self.sift(event) {
                        self.ready.push_back(event);
                    }
                }
                // Somebody wants a look at the machine, or it is time.
                None if self.ready.is_empty() && !heard && (due > self.now() || until <= due) => {
                    return None;
                }
                None => {}
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

    fn catch_up(&mut self) {
        self.inner.catch_up();
    }
}

impl Interactive for ClusterDriver {
    type Job<T> = process::BackgroundJob<T>;

    fn begin<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self::Job<T>> {
        self.inner.begin(work)
    }

    fn attend<T>(&mut self, job: &mut Self::Job<T>, until: Time) -> Attended<T> {
        loop {
            match self.inner.attend(job, until) {
                Attended::Event(event) => {
                    if let Some(event) = self.sift(event) {
                        return Attended::Event(event);
                    }
                }
                attended => return attended,
            }
        }
    }

    fn interrupt<T>(&self, job: &Self::Job<T>) {
        self.inner.interrupt(job);
    }

    fn leave_alone<T>(&mut self, job: &Self::Job<T>) {
        self.inner.leave_alone(job);
    }

    fn flush_on_exit(&mut self, outcome: Outcome) -> Outcome {
        self.inner.flush_on_exit(outcome)
    }

    fn page(&self, machine: &Machine) -> String {
        self.inner.page(machine)
    }

    fn settle_terminal(&mut self) {
        self.inner.settle_terminal();
    }

    fn restore_terminal(&self) {
        self.inner.restore_terminal();
    }

    fn edited(&self) -> process::Edited {
        self.inner.edited()
    }
}
