//! Execution of the steps of a commit.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, RenameFlags, Stat, Timespec, Timestamps, Uid, XattrFlags, chmod,
    chownat, fstat, removexattr, renameat_with, setxattr, utimensat,
};
use rustix::io::Errno;

use crate::entry::{self, FileTime, change_time, find, is_directory, path_of};
use crate::seen::Seen;
use crate::step::{Adjust, Move, Step, Swap, ValueChange};
use crate::walk::{Walked, open_place_below, walk};

/// Covered directory and its layers.
#[derive(Clone, Copy)]
pub(crate) struct Roots<'a> {
    pub(crate) directory: BorrowedFd<'a>,
    /// `None` for layers that are gone, which have no steps left.
    pub(crate) layers: Option<BorrowedFd<'a>>,
    /// Time of the file system at the begin of the attempt.
    pub(crate) since: FileTime,
}

/// Handling of steps that do not match the file system.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Every difference from the plan is an error.
    Exact,
    /// Steps executed before are skipped.
    Resumed,
    /// Inodes are not compared, because an outer overlay gives new ones to entries that it copies.
    Nested,
}

/// Reason why a step was not executed.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// Another process has changed the entry since the comparison. The change is in place.
    Changed,
    Failed(io::Error),
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Errno> for Obstacle {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno.into())
    }
}

/// Executor of steps. It keeps the parents of the last exchange open.
pub(crate) struct Executor<'a> {
    roots: Vec<Roots<'a>>,
    strictness: Strictness,
    /// Trees and inodes of entries whose time of change the commit itself has changed.
    touched: BTreeSet<(usize, u64)>,
    /// Time of the note. All changes of the attempt are older.
    decided: FileTime,
    /// Called before each change of the file system, and before the look at its result.
    observe: &'a mut dyn FnMut(),
    inner: Option<OpenParent>,
    outer: Option<OpenParent>,
}

/// Open parent and name of an entry.
type Place<'p> = (&'p OwnedFd, &'p CStr);

/// Open parent of an entry.
struct OpenParent {
    tree: usize,
    path: Vec<u8>,
    fd: OwnedFd,
}

impl<'a> Executor<'a> {
    pub(crate) fn new(
        roots: Vec<Roots<'a>>,
        strictness: Strictness,
        touched: BTreeSet<(usize, u64)>,
        decided: FileTime,
        observe: &'a mut dyn FnMut(),
    ) -> Self {
        Self { roots, strictness, touched, decided, observe, inner: None, outer: None }
    }

    /// Executes a step on the tree with this index.
    pub(crate) fn execute(&mut self, tree: usize, step: &Step) -> Result<(), Obstacle> {
        (self.observe)();
        match step {
            Step::Swap(swap) => self.swap(tree, swap),
            Step::Move(it) => self.relocate(tree, it),
            Step::Adjust(adjust) => self.adjust(tree, adjust),
        }
    }

    fn is_resumed(&self) -> bool {
        self.strictness == Strictness::Resumed
    }

    /// Exchanges two entries, if the outer one is still as the comparison saw it.
    fn swap(&mut self, tree: usize, swap: &Swap) -> Result<(), Obstacle> {
        let Roots { directory, layers: Some(layers), .. } = self.roots[tree] else { return Ok(()) };
        let inner = match OpenParent::open(self.inner.take(), layers, tree, &swap.inner) {
            // The step is not necessary, because the steps around it were not executed.
            Err(error) if self.is_resumed() && is_gone(&error) => return Ok(()),
            inner => inner?,
        };
        let outer = match OpenParent::open(self.outer.take(), directory, tree, &swap.outer) {
            Err(error) if is_gone(&error) => None,
            outer => Some(outer?),
        };
        let result = self.swap_within(tree, swap, &inner.fd, outer.as_ref().map(|it| &it.fd));
        (self.inner, self.outer) = (Some(inner), outer);
        match result {
            // A renamed directory cannot stay in the layers, which are about to be removed.
            Err(Obstacle::Changed)
                if self.is_resumed() && swap.new.as_ref().is_some_and(Seen::is_renamed) =>
            {
                let text = "another process has taken the place of a renamed directory";
                Err(io::Error::other(text).into())
            }
            result => result,
        }
    }

