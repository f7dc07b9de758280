//! Other names of changed files.
//!
//! The overlay of an administrator keeps an index of changed files with several hard links. Names
//! that the attempt did not touch refer to the file in the index, so the commit gives these names
//! to the changed file as well.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Stat, fstat};

use super::Planner;
use super::below::{Handle, indexed_handle};
use crate::change::ChangeKind;
use crate::entry::{self, find, is_directory, is_reserved, is_whiteout, modification_time};
use crate::error::CommitFailure;
use crate::layers::INDEX;
use crate::seen::Seen;
use crate::step::{Adjust, Prepared, Step, Swap, ValueChange, join};
use crate::upper::Node;
use crate::walk::open_below;

/// Changed file of the index.
struct Indexed {
    name: CString,
    stat: Stat,
    /// Number of names in the covered directory, and of names anywhere.
    found: u64,
    links: u64,
    /// One of the names, for messages.
    path: Vec<u8>,
}

/// Files of the index, by the handle of the original.
type Index = BTreeMap<Handle, Indexed>;

/// Directory of the covered directory as the attempt sees it: the final path, and the changes if
/// there are any.
type View<'a> = (Vec<u8>, Option<&'a Node>);

impl<'a> Planner<'a> {
    /// Plans the names that the attempt did not touch of the files that it changed.
    pub(super) fn aliases(&mut self) -> Result<(), CommitFailure> {
        let failed = |error| self.tree.failed(b"", error);
        let mut index = read_index(self.tree.layers.fd()).map_err(failed)?;
        if index.is_empty() {
            return Ok(());
        }
        let root: View = (Vec::new(), Some(self.survey.root()));
        self.scan(&mut index, (Vec::new(), Some(root)))?;
        for (lower, path, inode) in self.renamed.placed() {
            self.scan(&mut index, (lower, Some((path, self.survey.with_inode(inode)))))?;
        }
        match index.into_values().find(|it| it.found < it.links) {
            Some(it) => Err(CommitFailure::Linked { path: self.tree.full(&it.path) }),
            None => Ok(()),
        }
    }

    /// Searches everything below a directory, given by its present path. Without a view, the
    /// attempt has removed the directory.
    fn scan(
        &mut self,
        index: &mut Index,
        top: (Vec<u8>, Option<View<'a>>),
    ) -> Result<(), CommitFailure> {
        let mut pending = vec![top];
        while let Some((lower, view)) = pending.pop() {
            let directory = open_below(&self.tree.directory, &lower)
                .map_err(|error| self.tree.unreachable(&lower, error))?;
            let names = entry::names(&directory);
            for name in names.map_err(|error| self.tree.failed(&lower, error))? {
                let lower_path = join(&lower, name.to_bytes());
                if is_reserved(&name) || self.renamed.is_source(&lower_path) {
                    continue;
                }
                let found = find(&directory, &name)
                    .map_err(|error| self.tree.failed(&lower_path, error))?;
                let Some(found) = found else { continue };
                let node = view.as_ref().and_then(|(_, node)| *node);
                let child = node.and_then(|node| self.survey.child(node, &name));
                let path = view.as_ref().map(|(path, _)| join(path, name.to_bytes()));
                if is_directory(&found) {
                    let is_hidden = child.is_some_and(|child| {
                        !child.is_directory()
                            || child.marks.is_opaque
                            || self.renamed.index(child).is_some()
                    });
                    let view = path.filter(|_| !is_hidden).map(|path| (path, child));
                    pending.push((lower_path, view));
                } else if found.st_nlink > 1
                    && let Ok(handle) = ftsh_sys::file_handle(directory.as_fd(), &name)
                    && let Some(indexed) = index.get_mut(&handle)
                {
                    indexed.found += 1;
                    indexed.links = found.st_nlink as _;
                    if let Some(path) = path.filter(|_| child.is_none()) {
                        indexed.path.clone_from(&path);
                        self.alias(indexed, path, &lower_path, &directory, &found)?;
                    } else {
                        indexed.path = lower_path;
                    }
                }
            }
        }
        Ok(())
    }

    /// Plans one more name of a changed file.
    fn alias(
        &mut self,
        indexed: &Indexed,
        path: Vec<u8>,
        lower_path: &[u8],
        parent: &OwnedFd,
        found: &Stat,
    ) -> Result<(), CommitFailure> {
        if self.is_changed(found) {
            return Err(self.tree.conflict(lower_path));
        }
        self.note(&path, ChangeKind::Modified);
        let aside = self.aside();
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let stat = fstat(parent).map_err(|errno| self.tree.failed(lower_path, errno.into()))?;
        let time = modification_time(&stat);
        let mut adjust = Adjust::new(&path[..end], stat.st_ino as _);
        adjust.time = Some(ValueChange { old: time, new: time });
        // A directory with other changes gets its time later.
        self.adjustments.insert(0, Step::Adjust(adjust));
        self.prepared.push(Prepared { name: indexed.name.clone(), aside: aside.clone() });
        self.place(Swap {
            outer: path,
            inner: aside,
            old: Some(Seen::old(found)),
            new: Some(Seen::new(&indexed.stat)),
        });
        Ok(())
    }
}

fn read_index(layers: impl AsFd) -> io::Result<Index> {
    let mut index = Index::new();
    let directory = match entry::open_directory(layers, INDEX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(index),
        directory => directory?,
    };
    for name in entry::names(&directory)? {
        let Some(handle) = indexed_handle(name.to_bytes()) else { continue };
        if let Some(found) = find(&directory, &name)?
            && !is_whiteout(&found)
            && !is_directory(&found)
        {
            let path = name.to_bytes().to_vec();
            index.insert(handle, Indexed { name, stat: found, found: 0, links: 0, path });
        }
    }
    Ok(index)
}
