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
//! Then the node exits with 0, however the branch has ended.
//!
//! Success is a whole record that says so, and nothing else is. If there is none, whatever the engine
//! says, the branch is *lost*: what came of it isn't known. A SIGTERM to the node ends the branch as it
//! ends a script, and the record says so.
//!
//! Before 4, messages are [frames](Frames): a mark, a length, a checksum and what they hold, of which the
//! first number is its kind. What stands before a mark is skipped: a login may have something to say.
//!
//! # The lease
//!
//! No attempt may begin while the last one lives somewhere, also when its machine can't be reached. So a
//! branch has a *lease*: it runs as long as its head lets it, and both know when that is over.
//!
//! - The node's standard input stays open. Its end is the head's end: the branch is ended as by SIGTERM.
//! - The node [asks](Request) for more time on its standard error, in lines as its record is one, each third
//!   of the lease. The head answers with [`ToNode::Lease`], which says again when the node has asked, by the
//!   node's clock: from *then* on it lasts. The first lease lasts from *ready*.
//! - A word to begin that comes when it is over is answered by a [line](too_late) that says so: nothing has
//!   begun.
//! - When it is over the node ends the branch, as by SIGTERM, and after the kill timeout by SIGKILL, whatever
//!   is still to be cleaned up or written. Its clock also counts while the machine sleeps.
//! - The head counts from its *grant*, which is later than the request that it answers: a message that is
//!   late, or lost, can only make the lease shorter. It takes a branch for gone when lease and kill
//!   timeout have passed since the last grant, and some more as clocks differ ([`Head`]).
//! - The head ends a branch by [`ToNode::End`], as a signal ends a script; a second one is impatience.
//!
//! What this doesn't cover: a node of which all of the shell's processes are killed while it is cut off; and
//! one that is stopped as a whole, or a machine that sleeps, and goes on: its commands live on for the moment
//! that the shell takes to end them.

mod environment;
pub mod family;
mod frame;
mod head;
mod identity;
mod lease;
mod line;
mod listen;
mod nonce;
pub mod orphans;
mod record;
mod request;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};

pub use self::environment::merge;
pub use self::frame::{BadFrame, Frames, frame};
pub use self::head::{Head, Output, Stream};
pub use self::identity::Identity;
pub use self::lease::Lease;
pub use self::line::too_late;
pub use self::listen::{Listener, Piece};
pub use self::nonce::Nonce;
pub use self::record::Record;
pub use self::request::Request;
use ftsh_machine::packed::PackedBranch;

/// What a head says to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToNode {
    /// What it is to run.
    Branch(Box<Branch>),
    /// That it is to begin.
    Go(Go),
    /// That it may go on for as long as *go* has said, from the moment when it asked by its clock.
    Lease(Duration),
    /// That it is to end, as by this signal.
    End(i32),
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
    /// How long a lease lasts.
    pub lease: Duration,
}
