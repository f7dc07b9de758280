//! The flat list of instructions that a script is lowered to.

pub(crate) mod code;
pub(crate) mod definitions;
pub(crate) mod learned;
pub(crate) mod lower;
