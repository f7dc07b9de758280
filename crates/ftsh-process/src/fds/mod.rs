//! Descriptors and files: what commands read and write.

pub mod buffer;
pub mod commit;
mod contents;
pub mod ended;
mod error;
pub mod files;
mod glob;
pub mod held_output;
pub mod line_assembler;
mod local;
mod need;
pub mod path;
mod pipe_watches;
mod plan;
mod readers;
mod rights;
pub mod spilling_log;
mod staged_file;
pub mod stream;
mod table;
mod tables;
mod tree_position;

pub use self::error::FdError;
pub use self::need::Need;
pub use self::plan::{Plan, RelayPipe, ReplayedInput};
pub use self::readers::Readers;
pub use self::stream::Amount;
pub use self::table::{Fd, FdTable};
pub use self::tables::FdTables;
pub use self::tree_position::{PositionStep, StructurePart, TreePosition};