    fn swap_within(
        &mut self,
        tree: usize,
        swap: &Swap,
        inner: &OwnedFd,
        outer: Option<&OwnedFd>,
    ) -> Result<(), Obstacle> {
        let Swap { old, new, .. } = swap;
        let (inner_name, outer_name) = (name_of(&swap.inner)?, name_of(&swap.outer)?);
        if self.is_resumed() {
            let held = find(inner, &inner_name)?;
            let is_pending = match (&held, new) {
                (Some(held), Some(new)) => new.is_inode(held),
                (held, new) => held.is_none() && new.is_none(),
            };
            if !is_pending {
                return match (old, held, outer) {
                    // A kill may have come before the look at what came out.
                    (Some(old), Some(held), Some(outer)) if !old.is_renamed() => self.check(
                        tree,
                        swap,
                        old,
                        &held,
                        (inner, &inner_name),
                        (outer, &outer_name),
                    ),
                    _ => Ok(()),
                };
            }
        }
        let is_removal = new.is_none();
        let Some(outer) = outer else {
            return if is_removal { Ok(()) } else { Err(Obstacle::Changed) };
        };
        if let Some(old) = old {
            match find(outer, &outer_name)? {
                Some(found) if self.is_untouched(tree, old, &found) => {}
                // Another process has removed the entry as well.
                None if is_removal => return Ok(()),
                // The directory has moved on by a later step.
                _ if is_removal && old.is_renamed() && self.is_resumed() => return Ok(()),
                _ => return Err(Obstacle::Changed),
            }
        }
        (self.observe)();
        let is_exchange = old.is_some() && new.is_some();
        let flags = if is_exchange { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        let renamed = if is_removal {
            renameat_with(outer, &*outer_name, inner, &*inner_name, flags)
        } else {
            renameat_with(inner, &*inner_name, outer, &*outer_name, flags)
        };
        match renamed {
            Ok(()) => {}
            Err(Errno::NOENT) if is_removal => return Ok(()),
            Err(Errno::NOENT | Errno::EXIST | Errno::NOTEMPTY) => return Err(Obstacle::Changed),
            Err(errno) => return Err(errno.into()),
        }
        let Some(old) = old else { return Ok(()) };
        (self.observe)();
        let found =
            find(inner, &inner_name)?.ok_or_else(|| io::Error::other("an entry is lost"))?;
        self.check(tree, swap, old, &found, (inner, &inner_name), (outer, &outer_name))
    }

    /// True if an entry is as the comparison saw it.
    fn is_untouched(&self, tree: usize, seen: &Seen, found: &Stat) -> bool {
        seen.is_same(found)
            && (seen.is_untouched(found) || self.touched.contains(&(tree, seen.inode)))
    }

    /// Looks at an entry that came out of its place. Puts the entry back if another process has changed
    /// it since the comparison.
    fn check(
        &mut self,
        tree: usize,
        swap: &Swap,
        seen: &Seen,
        found: &Stat,
        inner: Place,
        outer: Place,
    ) -> Result<(), Obstacle> {
        if seen.is_same(found) && !self.is_changed_below(tree, swap, seen, found)? {
            // The rename gave a new time to the other names as well.
            self.touched.insert((tree, seen.inode));
            return Ok(());
        }
        match &swap.new {
            None => match renameat_with(inner.0, inner.1, outer.0, outer.1, RenameFlags::NOREPLACE)
            {
                // Another process has made a newer entry.
                Err(Errno::EXIST | Errno::NOENT) => {}
                result => result?,
            },
            Some(new) => put_back(new.inode, inner, outer)?,
        }
        Err(Obstacle::Changed)
    }

    /// True if another process has changed anything in a directory that is in the layers now.
    fn is_changed_below(
        &self,
        tree: usize,
        swap: &Swap,
        seen: &Seen,
        found: &Stat,
    ) -> io::Result<bool> {
        let Roots { layers: Some(layers), since, .. } = self.roots[tree] else { return Ok(false) };
        if !is_directory(found) || seen.is_renamed() {
            return Ok(false);
        }
        let last = if seen.is_old() { since } else { self.decided };
        let mut is_changed = false;
        walk(
            layers,
            &swap.inner,
            |_, error| error,
            |_, Walked { found, .. }| {
                is_changed |= found.is_some_and(|found| {
                    change_time(&found) > last
                        && !self.touched.contains(&(tree, entry::inode(&found)))
                });
                Ok(!is_changed)
            },
        )?;
        Ok(is_changed)
    }

    /// Renames an entry within the layers.
    fn relocate(&mut self, tree: usize, it: &Move) -> Result<(), Obstacle> {
        let Some(layers) = self.roots[tree].layers else { return Ok(()) };
        let (from_name, to_name) = (name_of(&it.from)?, name_of(&it.to)?);
        let from = match open_parent(layers, &it.from) {
            Err(error) if self.is_resumed() && is_gone(&error) => return Ok(()),
            from => from?,
        };
        let found = find(&from, &from_name)?;
        if self.is_resumed() && found.is_none_or(|found| entry::inode(&found) != it.inode) {
            return Ok(());
        }
        let to = open_parent(layers, &it.to)?;
        Ok(renameat_with(&from, &*from_name, &to, &*to_name, RenameFlags::NOREPLACE)?)
    }

    fn adjust(&mut self, tree: usize, adjust: &Adjust) -> Result<(), Obstacle> {
        // A resumed step may belong to a directory that is not in place any more.
        let missing = || if self.is_resumed() { Ok(()) } else { Err(Obstacle::Changed) };
        let directory = match open_place_below(self.roots[tree].directory, &adjust.path) {
            Err(error) if is_gone(&error) => return missing(),
            directory => directory?,
        };
        let found = fstat(&directory)?;
        let is_nested = self.strictness == Strictness::Nested;
        if entry::inode(&found) != adjust.inode && !is_nested {
            return missing();
        }
        // Descriptors of this kind accept no changes, but paths through the descriptors do.
        let path = path_of(directory.as_fd());
        let (present, owner) = (entry::mode(&found), (found.st_uid, found.st_gid));
        let value = |name: &CStr| ftsh_sys::attribute(&path, name).ok();
        let mut attributes = Vec::new();
        for (name, change) in &adjust.attributes {
            attributes.push((CString::new(name.as_slice()).map_err(io::Error::from)?, change));
        }
        let is_known = adjust.owner.as_ref().is_none_or(|change| change.knows(&owner))
            && adjust.mode.as_ref().is_none_or(|change| {
                // A kill may have come before the step has taken back a permission.
                change.knows(&present) || self.is_resumed() && change.knows(&(present & !WRITE))
            })
            && attributes.iter().all(|(name, change)| change.knows(&value(name)));
        if !is_known && !is_nested {
            return Err(Obstacle::Changed);
        }
        if let Some(change) = &adjust.owner
            && owner != change.new
        {
            let (user, group) = change.new;
            let owner = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            chownat(CWD, &path, owner.0, owner.1, AtFlags::empty())?;
        }
        let set_mode = |mode| chmod(&path, Mode::from_raw_mode(mode));
        // Attributes of users require permission to write.
        let is_opened = !attributes.is_empty() && present & WRITE == 0;
        if is_opened {
            set_mode(present | WRITE)?;
        }
        // Removals make room for what is new.
        attributes.sort_by_key(|(_, change)| change.new.is_some());
        for (name, change) in attributes {
            match &change.new {
                Some(value) => setxattr(&path, &*name, value, XattrFlags::empty())?,
                None => match removexattr(&path, &*name) {
                    Err(Errno::NODATA) => {}
                    result => result?,
                },
            }
        }
        let wanted = adjust.mode.as_ref().map_or(present, |mode| mode.new);
        if adjust.owner.is_some() || is_opened || wanted != present {
            set_mode(wanted)?;
        }
        if let Some(time) = &adjust.time {
            set_time(directory.as_fd(), time.new)?;
        }
        Ok(())
    }

    /// Restores the time of a directory that a commit did not change after all, where possible.
    pub(crate) fn restore_time(&self, tree: usize, adjust: &Adjust) {
        if let Some(time) = &adjust.time
            && let Ok(directory) = open_place_below(self.roots[tree].directory, &adjust.path)
            && fstat(&directory).is_ok_and(|found| entry::inode(&found) == adjust.inode)
        {
            let _ = set_time(directory.as_fd(), time.old);
        }
    }
}

/// Permission of the owner to write.
const WRITE: u32 = 0o200;

impl<T: PartialEq> ValueChange<T> {
    /// True if a value is the one before or after the change.
    fn knows(&self, value: &T) -> bool {
        self.old == *value || self.new == *value
    }
}

/// Exchanges entries back until the outer place has the latest one that another process made. The
/// outer place has the entry with an inode at first.
fn put_back(
    mut placed: u64,
    (inner, inner_name): Place,
    (outer, outer_name): Place,
) -> io::Result<()> {
    loop {
        let Some(held) = find(inner, inner_name)? else { return Ok(()) };
        match renameat_with(inner, inner_name, outer, outer_name, RenameFlags::EXCHANGE) {
            // Another process has removed the entry.
            Err(Errno::NOENT) => return Ok(()),
            result => result?,
        }
        let found = find(inner, inner_name)?;
        if found.is_none_or(|found| entry::inode(&found) == placed) {
            return Ok(());
        }
        placed = entry::inode(&held);
    }
}

/// True if an error says that another process has removed or replaced a directory.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP))
}

