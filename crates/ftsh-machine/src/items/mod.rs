//! The list of a loop, generated lazily, or words of an input still to come.

mod incoming;
mod words;

pub(crate) use self::incoming::Incoming;
pub(crate) use self::words::Items;
