//! What takes place wholly or not at all, as plain data: an attempt of an atomic `try`, or what is
//! written to files by a structure or a call in one.

use std::collections::VecDeque;

use crate::commands::opening::Written;
use crate::commands::table::Table;
use crate::effect::{BufferId, DraftId, OperationId, ProcessId, ReplayId, ScratchId, Sink};
use crate::unwind::leaving::Leaving;
use crate::values::value::Handle;

/// What a descriptor is written to, until it is let out or dropped.
pub type Held = (u8, Handle<BufferId>);

/// The directory of an attempt's own.
pub type Scratch = Handle<ScratchId>;

/// A transaction, begun and not yet over.
#[derive(Debug)]
pub struct Transaction {
    /// What it is of.
    pub kind: Kind,
    /// The descriptors around it.
    pub before: Table,
    /// What is written to these.
    pub held: Vec<Held>,
    /// What is written to files, in order, and by which descriptor.
    pub drafts: Vec<(u8, Handle<DraftId>)>,
    /// What was written to files by attempts inside that have succeeded, which take their places first; all
    /// that is to take its place, once it is being committed.
    pub inner: Vec<Handle<DraftId>>,
    /// What is written to variables, and by which descriptor.
    pub written: Vec<(u8, Written)>,
    /// How it is being committed, if it has come to that.
    pub commit: Option<Commit>,
}

/// What a transaction is of.
#[derive(Debug)]
pub enum Kind {
    /// An attempt of an atomic `try`.
    Attempt {
        /// What it reads.
        replay: ReplayId,
        /// Its directory.
        scratch: Scratch,
    },
    /// An attempt that is not atomic and whose standard error is kept while it is written on.
    Tee {
        /// What writes it on.
        relay: OperationId,
        /// The end of it.
        buffer: Handle<BufferId>,
    },
    /// The `catch` of an atomic `try`.
    Catch,
    /// A structure or a call in an atomic attempt, all of whose output to files is there when it has
    /// succeeded.
    Redirected {
        /// Whether it ends with the call inside.
        around_call: bool,
    },
}

/// A transaction that is being committed.
#[derive(Debug)]
pub struct Commit {
    /// What comes after it.
    pub then: Leaving,
    /// What is still to be let out.
    pub streams: VecDeque<Held>,
}

/// Descriptors on their way that a transaction begins with.
#[derive(Debug)]
pub struct Beginning {
    /// The request.
    pub operation: OperationId,
    /// The table that is made.
    pub io: Table,
    /// What begins then.
    pub transaction: Box<Transaction>,
}

/// What a commit waits for.
#[derive(Debug)]
pub enum Committing {
    /// Files take their places.
    Files(OperationId),
    /// Which descriptors were written to.
    Filled(OperationId),
    /// A relay writes what there is.
    Relay(OperationId),
    /// Something is let out.
    LettingOut(ProcessId, Held),
}

/// An attempt failed; what it has written to these is told of it before it is dropped.
#[derive(Debug)]
pub struct Dropped {
    /// What was held for streams and variables.
    pub held: Vec<Held>,
    /// What was to go to files.
    pub drafts: Vec<(u8, Handle<DraftId>)>,
    /// False if it was written on as well.
    pub is_lost: bool,
}

impl Transaction {
    /// A transaction that writes nothing of its own.
    pub fn bare(kind: Kind, before: Table) -> Self {
        let (held, drafts, inner, written) = Default::default();
        Self { kind, before, held, drafts, inner, written, commit: None }
    }

    /// What is written to these files is there when what is redirected has succeeded.
    pub fn redirected(before: Table, around_call: bool, drafts: Vec<Handle<DraftId>>) -> Self {
        Self { inner: drafts, ..Self::bare(Kind::Redirected { around_call }, before) }
    }

    /// Whether it ends with the call inside.
    pub fn is_around_call(&self) -> bool {
        matches!(self.kind, Kind::Redirected { around_call: true })
    }
}

impl Dropped {
    /// What is told of: what went to standard error, and then to standard output; of each first what was
    /// held for streams and variables.
    pub fn told(&self) -> Vec<Sink> {
        let held = self.held.iter().map(|(descriptor, it)| (*descriptor, Sink::Buffer(it.id())));
        let drafts = self.drafts.iter().map(|(descriptor, it)| (*descriptor, Sink::Draft(it.id())));
        let all: Vec<(u8, Sink)> = held.chain(drafts).collect();
        let of = |wanted: u8| all.iter().filter(move |(descriptor, _)| *descriptor == wanted);
        [2, 1].into_iter().flat_map(of).map(|(_, sink)| *sink).collect()
    }
}
