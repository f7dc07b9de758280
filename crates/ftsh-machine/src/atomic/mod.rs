//! All or nothing: staged files and their commit.

pub(crate) mod atomic_block;
pub(crate) mod commit;
pub(crate) mod transaction;
