//! Copy of the changes of an attempt to the outer attempt.
//!
//! No rename leads from one mount to another, so entries are copied. After an error, the outer attempt
//! has a part of the changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid,
    XattrFlags, chmodat, chownat, linkat, lsetxattr, mkdirat, mknodat, openat, readlinkat,
    renameat, seek, symlinkat, utimensat,
};

use super::execute::{Executor, Obstacle, Roots, Strictness, name_of, open_parent};
use crate::entry::{self, find, is_directory, kind, mode, path_in};
use crate::layers::attributes;
use crate::step::{Step, Swap, join};
use crate::tree::CoveredTree;
use crate::walk::open_below;

/// Name of a copy until it is complete: a name of layers, which files of users do not have.
const INCOMPLETE: &CStr = c".ftsh-0000000000000000-0";

/// Size in bytes of a part of a file that is copied at once.
const PART: usize = 256 * 1024;

/// Copier of entries.
#[derive(Default)]
struct Copier {
    /// Copies of files with several hard links, by the inode of the original.
    links: BTreeMap<u64, OwnedFd>,
}

/// Executes the steps of a commit by copies. The entries of the layers stay.
///
/// Returns the step that failed, with its error.
pub(crate) fn merge<'a>(
    tree: &CoveredTree,
    steps: &'a [Step],
) -> Result<(), (&'a Step, io::Error)> {
    let (directory, layers) = (tree.directory.as_fd(), tree.layers.fd());
    let roots = vec![Roots { directory, layers: Some(layers), since: tree.start.since }];
    let mut observe = || {};
    let (touched, decided) = (BTreeSet::new(), tree.start.since);
    let mut executor = Executor::new(roots, Strictness::Nested, touched, decided, &mut observe);
    let mut copier = Copier::default();
    for step in steps {
        let result = match step {
            Step::Swap(Swap { outer, inner, new: Some(_), .. }) => {
                copier.place((layers, inner), (directory, outer))
            }
            Step::Swap(Swap { outer, .. }) => remove_below(directory, outer),
            step => executor.execute(0, step).map_err(|obstacle| match obstacle {
                Obstacle::Failed(error) => error,
                Obstacle::Changed => io::ErrorKind::NotFound.into(),
            }),
        };
        result.map_err(|error| (step, error))?;
    }
    Ok(())
}

fn remove_below(directory: BorrowedFd, path: &[u8]) -> io::Result<()> {
    remove(open_parent(directory, path)?.as_fd(), &name_of(path)?)
}

/// Removes an entry with everything below.
fn remove(parent: BorrowedFd, name: &CStr) -> io::Result<()> {
    match find(parent, name)? {
        None => Ok(()),
        Some(found) if is_directory(&found) => ftsh_sys::remove_tree(&path_in(parent, name)),
        Some(_) => std::fs::remove_file(path_in(parent, name)),
    }
}

impl Copier {
    /// Copies an entry of the layers to its place.
    fn place(
        &mut self,
        (layers, from): (BorrowedFd, &[u8]),
        (directory, to): (BorrowedFd, &[u8]),
    ) -> io::Result<()> {
        let (source, target) = (open_parent(layers, from)?, open_parent(directory, to)?);
        let (name, new_name) = (name_of(from)?, name_of(to)?);
        let found = find(&source, &name)?.ok_or(io::ErrorKind::NotFound)?;
        self.copy(source.as_fd(), &name, &found, target.as_fd(), INCOMPLETE)?;
        let replaced = find(&target, &new_name)?;
        if replaced.is_some_and(|it| is_directory(&it) || is_directory(&found)) {
            remove(target.as_fd(), &new_name)?;
        }
        Ok(renameat(&target, INCOMPLETE, &target, new_name.as_c_str())?)
    }

    /// Copies an entry with everything below to a new name.
    fn copy(
        &mut self,
        source: BorrowedFd,
        name: &CStr,
        found: &Stat,
        target: BorrowedFd,
        new_name: &CStr,
    ) -> io::Result<()> {
        self.copy_entry(source, name, found, target, new_name)?;
        if !is_directory(found) {
            return Ok(());
        }
        // Paths below the entry and its copy, of directories that are created.
        let (mut pending, mut created) = (vec![Vec::new()], Vec::new());
        let below = |top: &CStr, path: &[u8]| match path {
            [] => top.to_bytes().to_vec(),
            path => join(top.to_bytes(), path),
        };
        while let Some(path) = pending.pop() {
            let inner = open_below(source, &below(name, &path))?;
            let new_inner = open_below(target, &below(new_name, &path))?;
            for name in entry::names(&inner)? {
                let Some(found) = find(&inner, &name)? else { continue };
                self.copy_entry(inner.as_fd(), &name, &found, new_inner.as_fd(), &name)?;
                if is_directory(&found) {
                    pending.push(join(&path, name.to_bytes()));
                }
            }
            created.push(path);
        }
        // New entries change the time of a directory, and permissions may deny them.
        for path in created.into_iter().rev() {
            let (from, to) = (below(name, &path), below(new_name, &path));
            let (from_parent, to_parent) = (open_parent(source, &from)?, open_parent(target, &to)?);
            let (from, to) = (name_of(&from)?, name_of(&to)?);
            let found = find(&from_parent, &from)?.ok_or(io::ErrorKind::NotFound)?;
            set_facts(from_parent.as_fd(), &from, &found, to_parent.as_fd(), &to)?;
        }
        Ok(())
    }

