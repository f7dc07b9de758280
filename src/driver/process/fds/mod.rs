//! Descriptors and files: what commands read and write.

pub mod buffer;
mod error;
pub mod files;
mod glob;
pub mod path;
mod plan;
pub mod stream;
mod table;
mod tables;

pub use self::error::FdError;
pub use self::table::{Fd, FdTable};
pub use self::tables::FdTables;
