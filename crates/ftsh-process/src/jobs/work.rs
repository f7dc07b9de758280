//! Jobs of workers.

use std::collections::{HashMap, VecDeque};
use std::io;

use super::super::os::workers::{Handle, Ticket, WorkerPool};
use super::{Answer, Waiting};
use ftsh_machine::effect::OperationId;

/// Running jobs, and their results not yet handled.
pub struct Work {
    /// Worker threads.
    pub pool: WorkerPool<Answer>,
    /// Results taken from the pool, but not handled.
    pub answers: VecDeque<(Ticket, Answer)>,
    /// Jobs for operations of the machine, for their cancellation.
    pub operations: HashMap<OperationId, Handle>,
    /// Recipients of results.
    pub waiting: HashMap<Ticket, Waiting>,
    /// Number of jobs that start a command.
    pub starting: usize,
}

impl Work {
    /// Creates the pool. Fails if the system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            pool: WorkerPool::new()?,
            answers: VecDeque::new(),
            operations: HashMap::new(),
            waiting: HashMap::new(),
            starting: 0,
        })
    }
}
