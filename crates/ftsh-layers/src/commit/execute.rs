//! Execution of the steps of a commit.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Timespec, Timestamps, Uid,
    XattrFlags, chmod, chownat, fstat, openat2, removexattr, renameat_with, setxattr, utimensat,
};

use crate::entry::{self, FileTime, find, path_of};
use crate::step::{Adjust, Rename, Spot, Step};

/// Descriptors of a covered directory and of its layers.
#[derive(Clone, Copy)]
pub(crate) struct Roots<'a> {
    pub(crate) directory: BorrowedFd<'a>,
    pub(crate) layers: BorrowedFd<'a>,
}

/// Handling of steps that do not match the file system.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Every difference from the plan is an error.
    Exact,
    /// Steps executed before are skipped, and entries made by others since are replaced.
    Resumed,
    /// Inodes are not compared, because an outer overlay gives new ones to entries that it copies.
    Nested,
}

/// Executor of steps. It keeps the parents of the last rename open.
pub(crate) struct Executor<'a> {
    roots: Vec<Roots<'a>>,
    strictness: Strictness,
    from: Option<OpenParent>,
    to: Option<OpenParent>,
}

/// Open parent of an entry.
struct OpenParent {
    tree: usize,
    is_in_layers: bool,
    path: Vec<u8>,
    fd: OwnedFd,
}

impl<'a> Executor<'a> {
    pub(crate) fn new(roots: Vec<Roots<'a>>, strictness: Strictness) -> Self {
        Self { roots, strictness, from: None, to: None }
    }

    /// Executes a step on the tree with this index.
    pub(crate) fn execute(&mut self, tree: usize, step: &Step) -> io::Result<()> {
        let result = match step {
            Step::Rename(rename) => self.rename(tree, rename),
            Step::Adjust(adjust) => self.adjust(tree, adjust),
        };
        match result {
            // The entry was moved on by a later step.
            Err(error) if self.is_resumed() && error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn is_resumed(&self) -> bool {
        self.strictness == Strictness::Resumed
    }

    fn rename(&mut self, tree: usize, rename: &Rename) -> io::Result<()> {
        let roots = self.roots[tree];
        let (from_name, to_name) = (name_of(&rename.from)?, name_of(&rename.to)?);
        let from = OpenParent::open(self.from.take(), roots, tree, &rename.from)?;
        if self.is_resumed() {
            let found = find(&from.fd, &from_name)?;
            if found.is_none_or(|found| entry::inode(&found) != rename.inode) {
                return Ok(());
            }
        }
        let to = match OpenParent::open(self.to.take(), roots, tree, &rename.to) {
            // This is no step executed before, so the caller must not skip the error.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(io::Error::other("the directory is missing"));
            }
            to => to?,
        };
        let exchange = match self.strictness {
            Strictness::Exact | Strictness::Nested => rename.exchange,
            Strictness::Resumed => find(&to.fd, &to_name)?.is_some(),
        };
        let flags = if exchange { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        renameat_with(&from.fd, from_name.as_c_str(), &to.fd, to_name.as_c_str(), flags)?;
        // The path of a parent may lead elsewhere after the rename of a directory.
        let is_moved = |parent: &OpenParent| {
            parent.path.starts_with(rename.from.path()) || parent.path.starts_with(rename.to.path())
        };
        self.from = Some(from).filter(|parent| !is_moved(parent));
        self.to = Some(to).filter(|parent| !is_moved(parent));
        Ok(())
    }

    fn adjust(&mut self, tree: usize, adjust: &Adjust) -> io::Result<()> {
        let directory = open(self.roots[tree].directory, &adjust.path)?;
        let found = fstat(&directory)?;
        if entry::inode(&found) != adjust.inode && self.strictness != Strictness::Nested {
            let error = io::Error::other("another process replaced the directory");
            return if self.is_resumed() { Ok(()) } else { Err(error) };
        }
        // Descriptors of this kind accept no changes, but paths through the descriptors do.
        let path = path_of(directory.as_fd());
        let set_mode = |mode| chmod(&path, Mode::from_raw_mode(mode));
        if let Some(owner) = &adjust.owner {
            let (user, group) = owner.new;
            let owner = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            chownat(CWD, &path, owner.0, owner.1, AtFlags::empty())?;
        }
        let present = entry::mode(&found);
        if !adjust.attributes.is_empty() {
            // Attributes of users require permission to write.
            set_mode(present | 0o200)?;
        }
        for (name, value) in &adjust.attributes {
            let name = CString::new(name.as_slice())?;
            match &value.new {
                Some(value) => setxattr(&path, name.as_c_str(), value, XattrFlags::empty())?,
                None => match removexattr(&path, name.as_c_str()) {
                    Err(rustix::io::Errno::NODATA) => {}
                    result => result?,
                },
            }
        }
        let wanted = adjust.mode.as_ref().map(|mode| mode.new);
        if adjust.owner.is_some() || !adjust.attributes.is_empty() || wanted.is_some() {
            set_mode(wanted.unwrap_or(present))?;
        }
        match &adjust.time {
            Some(time) => set_time(directory.as_fd(), time.new),
            None => Ok(()),
        }
    }

    /// Restores the time of a directory that a commit did not change after all.
    pub(crate) fn restore_time(&self, tree: usize, adjust: &Adjust) -> io::Result<()> {
        let Some(time) = &adjust.time else { return Ok(()) };
        let directory = open(self.roots[tree].directory, &adjust.path)?;
        if entry::inode(&fstat(&directory)?) != adjust.inode {
            return Ok(());
        }
        set_time(directory.as_fd(), time.old)
    }
}

fn set_time(directory: BorrowedFd, (seconds, nanoseconds): FileTime) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds as _ },
    };
    Ok(utimensat(CWD, path_of(directory), &times, AtFlags::empty())?)
}

/// Returns the last component of a path.
pub(crate) fn name_of(spot: &Spot) -> io::Result<CString> {
    let name = spot.path().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    Ok(CString::new(name)?)
}

impl OpenParent {
    /// Opens the parent of an entry, unless the previous parent is the same.
    fn open(last: Option<Self>, roots: Roots, tree: usize, spot: &Spot) -> io::Result<Self> {
        let path = spot.path();
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let path = &path[..end];
        let is_in_layers = matches!(spot, Spot::Layers(_));
        if let Some(last) = last
            && last.tree == tree
            && last.is_in_layers == is_in_layers
            && last.path == path
        {
            return Ok(last);
        }
        Ok(Self { tree, is_in_layers, path: path.to_vec(), fd: open_parent(roots, spot)? })
    }
}

/// Opens the parent of an entry.
pub(crate) fn open_parent(roots: Roots, spot: &Spot) -> io::Result<OwnedFd> {
    let root = match spot {
        Spot::Layers(_) => roots.layers,
        Spot::Directory(_) => roots.directory,
    };
    let end = spot.path().iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    open(root, &spot.path()[..end])
}

/// Opens a directory below another one, without links on the way.
fn open(root: BorrowedFd, path: &[u8]) -> io::Result<OwnedFd> {
    let path = if path.is_empty() { b"." } else { path };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(openat2(root, OsStr::from_bytes(path), flags, Mode::empty(), within)?)
}
