//! Limits learned from the durations of earlier attempts: `each usual or D` and `hedge after usual
//! or D`.

pub mod estimate;
pub mod execution;
pub mod history;
mod known;
pub mod learned;

pub(crate) use self::known::KnownDurations;
