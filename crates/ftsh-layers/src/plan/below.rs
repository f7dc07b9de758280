//! Checks of the covered directory: changes by other processes since the attempt began.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Stat, StatxFlags, statx};

use super::Planner;
use crate::entry::{self, find, is_directory, is_reserved};
use crate::error::CommitError;
use crate::step::join;
use crate::upper::Node;

/// Position of the type of a handle in the attribute of an overlay, and of its bytes.
const ORIGIN_KIND: usize = 4;
const ORIGIN_BYTES: usize = 21;

impl Planner<'_> {
    /// Fails if an entry to remove or to replace, or anything below, was changed since the attempt
    /// began.
    pub(super) fn check_removal(
        &mut self,
        parent: impl AsFd,
        name: &CStr,
        path: &[u8],
        found: &Stat,
    ) -> Result<(), CommitError> {
        if self.is_changed(found) {
            return Err(self.tree.conflict(path));
        }
        if !is_directory(found) {
            self.links.removed(found);
            return Ok(());
        }
        // The rename of a directory to another parent requires permission to write.
        self.open(path, found);
        let failed = |error: io::Error| self.tree.failed(path, error);
        let directory = match entry::open_directory(parent, name) {
            // The attempt could not read the directory either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            directory => directory.map_err(failed)?,
        };
        for name in entry::names(&directory).map_err(failed)? {
            let path = join(path, name.to_bytes());
            if self.renamed.is_source(&path) {
                continue;
            }
            if is_reserved(&name) {
                return Err(self.tree.conflict(&path));
            }
            match find(&directory, &name) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(self.tree.failed(&path, error)),
                Ok(None) => return Err(self.tree.conflict(&path)),
                Ok(Some(found)) => self.check_below(&directory, &name, &path, &found)?,
            }
        }
        Ok(())
    }

    /// Checks an entry below a directory to remove, which moves together with the directory.
    fn check_below(
        &mut self,
        parent: impl AsFd,
        name: &CStr,
        path: &[u8],
        found: &Stat,
    ) -> Result<(), CommitError> {
        let before = self.openings.len();
        let result = self.check_removal(parent, name, path, found);
        // Only the directory at the top is renamed.
        for opening in self.openings.drain(before..) {
            if let crate::step::Step::Adjust(adjust) = opening {
                self.opened.remove(&adjust.inode);
            }
        }
        result
    }

    /// Fails if a directory is not the one that the attempt saw.
    pub(super) fn check_same(
        &self,
        parent: impl AsFd,
        node: &Node,
        path: &[u8],
    ) -> Result<(), CommitError> {
        let is_same = match node.marks.origin.as_deref() {
            Some(origin) if origin.len() > ORIGIN_BYTES => {
                match ftsh_sys::file_handle(parent.as_fd(), &node.name) {
                    Ok((kind, bytes)) => {
                        i32::from(origin[ORIGIN_KIND]) == kind && origin[ORIGIN_BYTES..] == bytes
                    }
                    Err(_) => true,
                }
            }
            _ => {
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
        if is_same { Ok(()) } else { Err(self.tree.conflict(path)) }
    }
}