    /// Copies an entry. A new directory stays empty and without facts.
    fn copy_entry(
        &mut self,
        source: BorrowedFd,
        name: &CStr,
        found: &Stat,
        target: BorrowedFd,
        new_name: &CStr,
    ) -> io::Result<()> {
        if let Some(link) = self.links.get(&entry::inode(found)) {
            let link = format!("/proc/self/fd/{}", link.as_raw_fd());
            return Ok(linkat(CWD, link, target, new_name, AtFlags::SYMLINK_FOLLOW)?);
        }
        match kind(found) {
            FileType::Directory => return Ok(mkdirat(target, new_name, Mode::RWXU)?),
            FileType::RegularFile => copy_content(source, name, found, target, new_name)?,
            FileType::Symlink => {
                let to = readlinkat(source, name, Vec::new())?;
                symlinkat(to.as_c_str(), target, new_name)?;
            }
            kind => mknodat(target, new_name, kind, Mode::RUSR | Mode::WUSR, found.st_rdev)?,
        }
        set_facts(source, name, found, target, new_name)?;
        if found.st_nlink > 1 {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let copy = openat(target, new_name, flags, Mode::empty())?;
            self.links.insert(entry::inode(found), copy);
        }
        Ok(())
    }
}

/// Copies the content of a file to a new file. Holes stay holes.
fn copy_content(
    source: BorrowedFd,
    name: &CStr,
    found: &Stat,
    target: BorrowedFd,
    new_name: &CStr,
) -> io::Result<()> {
    let source = open_file(source, name, found)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let target = File::from(openat(target, new_name, flags, Mode::RUSR | Mode::WUSR)?);
    let length = u64::try_from(found.st_size).unwrap_or(0);
    let mut part = vec![0; PART.min(length.try_into().unwrap_or(PART))];
    let mut end = 0;
    while end < length {
        let start = match seek(&source, SeekFrom::Data(end)) {
            Err(rustix::io::Errno::NXIO) => break, // the rest is a hole
            start => start?,
        };
        end = seek(&source, SeekFrom::Hole(start))?;
        let mut at = start;
        while at < end {
            let wanted = part.len().min((end - at).try_into().unwrap_or(part.len()));
            let read = source.read_at(&mut part[..wanted], at)?;
            if read == 0 {
                break;
            }
            target.write_all_at(&part[..read], at)?;
            at += read as u64;
        }
    }
    target.set_len(length)
}

/// Opens a file for reading, though its permissions may deny that to its owner.
fn open_file(parent: BorrowedFd, name: &CStr, found: &Stat) -> io::Result<File> {
    let open = || {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(parent, name, flags, Mode::empty()).map(File::from)
    };
    match open() {
        Err(rustix::io::Errno::ACCESS) => {
            // The layers are dropped after the copy.
            chmodat(parent, name, Mode::from_raw_mode(mode(found) | 0o400), AtFlags::empty())?;
            Ok(open()?)
        }
        file => Ok(file?),
    }
}

/// Gives a copy the owner, the permissions, the attributes and the times of its original.
fn set_facts(
    source: BorrowedFd,
    name: &CStr,
    found: &Stat,
    target: BorrowedFd,
    new_name: &CStr,
) -> io::Result<()> {
    let owner = (Some(Uid::from_raw(found.st_uid)), Some(Gid::from_raw(found.st_gid)));
    match chownat(target, new_name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW) {
        // Without privileges, all files have one owner.
        Err(rustix::io::Errno::PERM) => {}
        result => result?,
    }
    let path = path_in(target, new_name);
    for (name, value) in attributes(&path_in(source, name))? {
        lsetxattr(&path, CString::as_c_str(&name), &value, XattrFlags::empty())?;
    }
    if kind(found) != FileType::Symlink {
        chmodat(target, new_name, Mode::from_raw_mode(mode(found)), AtFlags::empty())?;
    }
    let time = |tv_sec: i64, tv_nsec: i64| Timespec { tv_sec, tv_nsec: tv_nsec as _ };
    let times = Timestamps {
        last_access: time(found.st_atime as _, found.st_atime_nsec as _),
        last_modification: time(found.st_mtime as _, found.st_mtime_nsec as _),
    };
    Ok(utimensat(target, new_name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
