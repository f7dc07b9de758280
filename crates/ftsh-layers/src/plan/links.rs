//! Hard links that a change would separate.
//!
//! An overlay copies one of several links before a write, and the other links keep the old content.
//! Such a copy has no mark of its origin, so a new file in the place of one of several links may be
//! such a copy.

use rustix::fs::Stat;

use crate::attempt::Tree;
use crate::entry::{FileTime, is_directory, modification_time};
use crate::error::CommitError;
use crate::upper::Node;

/// Facts that a rename keeps.
type Trace = (FileTime, i64);

/// Hard links found in a comparison.
#[derive(Default)]
pub(super) struct Links {
    /// New file in the place of one of several links.
    replaced: Option<Vec<u8>>,
    /// New files, which may be renamed links.
    created: Vec<(Vec<u8>, Trace)>,
    /// Links that were removed or renamed.
    removed: Vec<Trace>,
}

fn trace(stat: &Stat) -> Trace {
    (modification_time(stat), stat.st_size as _)
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
            self.created.push((path.to_vec(), trace(&node.stat)));
        }
    }

    pub(super) fn removed(&mut self, found: &Stat) {
        if found.st_nlink > 1 {
            self.removed.push(trace(found));
        }
    }

    /// Fails if a change separates hard links.
    pub(super) fn check(&self, tree: &Tree) -> Result<(), CommitError> {
        let renamed = || {
            let mut created = self.created.iter();
            let (path, _) = created.find(|(_, trace)| self.removed.contains(trace))?;
            Some(path)
        };
        match self.replaced.as_ref().or_else(renamed) {
            Some(path) => Err(CommitError::Linked { path: tree.full(path) }),
            None => Ok(()),
        }
    }
}
