//! Removing a directory with all in it: never following a link, never deeper than one step, whatever
//! rights its directories lack.

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

/// Removes a directory, if it is there. What lies deeper is moved up, so that no depth is too much.
pub fn tree(path: &Path) -> io::Result<()> {
    match empty(path).and_then(|()| std::fs::remove_dir(path)) {
        // Another process or thread may remove the directory too, and not have finished.
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

/// So many names are looked at before the directory is read again.
const AT_ONCE: usize = 4096;

/// Reads the names in a directory. The iterator repeats an error for ever, so readers stop at the
/// first one.
fn names(directory: &mut Dir) -> impl Iterator<Item = Result<CString, Errno>> {
    let names = directory.iter().map(|entry| Ok(entry?.file_name().to_owned()));
    names.filter(|name| !matches!(name.as_deref().map(CStr::to_bytes), Ok(b"." | b"..")))
}

/// Removes an entry of a directory. If that is a directory its own go up to where it is.
fn remove(top: BorrowedFd, name: &CStr, moved: &mut u64) -> Result<(), Errno> {
    if unlink(top, name)? {
        return Ok(());
    }
    let mut inner = open(top, name)?;
    loop {
        // Each time from the beginning, where nothing is left of the entries before.
        let entries: Vec<CString> = names(&mut inner).take(AT_ONCE).collect::<Result<_, _>>()?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            let fd = inner.as_fd();
            if !unlink(fd, &entry)? {
                // What is moved must be writable itself.
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

/// Removes what is no directory, or an empty one; false if it is a full one.
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

/// Opens a directory whose entries are to be removed.
fn open(at: BorrowedFd, name: &CStr) -> Result<Dir, Errno> {
    make_usable(at, name)?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    Dir::openat(at, name, flags, Mode::empty())
}

/// Gives a directory all rights that its owner can have. Not by its name: that may be a link by now.
fn make_usable(at: BorrowedFd, name: &CStr) -> Result<(), Errno> {
    let access = OFlag::O_PATH;
    let flags = access | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = openat(at, name, flags, Mode::empty())?;
    let same = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let _ = std::fs::set_permissions(same, Permissions::from_mode(0o700));
    Ok(())
}
