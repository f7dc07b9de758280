//! A look at an engine's list of what waits there and runs, by a command of the engine's.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bstr::ByteSlice;

use super::ClusterDriver;
use super::away::{Away, Errand, Names};
use super::connection::{Connection, Heard, Pipe};
use super::engine_state::EngineState;
use super::engines::{Queue, QueueEntry, Reason};
use ftsh_machine::Time;
use ftsh_machine::driver::Driver;
use ftsh_machine::effect::{Action, Effect};
use ftsh_machine::event::{Blame, Status};
use ftsh_process::ProcessDriver;
use ftsh_syntax::engine::EngineId;

/// How long the command has. Slurm's gives up by itself after 10 to 100 seconds, as it is configured.
const PATIENCE: Duration = Duration::from_secs(120);

/// A look that is being taken.
#[derive(Debug)]
pub(super) struct Look {
    names: Names,
    queue: &'static dyn Queue,
    connection: Connection,
    answer: Vec<u8>,
    /// When it is given up.
    pub until: Time,
}

impl ClusterDriver {
    /// Returns the state of an engine.
    pub(super) fn engine(&mut self, id: EngineId) -> &mut EngineState {
        let (implementation, first_poll) = (self.implementation, self.first_poll);
        self.engines.entry(id).or_insert_with(|| EngineState::new(implementation(id), first_poll))
    }

    /// Returns the time of the next start or end of a poll.
    pub(super) fn next_look(&self) -> Time {
        self.engines.values().map(EngineState::next_look).min().unwrap_or(Time::NEVER)
    }

    /// Returns the engine whose poll has this number.
    pub(super) fn looking(&self, number: u64) -> Option<EngineId> {
        let is_it = |state: &EngineState| {
            state.look.as_ref().is_some_and(|look| look.names.number() == number)
        };
        self.engines.iter().find(|(_, state)| is_it(state)).map(|(id, _)| *id)
    }

