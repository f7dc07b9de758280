//! Checks of the covered directory: changes by other processes since the attempt began.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Stat, StatxFlags, fstat, statx};

use super::Planner;
use crate::entry::{self, is_directory, is_reserved};
use crate::error::CommitFailure;
use crate::upper::Node;
use crate::walk::{Walked, walk};

/// Type and bytes of a file's handle.
pub(super) type Handle = (i32, Vec<u8>);

/// Position of the type of a handle in the record of an overlay.
const RECORD_KIND: usize = 4;

/// Position of the bytes of a handle in the record of an overlay, after the file system's id.
const RECORD_BYTES: usize = 21;

/// Returns the handle in an attribute of an overlay, if the attribute has one.
fn recorded_handle(record: &[u8]) -> Option<Handle> {
    let bytes = record.get(RECORD_BYTES..)?;
    Some((record[RECORD_KIND].into(), bytes.to_vec()))
}

/// Returns the handle that the name of an entry of the index encodes.
pub(super) fn indexed_handle(name: &[u8]) -> Option<Handle> {
    let digits =
        name.chunks(2).map(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
    recorded_handle(&digits.collect::<Option<Vec<u8>>>()?)
}

impl Planner<'_> {
    /// Fails if an entry to remove or to replace, or anything below, was changed since the attempt
    /// began.
    pub(super) fn check_removal(&mut self, path: &[u8], found: &Stat) -> Result<(), CommitFailure> {
        if self.is_changed(found) {
            return Err(self.tree.conflict(path));
        }
        if !is_directory(found) {
            self.links.removed(found);
            return Ok(());
        }
        // The rename of a directory to another parent requires permission to write. The entries
        // below move together with the directory.
        self.open(path, found);
        let tree = self.tree;
        walk(
            tree.directory.as_fd(),
            path,
            |path, error| tree.failed(path, error),
            |name, entry| {
                let Walked { parent, path, found } = entry;
                if self.renamed.is_source(&path) {
                    let parent = fstat(parent).map_err(|errno| tree.failed(&path, errno.into()))?;
                    self.touched.push(entry::inode(&parent));
                    return Ok(false);
                }
                match found {
                    Some(found) if !is_reserved(name) && !self.is_changed(&found) => {
                        if !is_directory(&found) {
                            self.links.removed(&found);
                        }
                        Ok(true)
                    }
                    _ => Err(tree.conflict(&path)),
                }
            },
        )
    }

    /// Fails if a directory is not the one that the attempt saw.
    pub(super) fn check_same(
        &self,
        parent: impl AsFd,
        node: &Node,
        path: &[u8],
    ) -> Result<(), CommitFailure> {
        let recorded = node.marks.origin.as_deref().and_then(recorded_handle);
        let is_same = match recorded {
            Some(recorded) => {
                let found = ftsh_sys::file_handle(parent.as_fd(), &node.name);
                found.map_or(true, |found| found == recorded)
            }
            None => {
                // The user may not use handles.
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                let found = statx(&parent, node.name.as_c_str(), flags, StatxFlags::BTIME);
                let made = found.ok().filter(|found| {
                    StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME)
                });
                made.is_none_or(|found| {
                    (found.stx_btime.tv_sec, i64::from(found.stx_btime.tv_nsec))
                        <= self.tree.start.since
                })
            }
        };
        // The overlay of an outer attempt copies a directory before a change.
        if is_same || self.tree.is_copied(path) { Ok(()) } else { Err(self.tree.conflict(path)) }
    }
}
