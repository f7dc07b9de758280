//! Protocol of the branches of a `forall` that run on other machines.
//!
//! A *head* is the shell that runs the script. An engine starts the same program on a *node* as
//! `ftsh --branch`, and connects the program's standard streams to the head:
//!
//! 1. The head sends [`OPENING`]. The node says nothing before, since an engine may attach to the
//!    node's output late. A node that reads another byte first is a second start of the same job:
//!    it exits with 0, so that the engine's queue forgets the job.
//! 2. The node sends [`ERRORS_MARK`] on its standard error, and [`ToHead::Hello`] on its standard
//!    output, with the program's identity and the node's name.
//! 3. The head sends [`ToNode::Branch`] on the node's standard input. If the node can run the
//!    branch, the node sends [`ToHead::Ready`] with a [`Nonce`] of its own. Otherwise the node sends
//!    [`ToHead::Refused`] and exits.
//!
//!    If the branch takes files, the head also sends a list of the files, in a frame of its own. The
//!    node answers with [`ToHead::Wants`] and the indexes of the files that the node lacks, and the
//!    head sends their contents one after the other. [`ToHead::Ready`] follows when the files are in
//!    the directory that the node has created for the branch.
//! 4. The head sends [`ToNode::Go`], with the nonce of the record, and the node's nonce. Until then
//!    nothing has begun. If the node's standard input ends before, the node exits without a message.
//!    So does a second start of the job by an engine that repeats the input: *go* repeats the nonce
//!    of the first start.
//! 5. The branch begins. From then on, the node's standard output and standard error carry the
//!    output of the branch. Last on standard error is a [`BranchRecord`] with the nonce and the result,
//!    and last on standard output a [line](NodeLine::OutputEnded), which shows that all of the output
//!    has arrived. The node writes both when no process of the branch is left. If a branch that gives
//!    files has succeeded, the list of the files and all contents follow that line. The record is
//!    written after them.
//!
//! Then the node exits with 0, for any result of the branch.
//!
//! Only a complete record of a success, with all of the output, is a success. Otherwise the branch is
//! *lost*, for any exit status of the engine: the result is unknown. A SIGTERM to the node ends the branch as the
//! signal ends a script, and the record reports the signal.
//!
//! The head moves the given files to their places after a complete record of a success. Files that did
//! not arrive whole are a lost branch. The owners of the connection exchange lists and contents; the
//! conversation handles their progress ([`TransferProgress`]).
//!
//! Messages before step 5 are [frames](Frames): a mark, a length, a checksum and a content. The
//! first number of the content is the kind of the message. The head skips text before a mark, as a
//! login may print a greeting.
//!
//! # The lease
//!
//! No attempt may begin while the last attempt still runs on a node, even on an unreachable node.
//! Each branch therefore has a *lease*, which the head extends. Head and node both know the end of
//! the lease.
//!
//! - The node's standard input stays open. The end of this input means the end of the head, and
//!   ends the branch as SIGTERM would.
//! - The node sends a [`NodeLine::Request`] each third of the lease, a line on standard error, as
//!   the record is. The head answers with [`ToNode::Lease`], which
//!   repeats the time of the request on the node's clock. The new lease begins at the time of the
//!   request, and the first lease at *ready*.
//! - A node that receives *go* after the end of the lease writes a [line](NodeLine::TooLate): the
//!   branch has not begun.
//! - At the end of the lease, the node ends the branch as SIGTERM would. After the kill timeout,
//!   the node sends SIGKILL, even if cleanup or output is incomplete. The node's clock also counts
//!   while the machine sleeps.
//! - The head counts from its *grant*, which is later than the request. A late or lost message can
//!   therefore only shorten the lease.
//! - The branch counts as gone when lease and kill timeout have passed since the last grant, with
//!   some time added for clock drift ([`Head`]).
//! - The head ends a branch by [`ToNode::End`], as a signal ends a script. A second message acts as
//!   a second signal.
//!
//! Limitations: commands survive if all processes of a node's shell are killed while the node is
//! cut off. After a stopped node or a sleeping machine continues, commands run until the shell has
//! ended the commands.

mod environment;
pub mod family;
mod files;
mod frame;
mod head;
mod identity;
mod lease;
mod line;
mod listen;
mod nonce;
pub mod orphans;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};

pub use self::environment::merge;
pub use self::files::TransferProgress;
pub use self::frame::{BadFrame, Frames, MessageTooLong, frame};
pub use self::head::{Head, HeadOutput, Stream};
pub use self::identity::Identity;
pub use self::lease::Lease;
pub use self::line::{BranchRecord, NodeLine};
pub use self::listen::{Listener, Piece};
pub use self::nonce::Nonce;
use ftsh_machine::packed::PackedBranch;

/// First byte from a head to a node.
pub const OPENING: u8 = b'\n';
/// First bytes from a node on standard error. On standard output they tell that the engine joins
/// the streams.
pub const ERRORS_MARK: &str = "\x1eerrors\n";

/// Message from a head to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToNode {
    /// Branch to run.
    Branch(Box<Branch>),
    /// Start of the branch.
    Go(Go),
    /// Extension of the lease. The duration is the time of the request, on the node's clock.
    Lease(Duration),
    /// End of the branch, as by the given signal.
    End(i32),
}

/// Message from a node to a head before the branch begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToHead {
    /// Greeting of the node.
    Hello(Hello),
    /// The node can run the branch. The nonce is new for each start of the program.
    Ready(Nonce),
    /// The node cannot run the branch, for the given reason.
    Refused(String),
    /// The node needs the contents of the files with these indexes, in this order.
    Wants(Vec<u32>),
}

/// Branch for a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    /// Program that packed the branch, and the only program that can run the branch.
    pub identity: Identity,
    /// Packed branch.
    pub packed: PackedBranch,
    /// Variables that pass the head's options to nested shells.
    pub child_env: Vec<(String, BString)>,
    /// Store of the run's files on nodes.
    pub store: StoreId,
}

/// Store of a run's files on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreId {
    /// Unique name.
    pub name: String,
    /// Secret key of the digests.
    pub key: [u8; 16],
    /// Time for which the store waits for another branch.
    pub linger: Duration,
}

/// Greeting of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Program of the node.
    pub identity: Identity,
    /// Name of the node, as the engine names the node.
    pub node: String,
}

/// Start of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Go {
    /// Nonce of the record. No command of the branch can read the nonce.
    pub nonce: Nonce,
    /// Nonce of the start that was ready, and the only start that may begin.
    pub start: Nonce,
    /// Time since the branch was packed. Limits around the branch continue meanwhile.
    pub waited: Duration,
    /// Length of the lease.
    pub lease: Duration,
}
