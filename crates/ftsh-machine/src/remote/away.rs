//! A branch that runs elsewhere, and where that is.

use std::sync::Arc;

use bstr::BString;

use crate::interface::id::ProcessId;
use crate::outcome::Failure;
use crate::program::code::Address;
use crate::remote::engines;
use crate::remote::nodes::Shunned;
use crate::tasks::timer::TimerKey;
use crate::time::Time;
use ftsh_syntax::Source;
use ftsh_syntax::backoff::Backoff;
use ftsh_syntax::clauses::On;

/// So many branches are away at once, unless the `forall` says how many: each is several processes here.
pub const MOST_AWAY: u64 = 200;
/// Where the branches of a `forall` run.
#[derive(Debug)]
pub struct Elsewhere {
    /// By which engine.
    pub on: On<BString>,
    /// The instruction that sends a branch.
    pub at: Address,
    /// How many may be on the way at once.
    pub most_pending: usize,
    /// How often one begins anew that was lost.
    pub retry_lost: u64,
}

/// A branch that is sent, maybe several times.
#[derive(Debug)]
pub struct AwayFrame {
    /// Where to.
    pub elsewhere: Arc<Elsewhere>,
    /// How often it was lost.
    pub lost: u64,
    /// How many machines have refused it.
    pub refusals: u32,
    /// The pauses before it is sent again after more than one.
    pub pauses: Backoff,
    /// The machine that it runs on, and since when.
    pub node: Option<(String, Time)>,
    /// Machines where it came to nothing.
    pub shunned: Shunned,
    /// Those that it was to avoid when it was sent last.
    pub avoided: Vec<String>,
    /// Why it isn't under way.
    pub failure: Option<Arc<Failure>>,
    /// The texts that its failures stand in.
    pub texts: Vec<Arc<Source>>,
}

/// A branch of which nothing is there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Away {
    /// It waits until it may be sent.
    Waiting(Option<TimerKey>),
    /// It was sent.
    Sent(ProcessId),
    /// Its limit has passed there, and is about to pass here.
    OutOfTime,
}

impl AwayFrame {
    /// The machine that it runs on, if it does.
    pub fn node(&self) -> Option<&str> {
        self.node.as_ref().map(|(node, _)| node.as_str())
    }

    /// One that is to be sent.
    pub fn new(elsewhere: Arc<Elsewhere>) -> Self {
        Self {
            elsewhere,
            lost: 0,
            refusals: 0,
            pauses: Backoff::new(engines::policy()),
            node: None,
            shunned: Shunned::default(),
            avoided: Vec::new(),
            failure: None,
            texts: Vec::new(),
        }
    }
}
