//! Reactor: descriptors to wait for, jobs of workers, and events for the machine.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use super::command::{JobRecipient, JobResult};
use crate::events::{Poller, Token};
use crate::fds::Readers;
use crate::paths::FdError;
use crate::stream::Ended;
use crate::workers::{Control, JobHandle, JobId, WorkerPool};
use ftsh_machine::effect::{OperationId, ProcessId};
use ftsh_machine::event::{Event, Refusal, Reply, SpawnError};

/// The part that all other parts of the driver use: they poll descriptors, submit jobs and report
/// events.
pub(crate) struct Reactor {
    poller: Poller,
    /// Time of the last poll.
    polled: Instant,
    /// Events that the machine has not received yet.
    ready: VecDeque<Event>,
    pool: WorkerPool<JobResult>,
    /// Results taken from the pool, but not handled.
    answers: VecDeque<(JobId, JobResult)>,
    /// Jobs for operations of the machine, for their cancellation.
    operations: HashMap<OperationId, JobHandle>,
    /// Recipients of results.
    waiting: HashMap<JobId, JobRecipient>,
    /// Number of jobs that start a command.
    starting: usize,
}

impl Reactor {
    /// Creates a reactor that reports results of jobs by a token. Fails if the system has no
    /// descriptors left.
    pub(crate) fn new(mut poller: Poller, answers: Token) -> io::Result<Self> {
        let pool = WorkerPool::new()?;
        poller.add(pool.readiness(), answers)?;
        Ok(Self {
            poller,
            polled: Instant::now(),
            ready: VecDeque::new(),
            pool,
            answers: VecDeque::new(),
            operations: HashMap::new(),
            waiting: HashMap::new(),
            starting: 0,
        })
    }

    pub(crate) fn poller(&mut self) -> &mut Poller {
        &mut self.poller
    }

    /// Waits until a descriptor is ready, at most for `timeout`; without one, forever.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> Vec<Token> {
        let tokens = self.poller.wait(timeout);
        self.polled = Instant::now();
        tokens
    }

    /// Makes the next turn of the loop poll again only after the usual interval.
    pub(crate) fn postpone_poll(&mut self, now: Instant) {
        self.polled = now;
    }

    /// Returns the time since the last poll.
    pub(crate) fn since_poll(&self) -> Duration {
        self.polled.elapsed()
    }

    /// Adds an event for the machine.
    pub(crate) fn emit(&mut self, event: Event) {
        self.ready.push_back(event);
    }

    /// Returns and removes the oldest event.
    pub(crate) fn take_event(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// Returns the events that the machine has not received yet.
    pub(crate) fn events(&self) -> &VecDeque<Event> {
        &self.ready
    }

    /// Answers an operation of the machine.
    pub(crate) fn answer(&mut self, operation: OperationId, result: Result<Reply, FdError>) {
        let result = result.map_err(Refusal::from);
        self.emit(Event::Done { operation, result });
    }

    /// Reports a command that could not be started.
    pub(crate) fn refuse(&mut self, process: ProcessId, error: SpawnError) {
        self.emit(Event::SpawnFailed { process, error });
    }

    /// Reports the end of a builtin.
    pub(crate) fn report_end(&mut self, process: ProcessId, ended: Ended, readers: &Readers) {
        self.emit(match ended {
            Ok((status, line)) => {
                let reader_gone = readers.reader_gone(status);
                Event::Exited { process, status, line, reader_gone }
            }
            Err(error) => Event::SpawnFailed { process, error },
        });
    }

    /// Submits a job for a recipient. Fails only if no worker exists and none can be started.
    pub(crate) fn submit(
        &mut self,
        recipient: JobRecipient,
        job: impl FnOnce(&Control) -> JobResult + Send + 'static,
    ) -> io::Result<JobHandle> {
        let handle = self.pool.submit(job)?;
        self.waiting.insert(handle.ticket, recipient);
        Ok(handle)
    }

    /// Submits a job whose success nothing depends on.
    pub(crate) fn submit_unattended(
        &mut self,
        job: impl FnOnce(&Control) -> JobResult + Send + 'static,
    ) {
        let _ = self.pool.submit(job);
    }

    /// Answers an operation by a worker's job.
    pub(crate) fn operate(
        &mut self,
        operation: OperationId,
        job: impl FnOnce(&Control) -> JobResult + Send + 'static,
    ) {
        match self.submit(JobRecipient::Operation(operation), job) {
            Ok(handle) => drop(self.operations.insert(operation, handle)),
            Err(error) => self.answer(operation, Err(FdError::Worker(error))),
        }
    }

    /// Cancels the job of an operation. Returns false if there is none.
    pub(crate) fn cancel_operation(&mut self, operation: OperationId) -> bool {
        let handle = self.operations.remove(&operation);
        handle.is_some_and(|handle| {
            self.discard(&handle);
            true
        })
    }

    /// Returns the number of jobs for operations.
    pub(crate) fn operation_count(&self) -> usize {
        self.operations.len()
    }

    /// Cancels a job and drops its result, even if the job has begun a step that cannot be undone.
    pub(crate) fn discard(&mut self, handle: &JobHandle) {
        self.waiting.remove(&handle.ticket);
        self.pool.cancel(handle);
    }

    /// Cancels a job. Returns false if the job has begun a step that cannot be undone; then its
    /// result follows.
    pub(crate) fn cancel(&mut self, handle: &JobHandle) -> bool {
        let is_cancelled = self.pool.cancel(handle);
        if is_cancelled {
            self.waiting.remove(&handle.ticket);
        }
        is_cancelled
    }

    /// Counts a job that starts a command.
    pub(crate) fn begin_start(&mut self) {
        self.starting += 1;
    }

    /// Counts the end of a job that starts a command.
    pub(crate) fn end_start(&mut self) {
        self.starting -= 1;
    }

    /// True if a job may have started a command that the loop does not know yet.
    pub(crate) fn is_starting(&self) -> bool {
        self.starting > 0
    }

    /// Resets the token of results. Must be called before `take_answer`.
    pub(crate) fn clear_readiness(&mut self) {
        self.pool.clear_readiness();
    }

    /// Returns the next result of a job, with its recipient if it has one.
    pub(crate) fn take_answer(&mut self) -> Option<(Option<JobRecipient>, JobResult)> {
        let (id, answer) = self.answers.pop_front().or_else(|| self.pool.answer())?;
        let recipient = self.waiting.remove(&id);
        if let Some(JobRecipient::Operation(operation)) = recipient {
            self.operations.remove(&operation);
        }
        Some((recipient, answer))
    }

    /// Returns the processes that jobs have started, of those whose results are not handled yet.
    pub(crate) fn started_pids(&mut self) -> Vec<i32> {
        let (pool, answers) = (&mut self.pool, &mut self.answers);
        answers.extend(std::iter::from_fn(|| pool.answer()));
        answers.iter().filter_map(|(_, answer)| answer.pid()).collect()
    }

    /// Returns the time of the next `tick`, if one is needed.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.pool.next_due()
    }

    /// Repeats interrupts of canceled jobs. Returns descriptions of the calls that hang in the
    /// kernel, each once.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<String> {
        self.pool.tick(now)
    }

    /// True if a canceled job has not ended, and is not known to hang.
    pub(crate) fn is_interrupting(&self) -> bool {
        self.pool.is_interrupting()
    }
}
