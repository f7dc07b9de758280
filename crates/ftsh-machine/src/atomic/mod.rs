//! Atomic attempts: staged files and their commit.

mod atomic_block;
mod commit;
mod view;

use crate::core::Core;

pub(crate) use self::atomic_block::output_received;
pub(crate) use self::commit::{FileCommitError, commit_result};

/// Begins and commits transactions.
pub(crate) struct Committer<'a> {
    pub(crate) core: &'a mut Core,
}

impl<'a> Committer<'a> {
    /// Creates the type for one step.
    pub(crate) fn new(core: &'a mut Core) -> Self {
        Self { core }
    }
}
