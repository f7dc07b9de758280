//! Branches of a `forall` that another process runs, perhaps on another machine: what travels there, and
//! what comes back.
//!
//! A *head* is the shell that runs the script. It has an engine start the same program on a *node*, as
//! `ftsh --branch`, whose standard streams lead to the head:
//!
//! 1. The node says [`ToHead::Hello`] on its standard output: which program it is, and on which machine.
//! 2. The head says [`ToNode::Branch`] on the node's standard input. The node finds out whether it can run
//!    that, and says [`ToHead::Ready`], or [`ToHead::Refused`] and ends.
//! 3. The head says [`ToNode::Go`], with a [`Nonce`]. Until then nothing has begun: if the node's standard
//!    input ends before, the node ends and says nothing.
//! 4. From then on what the node writes on its standard output is what the branch prints, and so is what it
//!    writes on its standard error, up to a [`Record`] with the nonce, the last thing there: how the branch
//!    ended. It is written when nothing of the branch is left.
//!
//! Success is a whole record that says so, and nothing else is. If there is none, whatever the engine
//! says, the branch is *lost*: what came of it isn't known. A SIGTERM to the node ends the branch as it
//! ends a script, and the record says so.
//!
//! Before 4, messages are [frames](Frames): a mark, a length, a checksum and what they hold, of which the
//! first number is its kind. What stands before a mark is skipped: a login may have something to say. After
//! *go*, the node's standard input stays open for frames of more kinds, and its standard error can have them
//! as a record is had, with a letter of their own after the nonce.

mod environment;
mod frame;
mod identity;
mod listen;
mod nonce;
mod record;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};

pub use self::environment::{is_of_node, merge};
pub use self::frame::{BadFrame, Frames, frame};
pub use self::identity::Identity;
pub use self::listen::{Listener, Piece};
pub use self::nonce::Nonce;
pub use self::record::Record;
use crate::machine::packed::PackedBranch;

/// What a head says to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToNode {
    /// What it is to run.
    Branch(Box<Branch>),
    /// That it is to begin.
    Go(Go),
}

/// What a node says to its head before the branch begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToHead {
    /// That it is there.
    Hello(Hello),
    /// That it can run the branch.
    Ready,
    /// That it can't, and why.
    Refused(String),
}

/// A branch on its way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    /// The program that packed it, which must be the one that runs it.
    pub identity: Identity,
    /// What is to be run.
    pub packed: PackedBranch,
    /// Variables that tell nested shells what the head was told by options.
    pub told: Vec<(String, BString)>,
}

/// A node that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Its program.
    pub identity: Identity,
    /// The machine's name, as the engine knows it.
    pub node: String,
}

/// The word to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Go {
    /// What the record is to be known by. No command of the branch gets to know it.
    pub nonce: Nonce,
    /// How long ago it was that the branch was packed: limits around it go on meanwhile.
    pub waited: Duration,
}
