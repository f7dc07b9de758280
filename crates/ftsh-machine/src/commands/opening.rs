//! Redirections on their way: expanded, asked for, not there yet.

use std::collections::VecDeque;

use crate::commands::table::Table;
use crate::effect::{BufferId, Directory, DraftId, FdChange, FdSource, OperationId, Umask};
use crate::values::value::{Handle, Value};
use crate::values::variables::{Kept, Variables};
use ftsh_syntax::ast::{Mode, Name};

/// Redirections whose words are expanded and that are still to be set up, from left to right.
#[derive(Debug, Default)]
pub struct Redirects {
    /// The next first.
    pub pending: VecDeque<Resolved>,
    /// What is read by those that are set up: what is appended to it must not come out of it.
    pub read: Vec<Handle<BufferId>>,
    /// The files that are written whole or not at all.
    pub drafts: Vec<Handle<DraftId>>,
    /// Variables that those have changed that are set up, as they were.
    pub before: Vec<Kept>,
}

/// Redirections whose words are expanded, and that are set up again and again.
#[derive(Debug)]
pub struct Targets {
    /// From left to right.
    pub resolved: VecDeque<Resolved>,
    /// Where relative paths start.
    pub directory: Directory,
    /// What new files are made without.
    pub umask: Umask,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The descriptor it sets.
    pub descriptor: u8,
    /// Whether descriptor 2 follows.
    pub with_errors: bool,
    /// To what.
    pub target: Resource,
}

/// What one leads to.
#[derive(Clone, Debug)]
pub enum Resource {
    /// A source that is known by now.
    FdSource(FdSource),
    /// From a variable.
    ReadVariable(Name),
    /// To a variable, emptied first or not.
    WriteVariable(Name, Mode),
}

/// Redirections that are set up in one go: what fails among them changes no variable.
#[derive(Debug)]
pub struct Phase {
    /// How.
    pub changes: Vec<FdChange>,
    /// What changes once they are set up.
    pub written: Option<Written>,
}

/// A variable that becomes what a command writes.
#[derive(Debug)]
pub struct Written {
    /// Its name.
    pub name: Name,
    /// What is written to.
    pub buffer: Handle<BufferId>,
    /// Whether something before it may take its time.
    pub waits: bool,
}

impl Redirects {
    /// Whether all are set up.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

impl Written {
    /// Changes the variable.
    pub fn commit(self, variables: &mut Variables) {
        variables.set(&self.name, Value::Buffer(self.buffer));
    }

    /// Changes the variable unless what comes before it may have been waited for: nobody waits any
    /// more, and how far that came is not known.
    pub fn abandon(self, variables: &mut Variables) {
        if !self.waits {
            self.commit(variables);
        }
    }
}

/// Descriptors on their way.
#[derive(Debug)]
pub struct Opening {
    /// The request.
    pub operation: OperationId,
    /// The table that is made.
    pub io: Table,
    /// What changes when it is there.
    pub written: Option<Written>,
}
