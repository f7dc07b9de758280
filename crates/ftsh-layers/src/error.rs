//! Errors for users: why an attempt cannot begin, and why its changes were not committed.

use std::io;
use std::path::PathBuf;

use ftsh_sys::os_error::plain;

/// Reason why directories cannot be covered.
#[derive(Debug, thiserror::Error)]
pub enum CoverError {
    /// A directory that does not exist or cannot be opened.
    #[error("`{}`: {}", .path.display(), plain(.error))]
    Directory {
        /// Path as given.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The root directory.
    #[error("`/` cannot be covered as a whole: name the directories below that matter")]
    Root,
    /// A directory with another file system mounted below.
    #[error(
        "`{}` has a file system mounted below, on `{}`: name directories that are on one file \
         system",
        .path.display(),
        .below.display()
    )]
    Mounted {
        /// Directory to cover.
        path: PathBuf,
        /// Mount point below.
        below: PathBuf,
    },
    /// Neither the directory nor its parent accepts the layers.
    #[error("neither `{}` nor its parent accepts new files: {}", .path.display(), plain(.error))]
    Layers {
        /// Directory to cover.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// A file system that cannot be covered.
    #[error("`{}` is on {system}, which cannot be covered: {}", .path.display(), plain(.error))]
    FileSystem {
        /// Directory to cover.
        path: PathBuf,
        /// Name of the file system.
        system: String,
        /// Error of the system.
        error: io::Error,
    },
    /// A directory that two outer attempts cover.
    #[error(
        "two outer attempts or copies cover `{}` already, and no third one is possible",
        .path.display()
    )]
    Stacked {
        /// Path of the directory.
        path: PathBuf,
    },
    /// A directory that another shell covers, with layers that the overlay hides.
    #[error(
        "`{}` is a copy already (by `--preview`, `--storm` or an outer `atomic in`), and its changes are \
         kept inside `{}`, since the parent accepts none: copy a directory below instead",
        .path.display(),
        .covered.display()
    )]
    Hidden {
        /// Path of the directory.
        path: PathBuf,
        /// Directory that the other shell covers.
        covered: PathBuf,
    },
    /// The kernel does not permit namespaces to this user.
    #[error("this user may not create namespaces: {}", reason(*.setting, .error))]
    Namespaces {
        /// Setting of the kernel that forbids namespaces, if known.
        setting: Option<&'static str>,
        /// Error of the system.
        error: io::Error,
    },
    /// The kernel cannot make mounts read-only.
    #[error(
        "files outside of the copies cannot be made read-only, which needs Linux 5.12: {}",
        plain(.0)
    )]
    Protection(io::Error),
    /// Any other error.
    #[error("{}", plain(.0))]
    System(#[from] io::Error),
}

impl CoverError {
    /// Returns the system's error, if the system gave the reason.
    pub fn system_error(&self) -> Option<&io::Error> {
        match self {
            Self::Directory { error, .. }
            | Self::Layers { error, .. }
            | Self::FileSystem { error, .. }
            | Self::Namespaces { error, .. }
            | Self::Protection(error)
            | Self::System(error) => Some(error),
            Self::Root | Self::Mounted { .. } | Self::Stacked { .. } | Self::Hidden { .. } => None,
        }
    }
}

impl CommitFailure {
    /// Returns the system's error, if the system gave the reason.
    pub fn system_error(&self) -> Option<&io::Error> {
        match self {
            Self::Failed { error, .. }
            | Self::Unfinished { error, .. }
            | Self::Incomplete { error, .. } => Some(error),
            Self::Conflict { .. }
            | Self::Mixed { .. }
            | Self::Canceled
            | Self::Locked { .. }
            | Self::Moved { .. }
            | Self::Linked { .. }
            | Self::Defect(_) => None,
        }
    }
}

fn reason(setting: Option<&'static str>, error: &io::Error) -> String {
    let Some(setting) = setting else { return plain(error) };
    let profile = if setting.starts_with("kernel.apparmor") {
        ", or give ftsh an AppArmor profile with `userns`, as its Debian package does"
    } else {
        ""
    };
    format!("see the setting `{setting}`{profile}")
}

/// Reason why the changes of an attempt were not committed. Unless stated otherwise, the directories
/// are as before.
#[derive(Debug, thiserror::Error)]
pub enum CommitFailure {
    /// Another process changed an entry that the attempt has changed.
    #[error("`{}` was changed by another process meanwhile", .path.display())]
    Conflict {
        /// Path of the entry.
        path: PathBuf,
    },
    /// Another process changed an entry, and also an entry that the commit had put in its place. All
    /// other steps were undone.
    #[error(
        "`{}` was changed by another process meanwhile, and so was `{}` during the commit, which stays \
         as it is",
        .path.display(),
        .kept.display()
    )]
    Mixed {
        /// Path of the entry that ended the commit.
        path: PathBuf,
        /// Path of the entry that stays.
        kept: PathBuf,
    },
    /// The caller decided against the commit.
    #[error("the commit was canceled before its first change")]
    Canceled,
    /// Another process holds the lock on a directory.
    #[error("another process holds the lock on `{}`", .path.display())]
    Locked {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The directory is no longer at its path.
    #[error("`{}` was moved or replaced meanwhile", .path.display())]
    Moved {
        /// Path of the directory.
        path: PathBuf,
    },
    /// An overlay cannot change one of several hard links.
    #[error(
        "`{}` was changed and has other hard links, which would keep the old content",
        .path.display()
    )]
    Linked {
        /// Path of the file.
        path: PathBuf,
    },
    /// A step failed, and all steps were undone.
    #[error("`{}`: {}", .path.display(), plain(.error))]
    Failed {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// A part of the changes is in the outer attempt, which cannot be committed any more.
    #[error("`{}`: {}; the outer attempt cannot be completed", .path.display(), plain(.error))]
    Incomplete {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The changes of an inner attempt are there only in part, for this reason.
    #[error("{0}")]
    Defect(String),
    /// A step failed, and earlier steps could not be undone yet, or the note could not be removed after
    /// the last step. [`crate::sweep`] undoes or finishes the commit.
    #[error(
        "`{}`: {}; some files are new already, and the next shell that finds `{}` sets them right",
        .path.display(),
        plain(.error),
        .layers.display()
    )]
    Unfinished {
        /// Path of the file.
        path: PathBuf,
        /// Directory with the note.
        layers: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
}
