//! Errors of redirections and queries.

use std::io;
use std::path::PathBuf;

use super::path::shown;
use crate::clock::LocalTimeError;
use crate::views::BeginError;
use bstr::{BString, ByteSlice};
use ftsh_layers::{CommitFailure, CoverError};
use thiserror::Error;

use ftsh_machine::event::{Refusal, SpawnError, SpawnErrorKind};
use ftsh_machine::size::ValueTooLong;
use ftsh_sys::os_error::{name, plain};

/// Error of a redirection or a query, as one line for people.
#[derive(Debug, Error)]
pub enum FdError {
    /// A file cannot be used.
    #[error("{}: {}", shown(.path.as_bstr()), plain(.error))]
    File {
        /// Path as written in the script.
        path: BString,
        error: io::Error,
    },
    /// A relative path names no file.
    #[error("{}: no such file or directory; a relative path begins in {}", shown(.path.as_bstr()), .directory.display())]
    NotIn {
        /// Path as written in the script.
        path: BString,
        /// Directory of the script.
        directory: PathBuf,
        error: io::Error,
    },
    /// No file can be created beside a target.
    #[error(
        "{}: cannot create a new file in its directory for the replacement: {}",
        shown(.path.as_bstr()),
        plain(.error)
    )]
    Beside {
        /// Path of the target as written in the script.
        path: BString,
        error: io::Error,
    },
    /// An input cannot be read again.
    #[error("cannot read the input again: {}", plain(.0))]
    Input(io::Error),
    /// No scratch directory can be created.
    #[error(
        "cannot create the directory `$scratch` in {}: {}; set TMPDIR to another directory",
        .place.display(),
        plain(.error)
    )]
    Scratch {
        /// Parent of the directory.
        place: PathBuf,
        error: io::Error,
    },
    /// A time cannot be shown.
    #[error(transparent)]
    LocalTime(LocalTimeError),
    /// The descriptor number is out of range.
    #[error("{0}: descriptors go from 0 to 9")]
    NoNumber(u8),
    /// The descriptor is not open.
    #[error("descriptor {0} is not open")]
    Closed(u8),
    /// A descriptor cannot be copied.
    #[error("descriptor {number}: {}", plain(.error))]
    Copy {
        /// Number of the descriptor.
        number: u8,
        error: io::Error,
    },
    /// A variable, or output that waits, cannot be stored.
    #[error("cannot store output or a variable: {}", plain(.0))]
    Variable(io::Error),
    /// Output to a variable cannot be read.
    #[error("cannot read the variable: {}", plain(.0))]
    Unreadable(io::Error),
    /// The content exceeds the limit of a value.
    #[error(transparent)]
    TooLong(#[from] ValueTooLong),
    /// `/dev/null` cannot be opened.
    #[error("/dev/null: {}", plain(.0))]
    Null(io::Error),
    /// No placeholder for a lost descriptor can be created.
    #[error("the file was lost with an earlier start of the run: {}", plain(.0))]
    NoLonger(io::Error),
    /// No pipe can be created.
    #[error("cannot create a pipe: {}", plain(.0))]
    Pipe(io::Error),
    /// No worker thread can be created.
    #[error("cannot start a thread: {}", plain(.0))]
    Worker(io::Error),
    /// No process for a filter can be created.
    #[error("cannot start a process for the filter of `json`: {}", plain(.0))]
    Filter(io::Error),
    /// The user does not exist.
    #[error("there is no user {0}")]
    NoUser(String),
    /// The user database cannot be read.
    #[error("cannot look up the user {name}: {}", plain(.error))]
    User {
        /// Name of the user.
        name: String,
        error: io::Error,
    },
    /// Directories cannot be covered for an attempt.
    #[error("atomic in: {0}")]
    Cover(CoverError),
    /// Changes of a view cannot take place.
    #[error("atomic in: {0}")]
    View(CommitFailure),
    /// Files in a view could not be put in place.
    #[error("{0}")]
    Incomplete(String),
    /// A file of a branch is missing.
    #[error("{0}")]
    BranchFile(String),
    /// The machine named an unknown object.
    #[error("{0} is missing: an internal error of ftsh")]
    Gone(&'static str),
}

impl FdError {
    /// Returns the name of the system's error, if the system gave the reason.
    pub fn errno(&self) -> Option<String> {
        self.system_error().and_then(name)
    }

    /// Returns the system's error, if the system gave the reason.
    fn system_error(&self) -> Option<&io::Error> {
        match self {
            Self::File { error, .. }
            | Self::Beside { error, .. }
            | Self::NotIn { error, .. }
            | Self::Scratch { error, .. }
            | Self::Copy { error, .. }
            | Self::User { error, .. }
            | Self::Input(error)
            | Self::Variable(error)
            | Self::Unreadable(error)
            | Self::Null(error)
            | Self::NoLonger(error)
            | Self::Pipe(error)
            | Self::Filter(error)
            | Self::Worker(error) => Some(error),
            Self::Cover(error) => error.system_error(),
            Self::View(error) => error.system_error(),
            Self::LocalTime(_)
            | Self::Incomplete(_)
            | Self::BranchFile(_)
            | Self::NoNumber(_)
            | Self::Closed(_)
            | Self::TooLong(_)
            | Self::NoUser(_)
            | Self::Gone(_) => None,
        }
    }

    /// Converts the error to a command's error of a kind.
    pub fn into_spawn_error(self, kind: SpawnErrorKind) -> SpawnError {
        let Refusal { message, errno } = self.into();
        SpawnError { kind, message, errno }
    }
}

impl From<BeginError> for FdError {
    fn from(error: BeginError) -> Self {
        match error {
            BeginError::Dropped => Self::Gone("a view of directories"),
            BeginError::Cover(error) => Self::Cover(error),
        }
    }
}

impl From<FdError> for Refusal {
    fn from(error: FdError) -> Self {
        Self { message: error.to_string(), errno: error.errno() }
    }
}
