//! Note of a commit, from which any process can finish the commit.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{UnlinkatFlags, unlinkat};
use rustix::fs::{Mode, OFlags, fstat, fsync, openat, renameat};
use serde::{Deserialize, Serialize};

use crate::entry::{FileId, FileTime, modification_time};
use crate::step::Step;
use crate::tree::CoveredTree;

/// Name of the note in the layers.
pub(crate) const NOTE: &CStr = c"note";
/// Name of the note of a commit that failed, until its steps are undone.
pub(crate) const UNDO: &CStr = c"undo";
/// Name of the note after the last step, if the commit is recorded.
pub(crate) const RECORD: &CStr = c"committed";
/// Version of the format. Variants are added at the end of a type.
const VERSION: u32 = 3;

/// Directory that a commit changes, and the place of its layers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotedTree {
    directory: Vec<u8>,
    pub(crate) id: FileId,
    layers: Vec<u8>,
    /// Time of the file system at the begin of the attempt.
    pub(crate) since: FileTime,
    /// Inodes of removed directories whose time of change the commit changes.
    touched: Vec<u64>,
}

impl NotedTree {
    pub(crate) fn new(tree: &CoveredTree, touched: Vec<u64>) -> Self {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let (directory, layers) = (bytes(&tree.path), bytes(&tree.layers.path));
        Self { directory, id: tree.id, layers, since: tree.start.since, touched }
    }

    pub(crate) fn directory(&self) -> PathBuf {
        OsStr::from_bytes(&self.directory).into()
    }

    pub(crate) fn layers(&self) -> PathBuf {
        OsStr::from_bytes(&self.layers).into()
    }
}

/// All steps of a commit, with the indexes of their trees.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitNote {
    pub(crate) trees: Vec<NotedTree>,
    pub(crate) steps: Vec<(u32, Step)>,
    /// True if a record of the commit remains after the last step.
    pub(crate) is_recorded: bool,
}

impl CommitNote {
    /// Name of an incomplete note.
    pub(crate) const INCOMPLETE: &CStr = c"note-incomplete";

    /// Writes the note under a name that does not count yet. Returns the time of the note.
    pub(crate) fn prepare(&self, layers: BorrowedFd) -> io::Result<FileTime> {
        let bytes = postcard::to_allocvec(&(VERSION, self)).map_err(io::Error::other)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let mut file =
            std::fs::File::from(openat(layers, Self::INCOMPLETE, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(&bytes)?;
        file.sync_all()?;
        Ok(modification_time(&fstat(file)?))
    }

    /// Makes the prepared note count. Afterwards, the commit is finished by any process.
    pub(crate) fn decide(layers: BorrowedFd) -> io::Result<()> {
        renameat(layers, Self::INCOMPLETE, layers, NOTE)?;
        Ok(fsync(layers)?)
    }

    /// Turns the note into one of a failed commit. Afterwards, the commit is undone by any process.
    pub(crate) fn reverse(layers: BorrowedFd) -> io::Result<()> {
        renameat(layers, NOTE, layers, UNDO)?;
        Ok(fsync(layers)?)
    }

    /// Reads the note with this name, if there is one. Returns the time of the note as well.
    pub(crate) fn read(layers: BorrowedFd, name: &CStr) -> io::Result<Option<(Self, FileTime)>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(layers, name, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            file => file?,
        };
        let time = modification_time(&fstat(&file)?);
        let mut bytes = Vec::new();
        std::fs::File::from(file).read_to_end(&mut bytes)?;
        let unknown = || io::Error::other("the note is of another version of ftsh");
        let (version, rest) = postcard::take_from_bytes::<u32>(&bytes).map_err(|_| unknown())?;
        if version != VERSION {
            return Err(unknown());
        }
        Ok(Some((postcard::from_bytes(rest).map_err(|_| unknown())?, time)))
    }

    /// Returns trees and inodes of directories whose time of change the commit changes.
    pub(crate) fn touched(&self) -> BTreeSet<(usize, u64)> {
        let trees = self.trees.iter().enumerate();
        let noted = trees.flat_map(|(index, tree)| tree.touched.iter().map(move |it| (index, *it)));
        let adjusted = self.steps.iter().filter_map(|(tree, step)| match step {
            Step::Adjust(adjust) => Some((*tree as usize, adjust.inode)),
            _ => None,
        });
        noted.chain(adjusted).collect()
    }

    /// Ends the note after its last step: removes the note, or turns the note into the record.
    pub(crate) fn end(layers: BorrowedFd, is_recorded: bool) -> io::Result<()> {
        if !is_recorded {
            return Self::remove(layers, NOTE);
        }
        renameat(layers, NOTE, layers, RECORD)?;
        Ok(fsync(layers)?)
    }

    /// Removes the note with this name.
    pub(crate) fn remove(layers: BorrowedFd, name: &CStr) -> io::Result<()> {
        Ok(unlinkat(layers, name, UnlinkatFlags::NoRemoveDir)?)
    }
}
