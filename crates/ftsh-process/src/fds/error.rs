//! Errors of redirections and queries.

use std::io;
use std::path::PathBuf;

use bstr::{BString, ByteSlice};
use thiserror::Error;

use super::path::shown;
use ftsh_machine::size::ValueTooLong;
use ftsh_sys::os_error::plain;

/// Error of a redirection or a query, as one line for people.
#[derive(Debug, Error)]
pub enum FdError {
    /// A file cannot be used.
    #[error("{}: {}", shown(.path.as_bstr()), plain(.error))]
    File {
        /// Path as written in the script.
        path: BString,
        /// Error.
        error: io::Error,
    },
    /// No file can be created beside a target.
    #[error(
        "{}: no new file can be made in its directory, to take its place: {}",
        shown(.path.as_bstr()),
        plain(.error)
    )]
    Beside {
        /// Path of the target as written in the script.
        path: BString,
        /// Error.
        error: io::Error,
    },
    /// An input cannot be read again.
    #[error("what was read can't be read again: {}", plain(.0))]
    Input(io::Error),
    /// No scratch directory can be created.
    #[error(
        "no directory for $scratch to be had in {}: {}; TMPDIR names another place",
        .place.display(),
        plain(.error)
    )]
    Scratch {
        /// Parent of the directory.
        place: PathBuf,
        /// Error.
        error: io::Error,
    },
    /// The descriptor number is out of range.
    #[error("{0}: descriptors go from 0 to 9")]
    NoNumber(u8),
    /// The descriptor is not open.
    #[error("descriptor {0} isn't open")]
    Closed(u8),
    /// A descriptor cannot be copied.
    #[error("descriptor {number}: {}", plain(.error))]
    Copy {
        /// Number of the descriptor.
        number: u8,
        /// Error.
        error: io::Error,
    },
    /// A variable cannot be used as a file.
    #[error("the variable can't be used as a file: {}", plain(.0))]
    Variable(io::Error),
    /// Output to a variable cannot be read.
    #[error("the variable can't be read: {}", plain(.0))]
    Unreadable(io::Error),
    /// The content exceeds the limit of a value.
    #[error(transparent)]
    TooLong(#[from] ValueTooLong),
    /// `/dev/null` cannot be opened.
    #[error("/dev/null: {}", plain(.0))]
    Null(io::Error),
    /// No placeholder for a lost descriptor can be created.
    #[error("what it led to is gone with an earlier start of the run: {}", plain(.0))]
    NoLonger(io::Error),
    /// No pipe can be created.
    #[error("no pipe to be had: {}", plain(.0))]
    Pipe(io::Error),
    /// No worker thread can be created.
    #[error("no thread to be had: {}", plain(.0))]
    Worker(io::Error),
    /// The user does not exist.
    #[error("there is no user {0}")]
    NoUser(String),
    /// The user database cannot be read.
    #[error("the user {name} can't be looked up: {}", plain(.error))]
    User {
        /// Name of the user.
        name: String,
        /// Error.
        error: io::Error,
    },
    /// The machine named an unknown object.
    #[error("{0} is gone: an internal error of ftsh")]
    Gone(&'static str),
}