/// Sets the time of a directory. Only its owner may do so, and a commit does not depend on times.
fn set_time(directory: BorrowedFd, (seconds, nanoseconds): FileTime) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds as _ },
    };
    match utimensat(CWD, path_of(directory), &times, AtFlags::empty()) {
        Err(Errno::PERM) => Ok(()),
        result => Ok(result?),
    }
}

/// Returns the last component of a path.
pub(crate) fn name_of(path: &[u8]) -> io::Result<CString> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    Ok(CString::new(name)?)
}

/// Returns the path of the parent of an entry.
fn parent_of(path: &[u8]) -> &[u8] {
    &path[..path.iter().rposition(|byte| *byte == b'/').unwrap_or(0)]
}

impl OpenParent {
    /// Opens the parent of an entry, unless the previous parent is the same.
    fn open(last: Option<Self>, root: BorrowedFd, tree: usize, path: &[u8]) -> io::Result<Self> {
        let path = parent_of(path);
        match last {
            Some(last) if last.tree == tree && last.path == path => Ok(last),
            _ => Ok(Self { tree, path: path.to_vec(), fd: open_place_below(root, path)? }),
        }
    }
}

/// Opens the parent of an entry below a root.
pub(crate) fn open_parent(root: BorrowedFd, path: &[u8]) -> io::Result<OwnedFd> {
    open_place_below(root, parent_of(path))
}
