//! Descriptors and files: what commands read and write.

pub mod buffer;
mod closings;
mod contents;
mod draft;
pub mod ended;
mod error;
pub mod files;
mod glob;
pub mod held;
pub mod lines;
mod local;
pub mod log;
mod need;
pub mod path;
mod place;
mod plan;
mod readers;
mod rights;
pub mod settle;
pub mod stream;
mod table;
mod tables;

pub use self::error::FdError;
pub use self::need::Need;
pub use self::place::{Part, Place, Step};
pub use self::plan::{Plan, Relayed, Replayed};
pub use self::readers::Readers;
pub use self::table::{Fd, FdTable};
pub use self::tables::FdTables;
