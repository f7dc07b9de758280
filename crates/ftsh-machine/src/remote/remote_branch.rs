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

/// Default maximum number of remote branches at once. Each branch occupies several local processes.
pub(crate) const MAX_REMOTE_BRANCHES: u64 = 200;

/// Engine of the branches of a `forall`, and limits.
#[derive(Debug)]
pub(crate) struct RemoteTarget {
    /// Engine with its argument.
    pub on: On<BString>,
    /// Address of the dispatching instruction.
    pub at: Address,
    /// Maximum number of dispatched branches that have not begun.
    pub most_pending: usize,
    /// Maximum number of new attempts of a lost branch.
    pub retry_lost: u64,
}

/// Frame of a remote branch, which may be sent several times.
#[derive(Debug)]
pub(crate) struct RemoteFrame {
    /// Engine of the branch, and limits.
    pub elsewhere: Arc<RemoteTarget>,
    /// Number of losses.
    pub lost: u64,
    /// Number of machines that refused the branch.
    pub refusals: u32,
    /// Delays before the next dispatch after more than one refusal.
    pub pauses: Backoff,
    /// Machine of the branch, with the beginning of the branch there.
    pub node: Option<(String, Time)>,
    /// Machines where the branch failed to begin or was lost.
    pub shunned: Shunned,
    /// Machines avoided by the last dispatch.
    pub avoided: Vec<String>,
    /// Reason why the branch is not running.
    pub failure: Option<Arc<Failure>>,
    /// Texts that failures of the branch refer to.
    pub texts: Vec<Arc<Source>>,
}

/// State of a task whose branch is remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoteState {
    /// Waiting for permission to dispatch.
    Waiting(Option<TimerKey>),
    /// Dispatched.
    Sent(ProcessId),
    /// Ended by a deadline on the node, which is about to pass in this run too.
    OutOfTime,
}

impl RemoteFrame {
    /// Returns the machine of the branch.
    pub(crate) fn node(&self) -> Option<&str> {
        self.node.as_ref().map(|(node, _)| node.as_str())
    }

    /// Creates the frame of a branch that has not been dispatched.
    pub(crate) fn new(elsewhere: Arc<RemoteTarget>) -> Self {
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
