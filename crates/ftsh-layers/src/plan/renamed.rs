//! Directories that the attempt renamed.
//!
//! The overlay of an administrator records the old path of a renamed directory and keeps only the
//! changes of its entries. The commit puts the changes and the directory aside first, so renames may
//! exchange directories or move one into another.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::fs::{Stat, fstat};

use super::{LowerDirectory, Merged, Planner};
use crate::change::ChangeKind;
use crate::error::CommitFailure;
use crate::layers::UPPER;
use crate::step::{Rename, Spot, Step, join};
use crate::upper::Node;

/// Renamed directories of a tree.
#[derive(Default)]
pub(super) struct Renamed {
    list: Vec<RenamedDirectory>,
    by_inode: BTreeMap<u64, usize>,
}

/// One renamed directory.
struct RenamedDirectory {
    /// Path of the changes below the layers.
    upper: Vec<u8>,
    inode: u64,
    /// Old path below the covered directory.
    lower: Vec<u8>,
    /// Directory at the old path, with the places of its changes and itself below the layers.
    found: Option<(OwnedFd, Stat, Vec<u8>, Vec<u8>)>,
    /// Final path, once planned.
    placed: Option<Vec<u8>>,
}

impl Renamed {
    /// Finds the renamed directories among the changes.
    pub(super) fn find(root: &Node) -> Self {
        let mut renamed = Self::default();
        renamed.search(root, UPPER.to_bytes(), Some(b""));
        renamed
    }

    fn search(&mut self, node: &Node, upper: &[u8], lower: Option<&[u8]>) {
        for child in node.children.iter().filter(|child| child.is_directory()) {
            let name = child.name.to_bytes();
            let upper = join(upper, name);
            let usual = lower.filter(|_| !child.marks.is_opaque).map(|lower| join(lower, name));
            let recorded = match child.marks.redirect.as_deref() {
                Some([b'/', path @ ..]) => Some(path.to_vec()),
                Some(name) => lower.map(|lower| join(lower, name)),
                None => None,
            };
            let lower = recorded.clone().or(usual.clone());
            if let Some(recorded) = recorded
                && Some(&recorded) != usual.as_ref()
            {
                let inode = child.inode();
                self.by_inode.insert(inode, self.list.len());
                let upper = upper.clone();
                self.list.push(RenamedDirectory {
                    upper,
                    inode,
                    lower: recorded,
                    found: None,
                    placed: None,
                });
            }
            self.search(child, &upper, lower.as_deref());
        }
    }

    pub(super) fn index(&self, node: &Node) -> Option<usize> {
        self.by_inode.get(&node.inode()).copied()
    }

    /// True if the directory at this path was renamed.
    pub(super) fn is_source(&self, path: &[u8]) -> bool {
        self.list.iter().any(|it| it.lower == path)
    }

    /// Returns old path, final path and inode of the changes of all directories.
    pub(super) fn placed(&self) -> Vec<(Vec<u8>, Vec<u8>, u64)> {
        let placed = self.list.iter().filter_map(|it| {
            let path = it.placed.clone()?;
            Some((it.lower.clone(), path, it.inode))
        });
        placed.collect()
    }

    /// Returns indexes by decreasing depth of a path.
    fn deepest_first(&self, path: impl Fn(&RenamedDirectory) -> &[u8]) -> Vec<usize> {
        let depth = |index: &usize| path(&self.list[*index]).split(|byte| *byte == b'/').count();
        let mut indexes: Vec<usize> = (0..self.list.len()).collect();
        indexes.sort_by_key(|index| std::cmp::Reverse(depth(index)));
        indexes
    }
}

impl Planner<'_> {
    /// Returns the steps that put renamed directories and their changes aside.
    pub(super) fn put_renamed_aside(&mut self) -> Result<Vec<Step>, CommitFailure> {
        let mut steps = Vec::new();
        for index in 0..self.renamed.list.len() {
            let path = self.renamed.list[index].lower.clone();
            let fd = self.open_below(&path)?;
            let stat = fstat(&fd).map_err(|errno| self.tree.failed(&path, errno.into()))?;
            let (changes, itself) = (self.aside(), self.aside());
            self.renamed.list[index].found = Some((fd, stat, changes, itself));
        }
        let renamed = &self.renamed;
        for index in renamed.deepest_first(|it| &it.upper) {
            let it = &renamed.list[index];
            let Some((_, _, changes, _)) = &it.found else { continue };
            steps.push(Step::Rename(Rename {
                from: Spot::Layers(it.upper.clone()),
                to: Spot::Layers(changes.clone()),
                inode: it.inode,
                exchange: false,
            }));
        }
        for index in renamed.deepest_first(|it| &it.lower) {
            let it = &renamed.list[index];
            let Some((_, stat, _, itself)) = &it.found else { continue };
            steps.push(Step::Rename(Rename {
                from: Spot::Directory(it.lower.clone()),
                to: Spot::Layers(itself.clone()),
                inode: stat.st_ino as _,
                exchange: false,
            }));
        }
        Ok(steps)
    }

    /// Plans the new place of a renamed directory, and then its changes.
    pub(super) fn place_renamed(
        &mut self,
        node: &Node,
        path: Vec<u8>,
        index: usize,
        exchange: bool,
    ) -> Result<(), CommitFailure> {
        let old = self.renamed.list[index].lower.clone();
        let Some((fd, stat, changes, itself)) = self.renamed.list[index].found.take() else {
            return Err(self.tree.conflict(&path));
        };
        self.renamed.list[index].placed = Some(path.clone());
        self.note(&old, ChangeKind::Removed);
        self.note(&path, ChangeKind::Added);
        self.places.push(Step::Rename(Rename {
            from: Spot::Layers(itself),
            to: Spot::Directory(path.clone()),
            inode: stat.st_ino as _,
            exchange,
        }));
        let lower = LowerDirectory { fd, path: old, stat };
        self.merge(&Merged { node, source: changes, path, lower, is_exchanged: exchange })
    }
}
