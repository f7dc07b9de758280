//! Other names of changed files.
//!
//! The overlay of an administrator keeps an index of changed files with several hard links. Names
//! that the attempt did not touch refer to the file in the index, so the commit gives these names
//! to the changed file as well.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags, ResolveFlags, Stat, fstat, openat2};

use super::Planner;
use super::below::{Handle, indexed_handle};
use crate::change::ChangeKind;
use crate::entry::{self, find, is_directory, is_reserved, is_whiteout, modification_time};
use crate::error::CommitFailure;
use crate::layers::INDEX;
use crate::step::{Adjust, Prepared, Rename, Spot, Step, ValueChange, join};
use crate::upper::Node;

/// Changed file of the index.
struct Indexed {
    name: CString,
    inode: u64,
    /// Number of names in the covered directory, and of names anywhere.
    found: u64,
    links: u64,
    /// One of the names, for messages.
    path: Vec<u8>,
}

/// Files of the index, by the handle of the original.
type Index = BTreeMap<Handle, Indexed>;

/// Directory of the covered directory as the attempt sees it.
#[derive(Clone, Copy)]
struct View<'a> {
    /// Final path.
    path: &'a [u8],
    node: Option<&'a Node>,
}

impl Planner<'_> {
    /// Plans the names that the attempt did not touch of the files that it changed.
    pub(super) fn aliases(&mut self, root: &Node) -> Result<(), CommitFailure> {
        let failed = |error| self.tree.failed(b"", error);
        let mut index = read_index(self.tree.layers.fd()).map_err(failed)?;
        if index.is_empty() {
            return Ok(());
        }
        let directory = entry::open_place(&self.tree.directory, c".").map_err(failed)?;
        self.scan(&mut index, &directory, b"", Some(View { path: b"", node: Some(root) }))?;
        for (lower, path, inode) in self.renamed.placed() {
            let directory = self.open_below(&lower)?;
            let node = node_of(root, inode);
            self.scan(&mut index, &directory, &lower, Some(View { path: &path, node }))?;
        }
        match index.into_values().find(|it| it.found < it.links) {
            Some(it) => Err(CommitFailure::Linked { path: self.tree.full(&it.path) }),
            None => Ok(()),
        }
    }

    /// Opens a directory that the attempt renamed. Fails if another process removed the
    /// directory.
    pub(super) fn open_below(&self, path: &[u8]) -> Result<OwnedFd, CommitFailure> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        openat2(&self.tree.directory, OsStr::from_bytes(path), flags, Mode::empty(), within)
            .map_err(|_| self.tree.conflict(path))
    }

    /// Searches a directory. Without a view, the attempt has removed the directory.
    fn scan(
        &mut self,
        index: &mut Index,
        directory: &OwnedFd,
        lower: &[u8],
        view: Option<View>,
    ) -> Result<(), CommitFailure> {
        let names = entry::open_directory(directory, c".").and_then(entry::names);
        for name in names.map_err(|error| self.tree.failed(lower, error))? {
            let lower_path = join(lower, name.to_bytes());
            if is_reserved(&name) || self.renamed.is_source(&lower_path) {
                continue;
            }
            let failed = |error| self.tree.failed(&lower_path, error);
            let Some(found) = find(directory, &name).map_err(failed)? else { continue };
            let child = view.and_then(|view| view.node).and_then(|node| node.child(&name));
            let path = view.map(|view| join(view.path, name.to_bytes()));
            if is_directory(&found) {
                let inner = entry::open_place(directory, &name).map_err(failed)?;
                let is_hidden = child.is_some_and(|child| {
                    !child.is_directory()
                        || child.marks.is_opaque
                        || self.renamed.index(child).is_some()
                });
                let view = path.as_deref().filter(|_| !is_hidden);
                let view = view.map(|path| View { path, node: child });
                self.scan(index, &inner, &lower_path, view)?;
            } else if found.st_nlink > 1
                && let Ok(handle) = ftsh_sys::file_handle(directory.as_fd(), &name)
                && let Some(indexed) = index.get_mut(&handle)
            {
                indexed.found += 1;
                indexed.links = found.st_nlink as _;
                if let Some(path) = path.filter(|_| child.is_none()) {
                    indexed.path.clone_from(&path);
                    self.alias(indexed, path, &lower_path, directory, &found)?;
                } else {
                    indexed.path = lower_path;
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
        self.places.push(Step::Rename(Rename {
            from: Spot::Layers(aside),
            to: Spot::Directory(path),
            inode: indexed.inode,
            exchange: true,
        }));
        Ok(())
    }
}

/// Returns the directory with this inode among the changes.
fn node_of(node: &Node, inode: u64) -> Option<&Node> {
    if node.inode() == inode {
        return Some(node);
    }
    node.children.iter().find_map(|child| node_of(child, inode))
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
            let inode = found.st_ino as _;
            let path = name.to_bytes().to_vec();
            index.insert(handle, Indexed { name, inode, found: 0, links: 0, path });
        }
    }
    Ok(index)
}