    /// Begins the polls that are due, and gives up those that take too long.
    pub(super) fn take_looks(&mut self) {
        let now = self.inner.now();
        let due = self.engines.iter().filter(|(_, state)| state.next_look() <= now);
        for id in due.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.take_look(id);
        }
    }

    fn take_look(&mut self, id: EngineId) {
        let now = self.inner.now();
        let Self { engines, inner, away, .. } = self;
        let Some(state) = engines.get_mut(&id) else { return };
        if let Some(look) = state.look.as_mut().filter(|look| look.until <= now) {
            look.end(inner);
        }
        if state.inquiry.due() > now {
            return;
        }
        let waiting = || away.values().filter(|it| it.errand.engine == id && it.may_wait());
        let sought = waiting().filter_map(|it| Some((it.number(), it.waits_as()?)));
        let sought: BTreeMap<_, _> = sought.collect();
        let errand = waiting().map(|it| it.errand).next();
        if state.inquiry.begin(sought, errand.is_some())
            && let Some(errand) = errand
            && self.ask(&errand).is_err()
        {
            self.engine(id).inquiry.answered(now, None);
        }
    }

    fn ask(&mut self, errand: &Errand) -> io::Result<()> {
        let Some(queue) = self.engine(errand.engine).engine.queue() else { return Ok(()) };
        let environment = self.program()?.environment;
        let wanted = environment.iter().filter(|(name, _)| !queue.is_filter(name)).cloned();
        let environment = Arc::new(wanted.collect());
        let names = self.new_names();
        let (mut connection, theirs) = Connection::open(&mut self.inner, names.first_key())?;
        connection.hang_up(&mut self.inner);
        self.inner.give(names.engine_io(), theirs)?;
        self.inner.open_apart(names.scope());
        let words = queue.list();
        let ask = Action::Program { words, environment, overrides: Vec::new() };
        self.inner.perform(names.run(errand, names.engine(), ask, names.engine_io(), Vec::new()));
        let until = self.inner.now() + PATIENCE;
        self.engine(errand.engine).look =
            Some(Look { names, queue, connection, answer: Vec::new(), until });
        Ok(())
    }

    /// The engine says something.
    pub(super) fn hear_list(&mut self, id: EngineId, pipe: Pipe) {
        let state = self.engines.get_mut(&id);
        let Some(look) = state.and_then(|state| state.look.as_mut()) else { return };
        if let Heard::Bytes(bytes) = look.connection.read(&mut self.inner, pipe)
            && pipe == Pipe::Output
        {
            look.answer.extend_from_slice(&bytes);
        }
    }

    /// It has said all, or nothing is to be expected of it.
    pub(super) fn looked(&mut self, number: u64, status: Status) {
        let Some(id) = self.looking(number) else { return };
        let Some(mut look) = self.engine(id).look.take() else { return };
        while let Heard::Bytes(bytes) = look.connection.read(&mut self.inner, Pipe::Output) {
            look.answer.extend_from_slice(&bytes);
        }
        look.connection.close(&mut self.inner);
        self.inner.perform(Effect::Terminate(look.names.scope()));
        let lines = look.answer.lines().filter_map(|line| line.to_str().ok());
        let jobs: Vec<_> = lines.filter_map(|line| look.queue.parse(line)).collect();
        let has_answered = status == Status::Exited(0);
        let waiting = jobs.iter().filter(|job| job.node.is_none()).map(|job| job.job);
        let listed: Option<BTreeSet<_>> = has_answered.then(|| waiting.collect());
        self.expect_word(id, &jobs);
        let now = self.inner.now();
        for number in self.engine(id).inquiry.answered(now, listed.as_ref()) {
            self.give_back(number, Blame::Engine, "it has forgotten job");
        }
        let stale = listed.and_then(|listed| self.stale(id, &listed));
        if let Some(number) = stale {
            self.give_back(number, Blame::Stale, "machines needn't be avoided any more by job");
        }
    }

    /// Whoever has a node is to say that it is there.
    fn expect_word(&mut self, id: EngineId, jobs: &[QueueEntry]) {
        let (now, sent) = (self.inner.now(), self.sent_along());
        let nodes = jobs.iter().filter_map(|job| Some((job.name, job.node?)));
        let nodes: BTreeMap<_, _> = nodes.collect();
        let mark = self.inner.mark();
        let waiting = |it: &&mut Away| it.errand.engine == id && it.may_wait();
        for it in self.away.values_mut().filter(waiting) {
            if let Some(node) = nodes.get(it.names.job(mark).as_str()) {
                it.sent_to = Some((*node).to_owned());
                it.head.called(now, sent);
            }
        }
    }

    /// One that waits although some machine needn't be avoided any more that the engine was told to. One at a
    /// time: others may be told by what becomes of it that the machine is no better.
    fn stale(&self, id: EngineId, listed: &BTreeSet<&str>) -> Option<u64> {
        let now = self.inner.now();
        let waits = |it: &Away| it.waits_as().is_some_and(|job| listed.contains(job.as_str()));
        let is_stale =
            |it: &&Away| it.errand.engine == id && it.errand.avoid_until <= now && waits(it);
        self.away.values().find(is_stale).map(Away::number)
    }

    /// The machine is to send one again that waits, unless its turn has come meanwhile.
    fn give_back(&mut self, number: u64, blame: Blame, why: &str) {
        let Some(it) = self.away.get_mut(&number) else { return };
        let Some(job) = it.waits_as() else { return };
        it.reason = Some(Reason { blame, node: None, why: format!("{why} {job}") });
        it.head.closed("", blame);
        self.go_on(number);
    }

    /// Gives up all polls.
    pub(super) fn end_looks(&mut self) {
        for look in self.engines.values_mut().filter_map(|state| state.look.as_mut()) {
            look.end(&mut self.inner);
        }
    }

    /// True while a poll runs.
    pub(super) fn is_looking(&self) -> bool {
        self.engines.values().any(|state| state.look.is_some())
    }
}

impl Look {
    /// Kills the command of a poll that nobody waits for.
    fn end(&mut self, driver: &mut ProcessDriver) {
        self.until = Time::NEVER;
        let scope = self.names.scope();
        driver.perform(Effect::Terminate(scope));
        driver.perform(Effect::Kill { scope, strong: true });
    }
}

impl Away {
    /// Whether it may have to wait where the engine can be asked for it.
    fn may_wait(&self) -> bool {
        self.errand.is_listed
            && !self.engine_ended
            && !self.head.is_over()
            && !self.head.has_begun()
    }

    /// The job in the queue, if what has brought it there waits for its turn.
    fn waits_as(&self) -> Option<String> {
        let is_there = self.head.node().is_some();
        let said = if is_there || !self.may_wait() { return None } else { self.head.noise() };
        self.errand.implementation.queue()?.pending_job(&said).map(ToOwned::to_owned)
    }
}
