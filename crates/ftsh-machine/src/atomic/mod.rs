//! Atomic attempts: staged files and their commit.

pub(crate) mod atomic_block;
pub(crate) mod commit;
pub(crate) mod kept_output;
pub(crate) mod transaction;
pub(crate) mod view;

use crate::tasks::core::Core;

/// Begins and commits transactions.
pub(crate) struct Committer<'a> {
    pub(crate) core: &'a mut Core,
}

impl Core {
    /// Returns the committer.
    pub(crate) fn committer(&mut self) -> Committer<'_> {
        Committer { core: self }
    }
}
