//! Survey of the changes in the layers.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Mode, Stat, chmodat, lremovexattr};

use crate::entry::{self, AttributeSet, is_directory, is_whiteout, mode, path_in};
use crate::layers::{UPPER, is_of_overlay};

/// Entry of the layers.
pub(crate) struct Node {
    pub(crate) name: CString,
    /// Facts about the entry, with the mode that the attempt gave it.
    pub(crate) stat: Stat,
    /// True if the survey gave the owner all permissions of the directory.
    pub(crate) is_opened: bool,
    pub(crate) marks: OverlayMarks,
    /// Extended attributes of a directory.
    pub(crate) attributes: AttributeSet,
    pub(crate) children: Vec<Node>,
}

/// Attributes that the overlay set.
#[derive(Default)]
pub(crate) struct OverlayMarks {
    /// True for a directory that hides the directory below.
    pub(crate) is_opaque: bool,
    /// Handle of the copied entry; empty where the user may not use handles.
    pub(crate) origin: Option<Vec<u8>>,
    /// Name or path of the directory below.
    pub(crate) redirect: Option<Vec<u8>>,
    names: Vec<CString>,
}

impl Node {
    pub(crate) fn inode(&self) -> u64 {
        self.stat.st_ino as _
    }

    pub(crate) fn is_directory(&self) -> bool {
        is_directory(&self.stat)
    }

    /// Returns the entry with this name.
    pub(crate) fn child(&self, name: &CStr) -> Option<&Self> {
        let found = self.children.binary_search_by(|child| child.name.as_c_str().cmp(name)).ok()?;
        self.children.get(found)
    }

    pub(crate) fn is_whiteout(&self) -> bool {
        is_whiteout(&self.stat)
    }
}

/// Returns the root of the changes with everything below. Calls `observe` for each entry.
pub(crate) fn survey(layers: BorrowedFd, observe: &mut dyn FnMut()) -> io::Result<Node> {
    let found = entry::find(layers, UPPER)?.ok_or(io::ErrorKind::NotFound)?;
    node(layers, UPPER.to_owned(), found, observe)
}

fn node(
    parent: BorrowedFd,
    name: CString,
    stat: Stat,
    observe: &mut dyn FnMut(),
) -> io::Result<Node> {
    observe();
    let marks = if is_whiteout(&stat) { OverlayMarks::default() } else { marks(parent, &name)? };
    let mut node = Node {
        is_opened: false,
        marks,
        attributes: AttributeSet::new(),
        children: Vec::new(),
        name,
        stat,
    };
    if node.is_directory() {
        node.is_opened = open_for_owner(parent, &node.name, mode(&stat))?;
        node.attributes = crate::layers::attributes(&path_in(parent, &node.name))?;
        let directory = entry::open_directory(parent, &node.name)?;
        for name in entry::names(&directory)? {
            if let Some(found) = entry::find(&directory, &name)? {
                node.children.push(self::node(directory.as_fd(), name, found, observe)?);
            }
        }
        node.children.sort_by(|one, other| one.name.cmp(&other.name));
    }
    Ok(node)
}

/// Gives the owner all permissions of a directory. Returns true if the owner lacked one.
fn open_for_owner(parent: BorrowedFd, name: &CStr, mode: u32) -> io::Result<bool> {
    let lacks = mode & 0o700 != 0o700 && !rustix::process::geteuid().is_root();
    if lacks {
        chmodat(parent, name, Mode::from_raw_mode(mode | 0o700), AtFlags::empty())?;
    }
    Ok(lacks)
}

fn marks(parent: BorrowedFd, name: &CStr) -> io::Result<OverlayMarks> {
    let names = match ftsh_sys::attributes_in(parent, name, || path_in(parent, name)) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Vec::new(),
        names => names?,
    };
    let mut marks = OverlayMarks::default();
    for mark in names.into_iter().filter(is_of_overlay) {
        let read = || ftsh_sys::attribute(&path_in(parent, name), &mark);
        match mark.to_bytes().split(|byte| *byte == b'.').nth(2) {
            Some(b"opaque") => marks.is_opaque = read()? == b"y",
            Some(b"origin") => marks.origin = Some(read()?),
            Some(b"redirect") => marks.redirect = Some(read()?),
            _ => {}
        }
        marks.names.push(mark);
    }
    Ok(marks)
}

/// Removes the attributes that the overlay set.
pub(crate) fn strip(layers: BorrowedFd, root: &Node) -> io::Result<()> {
    // The root itself never leaves the layers.
    let directory = entry::open_directory(layers, &root.name)?;
    root.children.iter().try_for_each(|child| strip_below(directory.as_fd(), child))
}

fn strip_below(parent: BorrowedFd, node: &Node) -> io::Result<()> {
    if !node.marks.names.is_empty() {
        remove_marks(parent, node)?;
    }
    if node.children.is_empty() {
        return Ok(());
    }
    let directory = entry::open_directory(parent, &node.name)?;
    node.children.iter().try_for_each(|child| strip_below(directory.as_fd(), child))
}

fn remove_marks(parent: BorrowedFd, node: &Node) -> io::Result<()> {
    let path = path_in(parent, &node.name);
    let remove = || {
        node.marks.names.iter().try_for_each(|name| match lremovexattr(&path, name.as_c_str()) {
            // Another hard link of the file has lost the attribute already.
            Err(rustix::io::Errno::NODATA) => Ok(()),
            result => result,
        })
    };
    match remove() {
        Err(rustix::io::Errno::ACCESS) if !node.is_directory() => {}
        result => return Ok(result?),
    }
    // The removal requires permission to write.
    let set = |mode| chmodat(parent, &node.name, Mode::from_raw_mode(mode), AtFlags::empty());
    let before = mode(&node.stat);
    set(before | 0o200)?;
    remove()?;
    Ok(set(before)?)
}
