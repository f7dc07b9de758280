//! A look at an engine's list of what waits there and runs, by a command of the engine's.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use bstr::ByteSlice;

use super::ClusterDriver;
use super::away::{Away, Errand, Names};
use super::connection::{Connection, Heard, Pipe};
use super::engine::{self, Reason};
use super::listed::Listed;
use ftsh_machine::Time;
use ftsh_machine::driver::Driver;
use ftsh_machine::effect::{Action, Effect};
use ftsh_machine::event::{Blame, Status};
use ftsh_syntax::engine::EngineId;

/// How long the command has. Slurm's gives up by itself after 10 to 100 seconds, as it is configured.
const PATIENCE: Duration = Duration::from_secs(120);

/// A look that is being taken.
#[derive(Debug)]
pub(super) struct Look {
    names: Names,
    engine: EngineId,
    connection: Connection,
    answer: Vec<u8>,
    /// When it is given up.
    until: Time,
}

impl ClusterDriver {
    /// When something is to be done about looks.
    pub(super) fn next_look(&self) -> Time {
        self.look.as_ref().map_or(Time::NEVER, |look| look.until).min(self.inquiry.due())
    }

    /// Whether something of a number is the look's.
    pub(super) fn is_look(&self, number: u64) -> bool {
        self.look.as_ref().is_some_and(|look| look.names.number() == number)
    }

    /// Looks, if it is time, or gives it up.
    pub(super) fn take_look(&mut self) {
        let now = self.inner.now();
        if self.look.as_ref().is_some_and(|look| look.until <= now) {
            self.end_look();
        }
        if self.inquiry.due() > now {
            return;
        }
        let waiting = || self.away.values().filter(|it| it.may_wait());
        let sought = waiting().filter_map(|it| Some((it.number(), it.waits_as()?)));
        let sought: BTreeMap<_, _> = sought.collect();
        let errand = waiting().map(|it| it.errand).next();
        if self.inquiry.begin(sought, errand.is_some())
            && let Some(errand) = errand
            && self.ask(&errand).is_err()
        {
            self.inquiry.answered(now, None);
        }
    }

    fn ask(&mut self, errand: &Errand) -> io::Result<()> {
        let environment = engine::asking(errand.engine, &self.program()?.environment);
        let names = self.new_names();
        let (mut connection, theirs) = Connection::open(&mut self.inner, names.first_key())?;
        connection.hang_up(&mut self.inner);
        self.inner.give(names.engine_io(), theirs)?;
        self.inner.open_apart(names.scope());
        let words = engine::list(errand.engine);
        let ask = Action::Program { words, environment, overrides: Vec::new() };
        self.inner.perform(names.run(errand, names.engine(), ask, names.engine_io(), Vec::new()));
        let until = self.inner.now() + PATIENCE;
        let engine = errand.engine;
        self.look = Some(Look { names, engine, connection, answer: Vec::new(), until });
        Ok(())
    }

    /// The engine says something.
    pub(super) fn hear_list(&mut self, pipe: Pipe) {
        let Some(look) = &mut self.look else { return };
        if let Heard::Bytes(bytes) = look.connection.read(&mut self.inner, pipe)
            && pipe == Pipe::Output
        {
            look.answer.extend_from_slice(&bytes);
        }
    }

    /// It has said all, or nothing is to be expected of it.
    pub(super) fn looked(&mut self, status: Status) {
        let Some(mut look) = self.look.take() else { return };
        while let Heard::Bytes(bytes) = look.connection.read(&mut self.inner, Pipe::Output) {
            look.answer.extend_from_slice(&bytes);
        }
        look.connection.close(&mut self.inner);
        self.inner.perform(Effect::Terminate(look.names.scope()));
        let lines = look.answer.lines().filter_map(|line| line.to_str().ok());
        let jobs: Vec<_> = lines.filter_map(|line| engine::listed(look.engine, line)).collect();
        let has_answered = status == Status::Exited(0);
        let waiting = jobs.iter().filter(|job| job.node.is_none()).map(|job| job.job);
        let listed: Option<BTreeSet<_>> = has_answered.then(|| waiting.collect());
        self.expect_word(&jobs);
        for number in self.inquiry.answered(self.inner.now(), listed.as_ref()) {
            self.give_back(number, Blame::Engine, "it has forgotten job");
        }
        let stale = listed.and_then(|listed| self.stale(&listed));
        if let Some(number) = stale {
            self.give_back(number, Blame::Stale, "machines needn't be avoided any more by job");
        }
    }

    /// Whoever has a node is to say that it is there.
    fn expect_word(&mut self, jobs: &[Listed]) {
        let (now, sent) = (self.inner.now(), self.sent_along());
        let nodes = jobs.iter().filter_map(|job| Some((job.name, job.node?)));
        let nodes: BTreeMap<_, _> = nodes.collect();
        let mark = self.inner.mark();
        for it in self.away.values_mut().filter(|it| it.may_wait()) {
            if let Some(node) = nodes.get(it.names.job(mark).as_str()) {
                it.sent_to = Some((*node).to_owned());
                it.head.called(now, sent);
            }
        }
    }

    /// One that waits although some machine needn't be avoided any more that the engine was told to. One at a
    /// time: others may be told by what becomes of it that the machine is no better.
    fn stale(&self, listed: &BTreeSet<&str>) -> Option<u64> {
        let now = self.inner.now();
        let waits = |it: &Away| it.waits_as().is_some_and(|job| listed.contains(job.as_str()));
        let is_stale = |it: &&Away| it.errand.avoid_until <= now && waits(it);
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

    /// Waits no longer for an answer.
    pub(super) fn end_look(&mut self) {
        if let Some(look) = &mut self.look {
            look.until = Time::NEVER;
            let scope = look.names.scope();
            self.inner.perform(Effect::Terminate(scope));
            self.inner.perform(Effect::Kill { scope, strong: true });
        }
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
        engine::waits_as(self.errand.engine, &said).map(ToOwned::to_owned)
    }
}
