//! Loops, `break` and `continue`.

pub(crate) mod jumps;
pub(crate) mod loop_block;
