//! Errors of the files of channels.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::user_directory;
use ftsh_sys::os_error::plain;

/// Reason why the file of a channel cannot be used.
#[derive(Debug, Error)]
pub(super) enum ChannelFileError {
    /// The directory cannot be used.
    #[error("{}: {reason}; set FTSH_CHANNELS to another directory", .path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        reason: user_directory::DirectoryError,
    },
    /// The path is not a usable file.
    #[error("{}: {reason}; remove it, or set FTSH_CHANNELS to another directory", .path.display())]
    Strange { path: PathBuf, reason: &'static str },
    /// A system call failed.
    #[error("{}: {}{}", .path.display(), plain(.error), hint(.error))]
    System { path: PathBuf, error: io::Error },
    /// No worker thread is available.
    #[error("cannot start a thread: {}", plain(.0))]
    Worker(io::Error),
}

/// Returns a hint at another directory, which may have free space or support locks.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => "",
        _ => "; set FTSH_CHANNELS to another directory",
    }
}
