//! Directories that the attempt renamed.
//!
//! The overlay of an administrator records the old path of a renamed directory and keeps only the
//! changes of its entries. The commit puts the changes and the directory aside first, so renames may
//! exchange directories or move one into another.

use std::collections::BTreeMap;

use rustix::fs::{Stat, fstat};

use super::{LowerDirectory, Merged, Planner};
use crate::change::ChangeKind;
use crate::error::CommitFailure;
use crate::layers::UPPER;
use crate::seen::Seen;
use crate::step::{Move, Step, Swap, join};
use crate::upper::{Node, Survey};
use crate::walk::open_place_below;

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
    /// Facts about the directory at the old path, with the places of its changes and itself below
    /// the layers.
    found: Option<(Stat, Vec<u8>, Vec<u8>)>,
    /// Final path, once planned.
    placed: Option<Vec<u8>>,
}

impl Renamed {
    /// Finds the renamed directories among the changes.
    pub(super) fn find(survey: &Survey) -> Self {
        let mut renamed = Self::default();
        let mut pending = vec![(survey.root(), UPPER.to_bytes().to_vec(), Some(Vec::new()))];
        while let Some((node, upper, lower)) = pending.pop() {
            for child in survey.children(node).iter().filter(|child| child.is_directory()) {
                let name = child.name.to_bytes();
                let upper = join(&upper, name);
                let lower = lower.as_deref();
                let usual = lower.filter(|_| !child.marks.is_opaque).map(|lower| join(lower, name));
                let recorded = match child.marks.redirect.as_deref() {
                    Some([b'/', path @ ..]) => Some(path.to_vec()),
                    Some(name) => lower.map(|lower| join(lower, name)),
                    None => None,
                };
                if let Some(lower) = recorded.clone().filter(|_| recorded != usual) {
                    let (upper, inode) = (upper.clone(), child.inode());
                    renamed.by_inode.insert(inode, renamed.list.len());
                    let (found, placed) = (None, None);
                    renamed.list.push(RenamedDirectory { upper, inode, lower, found, placed });
                }
                pending.push((child, upper, recorded.or(usual)));
            }
        }
        renamed
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

impl<'a> Planner<'a> {
    /// Returns the steps that put renamed directories and their changes aside.
    pub(super) fn put_renamed_aside(&mut self) -> Result<Vec<Step>, CommitFailure> {
        let mut steps = Vec::new();
        for index in 0..self.renamed.list.len() {
            let path = self.renamed.list[index].lower.clone();
            let fd = open_place_below(&self.tree.directory, &path)
                .map_err(|error| self.tree.unreachable(&path, error))?;
            let stat = fstat(&fd).map_err(|errno| self.tree.failed(&path, errno.into()))?;
            let (changes, itself) = (self.aside(), self.aside());
            self.renamed.list[index].found = Some((stat, changes, itself));
        }
        let renamed = &self.renamed;
        for index in renamed.deepest_first(|it| &it.upper) {
            let it = &renamed.list[index];
            let Some((_, changes, _)) = &it.found else { continue };
            let (from, to, inode) = (it.upper.clone(), changes.clone(), it.inode);
            steps.push(Step::Move(Move { from, to, inode }));
        }
        for index in renamed.deepest_first(|it| &it.lower) {
            let it = &renamed.list[index];
            let Some((stat, _, itself)) = &it.found else { continue };
            let (outer, inner) = (it.lower.clone(), itself.clone());
            steps.push(Step::Swap(Swap {
                outer,
                inner,
                old: Some(Seen::renamed(stat)),
                new: None,
            }));
        }
        Ok(steps)
    }

    /// Plans the new place of a renamed directory, in place of an entry if one was `found`, and
    /// then its changes.
    pub(super) fn place_renamed(
        &mut self,
        node: &'a Node,
        path: Vec<u8>,
        index: usize,
        found: Option<&Stat>,
    ) -> Result<(), CommitFailure> {
        let old = self.renamed.list[index].lower.clone();
        let Some((stat, changes, itself)) = self.renamed.list[index].found.take() else {
            return Err(self.tree.conflict(&path));
        };
        self.renamed.list[index].placed = Some(path.clone());
        self.note(&old, ChangeKind::Removed);
        self.note(&path, ChangeKind::Added);
        self.place(Swap {
            outer: path.clone(),
            inner: itself,
            old: found.map(Seen::old),
            new: Some(Seen::renamed(&stat)),
        });
        self.merge_later(Merged {
            node,
            source: changes,
            path,
            lower: LowerDirectory { path: old, stat },
            is_exchanged: found.is_some(),
        });
        Ok(())
    }
}
