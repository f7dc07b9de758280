//! Why there is no descriptor, or no answer about files.

use std::io;
use std::path::PathBuf;

use bstr::{BString, ByteSlice};
use thiserror::Error;

use super::path::shown;
use ftsh_machine::size::TooLong;
use ftsh_sys::os_error::plain;

/// What went wrong; it reads as one line for people.
#[derive(Debug, Error)]
pub enum FdError {
    /// With a file.
    #[error("{}: {}", shown(.path.as_bstr()), plain(.error))]
    File {
        /// Its path, as the script says it.
        path: BString,
        /// Why.
        error: io::Error,
    },
    /// There can't be a new file beside an old one.
    #[error(
        "{}: no new file can be made in its directory, to take its place: {}",
        shown(.path.as_bstr()),
        plain(.error)
    )]
    Beside {
        /// The old one's path, as the script says it.
        path: BString,
        /// Why.
        error: io::Error,
    },
    /// An input can't be read again.
    #[error("what was read can't be read again: {}", plain(.0))]
    Input(io::Error),
    /// An attempt can't have a directory of its own.
    #[error(
        "no directory for $scratch to be had in {}: {}; TMPDIR names another place",
        .place.display(),
        plain(.error)
    )]
    Scratch {
        /// Where it was to be.
        place: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A number that no descriptor has.
    #[error("{0}: descriptors go from 0 to 9")]
    NoNumber(u8),
    /// Nothing is open there.
    #[error("descriptor {0} isn't open")]
    Closed(u8),
    /// A descriptor can't be copied.
    #[error("descriptor {number}: {}", plain(.error))]
    Copy {
        /// Which.
        number: u8,
        /// Why.
        error: io::Error,
    },
    /// A variable can't be a file.
    #[error("the variable can't be used as a file: {}", plain(.0))]
    Variable(io::Error),
    /// What was written to a variable can't be read.
    #[error("the variable can't be read: {}", plain(.0))]
    Unreadable(io::Error),
    /// It is too much for a value.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// `/dev/null` is not to be had.
    #[error("/dev/null: {}", plain(.0))]
    Null(io::Error),
    /// Nothing is to be had that stands for what is gone.
    #[error("what it led to is gone with an earlier start of the run: {}", plain(.0))]
    NoLonger(io::Error),
    /// No pipe is to be had.
    #[error("no pipe to be had: {}", plain(.0))]
    Pipe(io::Error),
    /// No worker is to be had.
    #[error("no thread to be had: {}", plain(.0))]
    Worker(io::Error),
    /// Nobody has that name.
    #[error("there is no user {0}")]
    NoUser(String),
    /// Whether somebody has it can't be said.
    #[error("the user {name} can't be looked up: {}", plain(.error))]
    User {
        /// The name.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// The machine named what isn't there.
    #[error("{0} is gone: an internal error of ftsh")]
    Gone(&'static str),
}
