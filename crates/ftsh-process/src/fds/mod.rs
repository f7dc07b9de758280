//! Descriptors and files: what commands read and write.

pub(crate) mod buffer;
pub(crate) mod commit;
pub(crate) mod commit_view;
mod contents;
pub(crate) mod ended;
mod error;
pub(crate) mod files;
mod glob;
pub(crate) mod held_output;
pub(crate) mod line_assembler;
mod local;
mod need;
mod opening;
pub(crate) mod path;
mod pipe_watches;
mod plan;
mod readers;
mod recorded_words;
mod rights;
pub(crate) mod spilling_log;
mod staged_file;
pub(crate) mod stream;
mod table;
mod tables;
mod tree_position;

pub(crate) use self::error::FdError;
pub(crate) use self::need::Need;
pub(crate) use self::plan::{Plan, RelayPipe, ReplayedInput};
pub(crate) use self::readers::Readers;
pub(crate) use self::stream::Amount;
pub(crate) use self::table::{Fd, FdTable};
pub(crate) use self::tables::FdTables;
pub(crate) use self::tree_position::{PositionStep, StructurePart, TreePosition};
