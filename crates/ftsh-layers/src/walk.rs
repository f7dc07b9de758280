//! Directories below other ones, at any depth and by paths of any length.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags, ResolveFlags, Stat, openat2};

use crate::entry::{find, is_directory, names};
use crate::step::{RelativePath, join};

/// Maximum number of bytes of a path that the kernel accepts.
const MAX_PATH: usize = 4095;

/// Opens a directory below another one as a place for paths, without links on the way.
pub(crate) fn open_place_below(root: impl AsFd, path: &[u8]) -> io::Result<OwnedFd> {
    open(root.as_fd(), path, OFlags::PATH)
}

/// Opens a directory below another one for reading, without links on the way.
pub(crate) fn open_below(root: impl AsFd, path: &[u8]) -> io::Result<OwnedFd> {
    open(root.as_fd(), path, OFlags::RDONLY)
}

fn open(root: BorrowedFd, path: &[u8], access: OFlags) -> io::Result<OwnedFd> {
    let part = |at: BorrowedFd, path: &[u8], access| {
        let path = if path.is_empty() { b"." } else { path };
        let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        openat2(at, OsStr::from_bytes(path), flags, Mode::empty(), within)
    };
    if path.len() <= MAX_PATH {
        return Ok(part(root, path, access)?);
    }
    // No name is as long as the maximum.
    let end = path[..=MAX_PATH].iter().rposition(|byte| *byte == b'/').unwrap_or(MAX_PATH);
    let directory = part(root, &path[..end], OFlags::PATH)?;
    open(directory.as_fd(), &path[end + 1..], access)
}

/// Entry that a walk has found.
pub(crate) struct Walked<'a> {
    pub(crate) parent: BorrowedFd<'a>,
    /// Path below the root of the walk.
    pub(crate) path: RelativePath,
    /// Facts about the entry, or none if the entry has just been removed.
    pub(crate) found: Option<Stat>,
}

/// Calls `visit` for everything below a directory. The entries of a directory follow if `visit` has
/// returned true for the directory. Entries that this user cannot read are left out.
pub(crate) fn walk<E>(
    root: BorrowedFd,
    top: &[u8],
    failed: impl Fn(&[u8], io::Error) -> E,
    mut visit: impl FnMut(&CStr, Walked) -> Result<bool, E>,
) -> Result<(), E> {
    // Recursion, or a descriptor for each level, would limit the depth.
    let mut pending = vec![top.to_vec()];
    while let Some(path) = pending.pop() {
        let directory = match open_below(root, &path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            directory => directory.map_err(|error| failed(&path, error))?,
        };
        for name in names(&directory).map_err(|error| failed(&path, error))? {
            let path = join(&path, name.to_bytes());
            let found = match find(&directory, &name) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
                found => found.map_err(|error| failed(&path, error))?,
            };
            let parent = directory.as_fd();
            let goes_on = visit(&name, Walked { parent, path: path.clone(), found })?;
            if goes_on && found.is_some_and(|found| is_directory(&found)) {
                pending.push(path);
            }
        }
    }
    Ok(())
}
