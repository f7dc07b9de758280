//! Changes that an attempt made, for reports.

use std::fmt;
use std::path::PathBuf;

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// A new entry.
    Added,
    /// New content or new attributes.
    Modified,
    /// An entry that is gone.
    Removed,
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Added => "A",
            Self::Modified => "M",
            Self::Removed => "D",
        })
    }
}

/// Change that an attempt made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Path of the entry. Entries below a removed directory are not listed.
    pub path: PathBuf,
    /// Kind of the change.
    pub kind: ChangeKind,
}
