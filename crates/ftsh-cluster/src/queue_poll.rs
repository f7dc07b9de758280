//! Polls of the queues of engines.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bstr::{BString, ByteSlice};

use super::ClusterDriver;
use super::connection::{Connection, ConnectionPipe, Received};
use super::engines::{BatchQueue, JobList, QueueEntry, StartRefusal};
use super::remote_branch::{Dispatched, RemoteBranch, ReservedIds};
use ftsh_machine::Time;
use ftsh_machine::driver::Driver;
use ftsh_machine::effect::Effect;
use ftsh_machine::event::{Blame, CommandStatus};
use ftsh_process::ProcessDriver;
use ftsh_syntax::engine::EngineId;

/// Time limit of the command. Slurm's command gives up after 10 to 100 seconds, as configured.
const LIST_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum length of a list in bytes.
const MAX_LIST: usize = 16 << 20;

/// Running poll.
#[derive(Debug)]
pub(super) struct QueuePoll {
    ids: ReservedIds,
    queue: &'static dyn BatchQueue,
    connection: Connection,
    answer: Vec<u8>,
    /// Time at which the driver gives up the poll.
    pub until: Time,
}

impl ClusterDriver {
    /// Begins the polls that are due, and gives up polls that take too long.
    pub(super) fn poll_queues(&mut self) {
        let now = self.inner.now();
        let due = self.engines.iter().filter(|(_, state)| state.next_poll() <= now);
        for id in due.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.poll_queue(id);
        }
    }

    fn poll_queue(&mut self, id: EngineId) {
        let now = self.inner.now();
        let Self { engines, inner, branches, .. } = self;
        let Some(state) = engines.get_mut(&id) else { return };
        if let Some(poll) = state.poll.as_mut().filter(|poll| poll.until <= now) {
            poll.end(inner);
        }
        if state.schedule.due() > now {
            return;
        }
        let has_list = |words: &BString| state.has_list.get(words) != Some(&false);
        let is_listed = |it: &RemoteBranch| it.may_wait() && it.words().is_none_or(has_list);
        let waiting = || branches.values().filter(|it| it.dispatched.engine == id && is_listed(it));
        // One call of a carrier has the words of one clause. The clauses take turns.
        let last = state.listed_words.as_ref();
        let next = waiting().map(RemoteBranch::words).map(|it| (it <= last, it)).min();
        let words = next.and_then(|(_, words)| words).cloned();
        let waiting = || waiting().filter(|it| it.words() == words.as_ref());
        let sought =
            waiting().filter(|it| it.carried.as_ref().is_none_or(|it| it.listed_from <= now));
        let sought = sought.filter_map(|it| Some((it.number(), it.pending_job()?))).collect();
        let jobs: Vec<_> = waiting().map(|it| it.job.clone()).collect();
        let dispatched = waiting().map(|it| it.dispatched).next();
        let is_pending = |it| branches.get(&it).and_then(RemoteBranch::pending_job).is_some();
        state.schedule.begin(sought, is_pending);
        state.listed_words.clone_from(&words);
        if let Some(dispatched) = dispatched
            && self.begin_poll(&dispatched, &jobs, &words.unwrap_or_default()).is_err()
        {
            self.engine(id).schedule.answered(now, None);
        }
    }

    fn begin_poll(
        &mut self,
        dispatched: &Dispatched,
        jobs: &[String],
        words: &BString,
    ) -> io::Result<()> {
        let engine = dispatched.engine;
        let Some(queue) = self.engine(engine).engine.queue() else { return Ok(()) };
        let environment = self.program()?.environment;
        let wanted = environment.iter().filter(|(name, _)| !queue.is_filter(name)).cloned();
        let environment = Arc::new(wanted.collect());
        let (words, variables) = queue.list(&JobList { engine, jobs, words: words.as_bstr() });
        let (ids, connection) = self.start_apart(dispatched.task, words, environment, variables)?;
        let until = self.inner.now() + LIST_TIMEOUT;
        self.engine(dispatched.engine).poll =
            Some(QueuePoll { ids, queue, connection, answer: Vec::new(), until });
        Ok(())
    }

    /// Reads a piece of the list.
    pub(super) fn on_list(&mut self, id: EngineId, pipe: ConnectionPipe) {
        let state = self.engines.get_mut(&id);
        let Some(poll) = state.and_then(|state| state.poll.as_mut()) else { return };
        if let Received::Bytes(bytes) = poll.connection.read(&mut self.inner, pipe)
            && pipe == ConnectionPipe::Output
        {
            poll.answer.extend_from_slice(&bytes);
            if poll.answer.len() > MAX_LIST {
                poll.end(&mut self.inner);
            }
        }
    }

    /// Handles the end of the command that lists the jobs.
    pub(super) fn poll_ended(&mut self, number: u64, status: CommandStatus) {
        let Some(id) = self.engine_with_poll(number) else { return };
        let Some(mut poll) = self.engine(id).poll.take() else { return };
        // One read takes all that the command has left in the pipe.
        if let Received::Bytes(bytes) =
            poll.connection.read(&mut self.inner, ConnectionPipe::Output)
        {
            poll.answer.extend_from_slice(&bytes);
        }
        poll.connection.close(&mut self.inner);
        self.inner.perform(Effect::Terminate(poll.ids.scope()));
        let lines = poll.answer.lines().filter_map(|line| line.to_str().ok());
        let jobs: Vec<_> = lines.filter_map(|line| poll.queue.parse(line)).collect();
        let has_answered = status == CommandStatus::Exited(0);
        let waiting = jobs.iter().filter(|job| job.is_pending).map(|job| job.job);
        let listed: Option<BTreeSet<_>> = has_answered.then(|| waiting.collect());
        let of_queue = self.engine(id);
        if let Some(words) = of_queue.listed_words.clone() {
            of_queue.has_list.entry(words).or_insert(has_answered);
        }
        self.expect_hello(id, &jobs);
        let now = self.inner.now();
        for number in self.engine(id).schedule.answered(now, listed.as_ref()) {
            self.return_branch(number, Blame::Engine, "it has forgotten job");
        }
        let stale = listed.and_then(|listed| self.stale(id, &listed));
        if let Some(number) = stale {
            self.return_branch(number, Blame::Stale, "machines needn't be avoided any more by job");
        }
    }

    /// Records which jobs the list shows. Sets a time limit for the handshake of each job that has a
    /// node.
    fn expect_hello(&mut self, id: EngineId, jobs: &[QueueEntry]) {
        let (now, sent) = (self.inner.now(), self.sent_along());
        let nodes: BTreeMap<_, _> = jobs.iter().map(|job| (job.name, job.node)).collect();
        let waiting = |it: &&mut RemoteBranch| it.dispatched.engine == id && it.may_wait();
        for it in self.branches.values_mut().filter(waiting) {
            let Some(node) = nodes.get(it.job.as_str()) else { continue };
            if let Some(carried) = &mut it.carried {
                carried.listed_from = now;
            }
            if let Some(node) = node {
                it.sent_to = Some((*node).to_owned());
                it.head.expect_hello(now, sent);
            }
        }
    }

    /// Returns a waiting branch whose submission avoids a node that is now usable again. Only a
    /// single branch is submitted again at a time, as the node may still fail.
    fn stale(&self, id: EngineId, listed: &BTreeSet<&str>) -> Option<u64> {
        let now = self.inner.now();
        let waits =
            |it: &RemoteBranch| it.pending_job().is_some_and(|job| listed.contains(job.as_str()));
        let is_stale = |it: &&RemoteBranch| {
            it.dispatched.engine == id && it.dispatched.avoid_until <= now && waits(it)
        };
        self.branches.values().find(is_stale).map(RemoteBranch::number)
    }

    /// Returns a waiting branch to the machine, which submits the branch again, unless the job has
    /// started.
    fn return_branch(&mut self, number: u64, blame: Blame, why: &str) {
        let Some(it) = self.branches.get_mut(&number) else { return };
        let Some(job) = it.pending_job() else { return };
        it.reason = Some(StartRefusal { blame, node: None, why: format!("{why} {job}") });
        it.head.closed("", blame);
        self.process_outputs(number);
    }

    /// Gives up all polls.
    pub(super) fn end_polls(&mut self) {
        for poll in self.engines.values_mut().filter_map(|state| state.poll.as_mut()) {
            poll.end(&mut self.inner);
        }
    }

    /// True while a poll runs.
    pub(super) fn is_polling(&self) -> bool {
        self.engines.values().any(|state| state.poll.is_some())
    }
}

