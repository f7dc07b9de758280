//! Entries as the comparison saw them, for a second look at the moment of a rename.

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::entry::{self, FileTime, change_time, is_directory, modification_time};

/// Entry as the comparison saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) inode: u64,
    /// Facts to compare. `None` for a directory that the attempt renamed, which keeps its entries
    /// whatever they are.
    facts: Option<SeenFacts>,
}

/// Facts about an entry that a rename does not change, except for the time of change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SeenFacts {
    /// Type and permissions.
    mode: u32,
    owner: (u32, u32),
    size: i64,
    modified: FileTime,
    /// Time of change of an entry of the covered directory. `None` for an entry of the attempt.
    changed: Option<FileTime>,
}

impl Seen {
    /// Describes an entry of the covered directory.
    pub(crate) fn old(stat: &Stat) -> Self {
        let mut seen = Self::new(stat);
        seen.facts =
            seen.facts.map(|facts| SeenFacts { changed: Some(change_time(stat)), ..facts });
        seen
    }

    /// Describes an entry of the attempt.
    pub(crate) fn new(stat: &Stat) -> Self {
        let facts = SeenFacts {
            mode: stat.st_mode,
            owner: (stat.st_uid, stat.st_gid),
            size: stat.st_size as _,
            modified: modification_time(stat),
            changed: None,
        };
        Self { inode: entry::inode(stat), facts: Some(facts) }
    }

    /// Describes a directory that the attempt renamed.
    pub(crate) fn renamed(stat: &Stat) -> Self {
        Self { inode: entry::inode(stat), facts: None }
    }

    /// True for a directory that the attempt renamed.
    pub(crate) fn is_renamed(&self) -> bool {
        self.facts.is_none()
    }

    /// True for an entry of the covered directory.
    pub(crate) fn is_old(&self) -> bool {
        self.facts.as_ref().is_none_or(|facts| facts.changed.is_some())
    }

    pub(crate) fn is_inode(&self, found: &Stat) -> bool {
        entry::inode(found) == self.inode
    }

    /// True if an entry is the same as before, also after a rename. Of directories, only the
    /// identity is compared.
    pub(crate) fn is_same(&self, found: &Stat) -> bool {
        let is_same = |facts: &SeenFacts| {
            let now = Self::new(found).facts;
            is_directory(found)
                || now.is_some_and(|now| now == SeenFacts { changed: None, ..facts.clone() })
        };
        self.is_inode(found) && self.facts.as_ref().is_none_or(is_same)
    }

    /// True if an entry had no change since the comparison.
    pub(crate) fn is_untouched(&self, found: &Stat) -> bool {
        let changed = self.facts.as_ref().and_then(|facts| facts.changed);
        changed.is_none_or(|changed| changed == change_time(found))
    }
}
