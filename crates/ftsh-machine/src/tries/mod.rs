//! The `try` statement: attempts, their limits, channels and standard input.

pub(crate) mod channel;
pub(crate) mod entering;
pub(crate) mod input;
pub(crate) mod try_block;
pub(crate) mod verdict;
