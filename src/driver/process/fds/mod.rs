//! Descriptors and files: what commands read and write.

pub mod buffer;
pub mod files;
mod glob;
pub mod path;
mod plan;
pub mod stream;
mod table;
mod tables;

pub use self::table::{Fd, FdTable};
pub use self::tables::FdTables;
