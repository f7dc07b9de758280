//! Survey of the changes in the layers.

use std::ffi::{CStr, CString};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Mode, Stat, chmodat, lremovexattr};

use crate::entry::{self, AttributeSet, is_directory, is_reserved, is_whiteout, mode, path_in};
use crate::layers::{UPPER, is_of_overlay};
use crate::step::join;
use crate::walk::open_below;

/// All entries of the layers.
pub(crate) struct Survey {
    /// The root, and then the entries of each directory one after the other, sorted by name.
    nodes: Vec<Node>,
}

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
    children: Range<usize>,
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

    pub(crate) fn is_whiteout(&self) -> bool {
        is_whiteout(&self.stat)
    }

    fn is_marked(&self) -> bool {
        !self.marks.names.is_empty()
    }
}

impl Survey {
    /// Finds all entries, with a call of `observe` for each. The depth has no limit.
    pub(crate) fn make(layers: BorrowedFd, observe: &mut dyn FnMut()) -> io::Result<Self> {
        let found = entry::find(layers, UPPER)?.ok_or(io::ErrorKind::NotFound)?;
        let mut nodes = vec![node(layers, UPPER.to_owned(), found)?];
        let mut pending = vec![(0, UPPER.to_bytes().to_vec())];
        while let Some((index, path)) = pending.pop() {
            let directory = open_below(layers, &path)?;
            let start = nodes.len();
            for name in entry::names(&directory)? {
                if let Some(found) = entry::find(&directory, &name)? {
                    observe();
                    nodes.push(node(directory.as_fd(), name, found)?);
                }
            }
            nodes[start..].sort_by(|one, other| one.name.cmp(&other.name));
            nodes[index].children = start..nodes.len();
            for (index, node) in nodes.iter().enumerate().skip(start) {
                if node.is_directory() {
                    pending.push((index, join(&path, node.name.to_bytes())));
                }
            }
        }
        Ok(Self { nodes })
    }

    /// Returns the root of the changes.
    pub(crate) fn root(&self) -> &Node {
        &self.nodes[0]
    }

    /// True if the attempt has changed anything below the covered directory.
    pub(crate) fn has_changes(&self) -> bool {
        self.children(self.root()).iter().any(|child| !is_reserved(&child.name))
    }

    /// Returns the entries of a directory.
    pub(crate) fn children(&self, node: &Node) -> &[Node] {
        &self.nodes[node.children.clone()]
    }

    /// Returns the entry of a directory with this name.
    pub(crate) fn child(&self, node: &Node, name: &CStr) -> Option<&Node> {
        let children = self.children(node);
        let found = children.binary_search_by(|child| child.name.as_c_str().cmp(name)).ok()?;
        children.get(found)
    }

    /// Returns the entry with this inode.
    pub(crate) fn with_inode(&self, inode: u64) -> Option<&Node> {
        self.nodes.iter().find(|node| node.inode() == inode)
    }

    /// Removes the attributes that the overlay set. The root itself never leaves the layers.
    pub(crate) fn strip(&self, layers: BorrowedFd) -> io::Result<()> {
        let mut pending = vec![(self.root(), UPPER.to_bytes().to_vec())];
        while let Some((node, path)) = pending.pop() {
            let children = self.children(node);
            if children.iter().any(Node::is_marked) {
                let directory = open_below(layers, &path)?;
                let mut marked = children.iter().filter(|child| child.is_marked());
                marked.try_for_each(|child| remove_marks(directory.as_fd(), child))?;
            }
            for child in children.iter().filter(|child| !child.children.is_empty()) {
                pending.push((child, join(&path, child.name.to_bytes())));
            }
        }
        Ok(())
    }
}

/// Reads the facts about an entry, and opens a directory to its owner.
fn node(parent: BorrowedFd, name: CString, stat: Stat) -> io::Result<Node> {
    let is_opened = is_directory(&stat) && open_for_owner(parent, &name, mode(&stat))?;
    let marks =
        if is_whiteout(&stat) { OverlayMarks::default() } else { marks(parent, &name, &stat)? };
    let attributes = if is_directory(&stat) {
        crate::layers::attributes(&path_in(parent, &name))?
    } else {
        AttributeSet::new()
    };
    Ok(Node { name, stat, is_opened, marks, attributes, children: 0..0 })
}

/// Gives the owner all permissions of a directory. Returns true if the owner lacked one.
fn open_for_owner(parent: BorrowedFd, name: &CStr, mode: u32) -> io::Result<bool> {
    let lacks = mode & 0o700 != 0o700 && !rustix::process::geteuid().is_root();
    if lacks {
        chmodat(parent, name, Mode::from_raw_mode(mode | 0o700), AtFlags::empty())?;
    }
    Ok(lacks)
}

fn marks(parent: BorrowedFd, name: &CStr, stat: &Stat) -> io::Result<OverlayMarks> {
    let names = match ftsh_sys::attributes_in(parent, name, || path_in(parent, name)) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Vec::new(),
        names => names?,
    };
    let mut marks = OverlayMarks::default();
    for mark in names.into_iter().filter(is_of_overlay) {
        let path = path_in(parent, name);
        let read =
            || with_permission(parent, name, stat, 0o400, || ftsh_sys::attribute(&path, &mark));
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

fn remove_marks(parent: BorrowedFd, node: &Node) -> io::Result<()> {
    let path = path_in(parent, &node.name);
    with_permission(parent, &node.name, &node.stat, 0o200, || {
        node.marks.names.iter().try_for_each(|name| match lremovexattr(&path, name.as_c_str()) {
            // Another hard link of the file has lost the attribute already.
            Err(rustix::io::Errno::NODATA) => Ok(()),
            result => Ok(result?),
        })
    })
}

/// Accesses the attributes of an entry. Gives the owner of a file a permission for the access, if
/// the file lacks it.
fn with_permission<T>(
    parent: BorrowedFd,
    name: &CStr,
    stat: &Stat,
    permission: u32,
    access: impl Fn() -> io::Result<T>,
) -> io::Result<T> {
    match access() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_directory(stat) => {}
        result => return result,
    }
    let set = |mode| chmodat(parent, name, Mode::from_raw_mode(mode), AtFlags::empty());
    set(mode(stat) | permission)?;
    let result = access();
    set(mode(stat))?;
    result
}
