//! Jobs of carriers that are canceled: by `ftsh-carry-NAME cancel JOB…`, one call at a time for jobs
//! of one carrier and the same words.

use std::collections::BTreeMap;
use std::io;

use bstr::{BString, ByteSlice};

use super::ClusterDriver;
use super::connection::{Connection, ConnectionPipe, Received};
use super::remote_branch::{RemoteBranch, ReservedIds};
use ftsh_machine::Time;
use ftsh_machine::driver::Driver;
use ftsh_machine::effect::{Effect, TaskId};
use ftsh_machine::event::CommandStatus;
use ftsh_machine::record::Level;
use ftsh_process::{CANCEL_TIMEOUT, CARRY_WORDS, CarriedJob, NotedJob, ProcessDriver};
use ftsh_sys::os_error::plain;

/// Task of calls that no branch makes.
const SCRIPT: TaskId = TaskId(0);

/// Jobs to cancel, and the calls in progress by their numbers.
#[derive(Debug, Default)]
pub(super) struct Cancels {
    waiting: Vec<NotedJob>,
    /// Jobs whose call has failed. Their notes stay, so the supervisor repeats the call at the end.
    failed: Vec<NotedJob>,
    calls: BTreeMap<u64, CancelCall>,
}

/// A call in progress.
#[derive(Debug)]
struct CancelCall {
    ids: ReservedIds,
    connection: Connection,
    jobs: Vec<NotedJob>,
    /// Messages of the carrier.
    messages: Vec<u8>,
    /// Time at which the call is given up; never once it is.
    until: Time,
}

impl Cancels {
    /// True if a job is not yet canceled.
    pub(super) fn are_left(&self) -> bool {
        !self.waiting.is_empty() || !self.calls.is_empty()
    }

    /// True if a call has this number.
    pub(super) fn has(&self, number: u64) -> bool {
        self.calls.contains_key(&number)
    }

    /// Returns the time at which a call is given up.
    pub(super) fn next_due(&self) -> Time {
        self.calls.values().map(|call| call.until).min().unwrap_or(Time::NEVER)
    }

    /// Removes the jobs for the next call: alike, and of a carrier without a call in progress.
    fn next(&mut self) -> Option<Vec<NotedJob>> {
        let is_busy = |job: &CarriedJob| {
            self.calls.values().any(|call| call.jobs.iter().any(|it| it.job.program == job.program))
        };
        let first = self.waiting.iter().find(|it| !is_busy(&it.job))?.job.clone();
        Some(self.waiting.extract_if(.., |it| it.job.is_like(&first)).collect())
    }

    /// Reads messages of a call.
    pub(super) fn read(&mut self, driver: &mut ProcessDriver, number: u64, pipe: ConnectionPipe) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        if let Received::Bytes(bytes) = call.connection.read(driver, pipe) {
            call.messages.extend_from_slice(&bytes);
            // The log shows the last line.
            let old = call.messages.len().saturating_sub(4096);
            call.messages.drain(..old);
        }
    }

    /// Gives up the calls whose time is over.
    pub(super) fn give_up(&mut self, driver: &mut ProcessDriver) {
        let now = driver.now();
        for call in self.calls.values_mut().filter(|call| call.until <= now) {
            call.until = Time::NEVER;
            let scope = call.ids.scope();
            driver.perform(Effect::Terminate(scope));
            driver.perform(Effect::Kill { scope, strong: true });
        }
    }
}

impl ClusterDriver {
    /// Cancels the job of a branch, if a carrier has one.
    pub(super) fn cancel_job(&mut self, number: u64) {
        let job = self.branches.get_mut(&number).and_then(RemoteBranch::take_job);
        if let Some(job) = job {
            self.cancels.waiting.push(job);
            self.start_cancels();
        }
    }

    /// Cancels the jobs of shells that were killed together with their supervisors.
    pub(super) fn cancel_stale(&mut self) {
        let stale = self.inner.carried_jobs().take_stale();
        let before = self.cancels.waiting.len();
        self.cancels.waiting.extend(stale);
        if self.cancels.waiting.len() > before {
            self.start_cancels();
        }
    }

    fn start_cancels(&mut self) {
        while let Some(jobs) = self.cancels.next() {
            match self.start_cancel(&jobs) {
                Ok((ids, connection)) => {
                    let until = self.inner.now() + CANCEL_TIMEOUT;
                    let call = CancelCall { ids, connection, jobs, messages: Vec::new(), until };
                    self.cancels.calls.insert(ids.number(), call);
                }
                Err(error) => self.cancel_failed(jobs, &plain(&error)),
            }
        }
    }

    fn start_cancel(&mut self, jobs: &[NotedJob]) -> io::Result<(ReservedIds, Connection)> {
        let like = &jobs[0].job;
        let called = [like.program.clone(), "cancel".to_owned()];
        let words = called.into_iter().chain(names(jobs)).map(BString::from).collect();
        let variables = vec![(CARRY_WORDS.into(), like.words.clone())];
        let environment = self.program()?.environment;
        self.start_apart(SCRIPT, words, environment, variables)
    }

    /// Handles the end of a call.
    pub(super) fn cancel_ended(&mut self, number: u64, status: CommandStatus, why: &str) {
        for pipe in [ConnectionPipe::Output, ConnectionPipe::Errors] {
            self.cancels.read(&mut self.inner, number, pipe);
        }
        let Some(mut call) = self.cancels.calls.remove(&number) else { return };
        call.connection.close(&mut self.inner);
        self.inner.perform(Effect::Terminate(call.ids.scope()));
        if status != CommandStatus::Exited(0) {
            let messages = call.messages.to_str_lossy();
            let last = messages.lines().rfind(|line| !line.trim().is_empty());
            self.cancel_failed(call.jobs, last.unwrap_or(why).trim());
        }
        self.start_cancels();
    }

    fn cancel_failed(&mut self, jobs: Vec<NotedJob>, why: &str) {
        let Some(first) = jobs.first() else { return };
        let program = first.job.program.rsplit('/').next().unwrap_or_default();
        let note = format!("`{program} cancel {}` failed: {why}", names(&jobs).join(" "));
        self.inner.log_note(Level::FAILURES, note);
        self.cancels.failed.extend(jobs);
    }
}

fn names(jobs: &[NotedJob]) -> Vec<String> {
    jobs.iter().map(|it| it.job.name.clone()).collect()
}
