//! State of a branch that runs on another machine.

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

/// Most remote branches at once, unless the `forall` gives a number. Each takes several processes here.
pub const MAX_REMOTE_BRANCHES: u64 = 200;

/// Engine of the branches of a `forall`, and limits.
#[derive(Debug)]
pub struct Elsewhere {
    /// Engine with its argument.
    pub on: On<BString>,
    /// The instruction that sends a branch.
    pub at: Address,
    /// Most branches that are sent and have not begun.
    pub most_pending: usize,
    /// Number of new attempts of a lost branch.
    pub retry_lost: u64,
}

/// Frame of a remote branch, which may be sent several times.
#[derive(Debug)]
pub struct RemoteFrame {
    /// Engine of the branch, and limits.
    pub elsewhere: Arc<Elsewhere>,
    /// Number of losses.
    pub lost: u64,
    /// Number of machines that refused the branch.
    pub refusals: u32,
    /// Pauses before the next submission after more than one refusal.
    pub pauses: Backoff,
    /// Machine that the branch runs on, and the time of its beginning.
    pub node: Option<(String, Time)>,
    /// Machines where the branch failed to begin or was lost.
    pub shunned: Shunned,
    /// Machines that the last submission avoided.
    pub avoided: Vec<String>,
    /// Reason why the branch does not run.
    pub failure: Option<Arc<Failure>>,
    /// Texts that failures of the branch refer to.
    pub texts: Vec<Arc<Source>>,
}

/// State of a task whose branch is remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteState {
    /// The branch waits until it may be sent.
    Waiting(Option<TimerKey>),
    /// The branch was sent.
    Sent(ProcessId),
    /// The time limit has passed on the node, and is about to pass here.
    OutOfTime,
}

impl RemoteFrame {
    /// Returns the machine that the branch runs on.
    pub fn node(&self) -> Option<&str> {
        self.node.as_ref().map(|(node, _)| node.as_str())
    }

    /// Creates the frame of a branch that has not been sent.
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
