//! Parallel tasks: the branches of a `forall` or a hedged `forany`, and the stages of a pipeline.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use bstr::BString;

use super::{beside::Beside, gate::ResourceGate, hedge::Hedge, tally::Tally};
use crate::effect::TaskId;
use crate::elsewhere::RemoteTarget;
use crate::endings::{EndedStage, Thrown};
use crate::invocation::IoTable;
use crate::outputs::{OutputBuffers, OutputRelay};
use crate::program::{Address, Loop};
use crate::scheduler::TimerKey;
use ftsh_syntax::clauses::ForAllClauses;

/// Branches or stages running in parallel.
#[derive(Debug)]
pub(crate) struct JoinFrame {
    /// Address after the structure.
    pub end: Address,
    /// Tasks still running.
    pub running: BTreeSet<TaskId>,
    /// Kind of the structure, with its state.
    pub kind: JoinKind,
}

/// Kinds of parallel tasks.
#[derive(Debug)]
pub(crate) enum JoinKind {
    /// The branches of a `forall`.
    Branches {
        /// Code of the loop.
        code: Arc<Loop>,
        /// Clauses of the loop.
        clauses: Box<ForAllClauses<u64, BString>>,
        /// Descriptors of every branch.
        io: IoTable,
        /// Results of the branches.
        tally: Box<Tally>,
        /// Buffered output of the branches, if grouped.
        outputs: Option<Box<OutputBuffers>>,
        /// Relay of the branches' output, if tagged.
        relay: Option<OutputRelay>,
        /// Engine of the branches, if remote.
        elsewhere: Option<Arc<RemoteTarget>>,
        /// Resources that a further branch needs.
        gate: Option<Box<ResourceGate>>,
    },
    /// The alternatives of a hedged `forany`.
    Hedge(Box<Hedge>),
    /// The group of a `with` and the command beside it.
    Beside(Box<Beside>),
    /// The stages of a pipeline, with the endings of the finished stages.
    Stages(Vec<Option<EndedStage>>),
}

impl JoinFrame {
    /// Violated invariant: the innermost structure waits for the task that ends.
    pub(crate) const MISSING: &str = "the innermost structure has no tasks";

    /// Returns true if neither a task nor output is awaited.
    pub(crate) fn is_done(&self) -> bool {
        self.running.is_empty()
            && !self.kind.awaits_words()
            && !self.kind.awaits_resources()
            && self.kind.outputs().is_none_or(OutputBuffers::is_done)
            && self.kind.relay().is_none_or(OutputRelay::is_done)
    }

    /// Returns the timer armed for the structure.
    pub(crate) fn timer(&self) -> Option<TimerKey> {
        match &self.kind {
            JoinKind::Hedge(hedge) => hedge.timer,
            JoinKind::Branches { gate, .. } => gate.as_ref().and_then(|gate| gate.timer()),
            JoinKind::Beside(beside) => beside.timer,
            JoinKind::Stages(_) => None,
        }
    }
}

impl JoinKind {
    /// Returns the relay of tagged output.
    pub(crate) fn relay(&self) -> Option<&OutputRelay> {
        match self {
            Self::Branches { relay, .. } => relay.as_ref(),
            Self::Hedge(_) | Self::Beside(_) | Self::Stages(_) => None,
        }
    }

    /// Takes the number of a new branch of a `forall`.
    pub(crate) fn take_slot(&mut self) -> Option<NonZeroU32> {
        match self {
            Self::Branches { tally, .. } => Some(tally.take_slot()),
            Self::Hedge(_) | Self::Beside(_) | Self::Stages(_) => None,
        }
    }

    /// True if more words may come from an input.
    pub(crate) fn awaits_words(&self) -> bool {
        match self {
            Self::Branches { tally, .. } => tally.awaits_words(),
            Self::Hedge(_) | Self::Beside(_) | Self::Stages(_) => false,
        }
    }

    /// Returns the number of requests, for the resources of the machine or the next words of an
    /// input, that the driver has not answered.
    pub(crate) fn requests(&self) -> usize {
        match self {
            Self::Branches { gate, tally, .. } => {
                let asks = gate.as_ref().is_some_and(|gate| gate.is_asked());
                usize::from(asks) + usize::from(tally.asks_for_words())
            }
            Self::Hedge(_) | Self::Beside(_) | Self::Stages(_) => 0,
        }
    }

    /// Returns true if the next branch waits for resources of the machine.
    pub(crate) fn awaits_resources(&self) -> bool {
        match self {
            Self::Branches { gate, .. } => gate.as_ref().is_some_and(|gate| gate.is_awaited()),
            Self::Hedge(_) | Self::Beside(_) | Self::Stages(_) => false,
        }
    }

    /// Returns true if each branch's output is written as a group.
    pub(crate) fn is_grouped(&self) -> bool {
        match self {
            Self::Branches { outputs, .. } => outputs.is_some(),
            Self::Hedge(_) | Self::Beside(_) | Self::Stages(_) => false,
        }
    }

    /// Returns true if ended branches have unwritten output, which must be written even after a
    /// cancellation.
    pub(crate) fn has_unwritten_output(&self) -> bool {
        match self {
            Self::Branches { outputs, .. } => outputs.as_ref().is_some_and(|it| it.is_unwritten()),
            // A canceled alternative has not won, so its output is discarded.
            Self::Hedge(_) | Self::Beside(_) | Self::Stages(_) => false,
        }
    }

    /// Returns the buffered output of the tasks.
    pub(crate) fn outputs(&self) -> Option<&OutputBuffers> {
        match self {
            Self::Branches { outputs, .. } => outputs.as_deref(),
            Self::Hedge(hedge) => hedge.outputs.as_deref(),
            Self::Beside(_) | Self::Stages(_) => None,
        }
    }

    /// Returns true if the structure may continue after the failure of one task.
    pub(crate) fn survives_failure(&self, thrown: &Thrown) -> bool {
        match self {
            Self::Hedge(hedge) => !thrown.retry.is_for_try_only() && hedge.survives_failure(),
            Self::Branches { clauses, .. } => clauses.is_counted(),
            Self::Beside(_) | Self::Stages(_) => false,
        }
    }
}
