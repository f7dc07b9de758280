//! Directories of tasks, paths in views, and errors of files and descriptors.

mod error;
mod path;

pub(crate) use self::error::FdError;
pub(crate) use self::path::TaskDirectory;
