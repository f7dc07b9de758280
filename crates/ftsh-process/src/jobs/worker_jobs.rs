//! Jobs of workers.

use std::collections::{HashMap, VecDeque};
use std::io;

use super::super::os::workers::{JobHandle, JobId, WorkerPool};
use super::{JobRecipient, JobResult};
use ftsh_machine::effect::OperationId;

/// Running jobs, and their results not yet handled.
pub(crate) struct WorkerJobs {
    /// Worker threads.
    pub pool: WorkerPool<JobResult>,
    /// Results taken from the pool, but not handled.
    pub answers: VecDeque<(JobId, JobResult)>,
    /// Jobs for operations of the machine, for their cancellation.
    pub operations: HashMap<OperationId, JobHandle>,
    /// Recipients of results.
    pub waiting: HashMap<JobId, JobRecipient>,
    /// Number of jobs that start a command.
    pub starting: usize,
}

impl WorkerJobs {
    /// Creates the pool. Fails if the system has no descriptors left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            pool: WorkerPool::new()?,
            answers: VecDeque::new(),
            operations: HashMap::new(),
            waiting: HashMap::new(),
            starting: 0,
        })
    }
}