impl QueuePoll {
    /// Returns the number of the poll.
    pub(crate) fn number(&self) -> u64 {
        self.ids.number()
    }

    /// Kills the command of an abandoned poll.
    fn end(&mut self, driver: &mut ProcessDriver) {
        self.until = Time::NEVER;
        let scope = self.ids.scope();
        driver.perform(Effect::Terminate(scope));
        driver.perform(Effect::Kill { scope, strong: true });
    }
}

impl RemoteBranch {
    /// True if the branch may wait in a queue whose list shows the job.
    fn may_wait(&self) -> bool {
        self.dispatched.is_listed
            && !self.engine_ended
            && !self.head.is_over()
            && !self.head.has_begun()
    }

    /// Returns the words of the clause, if a carrier has the job.
    fn words(&self) -> Option<&BString> {
        Some(&self.carried.as_ref()?.job.as_ref()?.job.words)
    }

    /// Returns the job in the queue, if the job waits for its turn.
    fn pending_job(&self) -> Option<String> {
        let is_there = self.head.node().is_some();
        if is_there || !self.may_wait() {
            return None;
        }
        if let Some(carried) = &self.carried {
            return carried.is_queued.then(|| self.job.clone());
        }
        let messages = self.head.preamble();
        self.dispatched.implementation.queue()?.pending_job(&messages).map(ToOwned::to_owned)
    }
}
