//! Hard links that a change would separate.
//!
//! Without an index, an overlay copies one of several links before a write, and the other links keep
//! the old content. The copy has no mark of its origin, so a new file in the place of one of several
//! links may be a copy. A renamed link is found by the times that the copy keeps. A link that the
//! attempt renames, writes and then reads is not found.

use rustix::fs::Stat;

use crate::entry::{FileTime, is_directory, modification_time};
use crate::error::CommitFailure;
use crate::tree::CoveredTree;
use crate::upper::Node;

/// Facts that a copy has in common with its original.
#[derive(Clone, Copy)]
struct CopyTrace {
    modified: FileTime,
    size: i64,
    accessed: FileTime,
}

impl CopyTrace {
    fn of(stat: &Stat) -> Self {
        Self {
            modified: modification_time(stat),
            size: stat.st_size as _,
            accessed: (stat.st_atime as _, stat.st_atime_nsec as _),
        }
    }

    /// True if one file may be a copy of the other. A write keeps the time of the last access.
    fn may_be_copy(&self, other: &Self) -> bool {
        (self.modified, self.size) == (other.modified, other.size)
            || self.accessed == other.accessed
    }
}

/// Hard links found in a comparison.
#[derive(Default)]
pub(super) struct Links {
    /// New file in the place of one of several links.
    replaced: Option<Vec<u8>>,
    /// New files, which may be renamed links.
    created: Vec<(Vec<u8>, CopyTrace)>,
    /// Links that were removed or renamed.
    removed: Vec<CopyTrace>,
}

impl Links {
    pub(super) fn replaced(&mut self, node: &Node, path: &[u8], found: &Stat) {
        let is_link = !is_directory(found) && found.st_nlink > 1;
        if is_link && node.marks.origin.is_none() {
            self.replaced.get_or_insert_with(|| path.to_vec());
        }
    }

    pub(super) fn created(&mut self, node: &Node, path: &[u8]) {
        if node.marks.origin.is_none() {
            self.created.push((path.to_vec(), CopyTrace::of(&node.stat)));
        }
    }

    pub(super) fn removed(&mut self, found: &Stat) {
        if found.st_nlink > 1 {
            self.removed.push(CopyTrace::of(found));
        }
    }

    /// Fails if a change separates hard links.
    pub(super) fn check(&self, tree: &CoveredTree) -> Result<(), CommitFailure> {
        let renamed = || {
            let mut created = self.created.iter();
            let (path, _) =
                created.find(|(_, new)| self.removed.iter().any(|old| new.may_be_copy(old)))?;
            Some(path)
        };
        match self.replaced.as_ref().or_else(renamed) {
            Some(path) => Err(CommitFailure::Linked { path: tree.full(path) }),
            None => Ok(()),
        }
    }
}
