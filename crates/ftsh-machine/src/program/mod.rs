//! The flat list of instructions that a script is lowered to.

mod code;
mod definitions;

pub(crate) use self::code::{
    Address, BackoffCode, ChannelCode, DurationScale, FinallyCode, Instruction, Loop, Program,
    TryCode,
};
pub(crate) use self::definitions::Definitions;
