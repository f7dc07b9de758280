//! Removal of a directory tree. Follows no links, needs one level of recursion at any depth, and
//! grants itself missing permissions.

use std::ffi::{CStr, CString};
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Removes a directory, if present. Deeper entries are moved up, so path lengths have no limit.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match empty(path).and_then(|()| std::fs::remove_dir(path)) {
        // Another process or thread may be removing the same directory.
        Err(error)
            if is_missing(&error) && path.symlink_metadata().is_err_and(|it| is_missing(&it)) =>
        {
            Ok(())
        }
        result => result,
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn empty(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_encoded_bytes())?;
    let mut top = open(AT_FDCWD, &name)?;
    let mut moved = 0;
    loop {
        let (mut found, mut removed, mut trouble) = (false, false, None);
        let entries: Vec<CString> = names(&mut top).take(AT_ONCE).collect::<Result<_, _>>()?;
        for name in entries {
            found = true;
            match remove(top.as_fd(), &name, &mut moved) {
                Ok(()) => removed = true,
                Err(errno) => trouble = Some(errno),
            }
        }
        match trouble {
            _ if !found => return Ok(()),
            Some(errno) if !removed => return Err(errno.into()),
            _ => {}
        }
    }
}

/// Number of names read from a directory before its next reading.
const AT_ONCE: usize = 4096;

/// Reads the names in a directory. The iterator repeats an error forever, so callers stop at the
/// first error.
fn names(directory: &mut Dir) -> impl Iterator<Item = Result<CString, Errno>> {
    // The end of an iterator rewinds the directory. Btrfs lists no entries that are newer than that.
    drop(directory.iter());
    let names = directory.iter().map(|entry| Ok(entry?.file_name().to_owned()));
    names.filter(|name| !matches!(name.as_deref().map(CStr::to_bytes), Ok(b"." | b"..")))
}

/// Returns true if a directory may have this name because a removal of a tree was interrupted.
pub fn is_left_by_removal(name: &[u8]) -> bool {
    name.strip_prefix(b".")
        .is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// Removes an entry of a directory. The contents of a subdirectory are moved to `top`.
fn remove(top: BorrowedFd, name: &CStr, moved: &mut u64) -> Result<(), Errno> {
    if unlink(top, name)? {
        return Ok(());
    }
    let mut inner = open(top, name)?;
    loop {
        // Reads from the beginning, since the entries read before are gone.
        let entries: Vec<CString> = names(&mut inner).take(AT_ONCE).collect::<Result<_, _>>()?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            let fd = inner.as_fd();
            if !unlink(fd, &entry)? {
                // Moving a directory requires write permission for it.
                let _ = make_usable(fd, &entry);
                let free = loop {
                    *moved += 1;
                    let free = CString::new(format!(".{moved}")).unwrap_or_default();
                    match renameat(fd, entry.as_c_str(), top, free.as_c_str()) {
                        Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => {}
                        result => break result,
                    }
                };
                free?;
            }
        }
    }
    unlinkat(top, name, UnlinkatFlags::RemoveDir)
}

/// Removes a file or an empty directory. Returns false for a directory with entries.
fn unlink(directory: BorrowedFd, name: &CStr) -> Result<bool, Errno> {
    match unlinkat(directory, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => return Ok(true),
        Err(Errno::EISDIR | Errno::EPERM) => {}
        Err(errno) => return Err(errno),
    }
    match unlinkat(directory, name, UnlinkatFlags::RemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(true),
        Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Opens a directory for removal of its entries.
fn open(at: BorrowedFd, name: &CStr) -> Result<Dir, Errno> {
    make_usable(at, name)?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    Dir::openat(at, name, flags, Mode::empty())
}

/// Gives the owner all permissions of a directory. Uses a descriptor, since the name may refer to a
/// link by now.
fn make_usable(at: BorrowedFd, name: &CStr) -> Result<(), Errno> {
    let access = OFlag::O_PATH;
    let flags = access | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = openat(at, name, flags, Mode::empty())?;
    let same = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let _ = std::fs::set_permissions(same, Permissions::from_mode(0o700));
    Ok(())
}
