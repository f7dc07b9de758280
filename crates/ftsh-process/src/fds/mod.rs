//! Descriptors and files: what commands read and write.

mod contents;
mod need;
mod pipe_watches;
mod plan;
mod readers;
mod tables;

pub(crate) use self::need::Need;
pub(crate) use self::plan::{Plan, RelayPipe, ReplayedInput};
pub(crate) use self::readers::Readers;
pub(crate) use self::tables::FdTables;
