//! What workers are doing, and for whom.

use std::collections::{HashMap, VecDeque};
use std::io;

use super::super::os::workers::{Handle, Ticket, WorkerPool};
use super::{Answer, Waiting};
use ftsh_machine::effect::OperationId;

/// Jobs of workers that aren't over, or whose answers nobody has dealt with.
pub struct Work {
    /// Who does them.
    pub pool: WorkerPool<Answer>,
    /// Answers that were taken already, but not dealt with.
    pub answers: VecDeque<(Ticket, Answer)>,
    /// What is done for an operation of the machine, so that it can be given up.
    pub operations: HashMap<OperationId, Handle>,
    /// Who waits for an answer.
    pub waiting: HashMap<Ticket, Waiting>,
    /// How many of them are starting a command.
    pub starting: usize,
}

impl Work {
    /// Nothing to do yet. Fails if the system has no descriptors left.
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
