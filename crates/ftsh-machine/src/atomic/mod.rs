//! All or nothing: staged files and their commit.

pub(crate) mod atomic_block;
pub(crate) mod commit;
pub(crate) mod transaction;

use crate::tasks::core::Core;

/// Begins transactions, and commits them.
pub(crate) struct Committer<'a> {
    pub(crate) core: &'a mut Core,
}

impl Core {
    /// Returns what begins and commits transactions.
    pub(crate) fn committer(&mut self) -> Committer<'_> {
        Committer { core: self }
    }
}
