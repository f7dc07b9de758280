//! Why a channel can't be used.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::user_directory;
use ftsh_sys::os_error::plain;

/// Why a channel's file can't be used.
#[derive(Debug, Error)]
pub enum Unusable {
    /// Its directory can't.
    #[error("{}: {reason}; FTSH_CHANNELS names another directory", .path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: user_directory::Unusable,
    },
    /// It is something else.
    #[error("{}: {reason}; remove it, or set FTSH_CHANNELS to another directory", .path.display())]
    Strange {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
    /// The system says no.
    #[error("{}: {}{}", .path.display(), plain(.error), hint(.error))]
    System {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Nobody can wait.
    #[error("no thread to be had: {}", plain(.0))]
    Worker(io::Error),
}

/// Another directory may be on a disk with room, or on a file system with locks.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => "",
        _ => "; FTSH_CHANNELS names another directory",
    }
}
