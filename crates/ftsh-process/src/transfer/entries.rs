//! Lists of files: what travels, and the checks of both sides.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path};

use bstr::{BString, ByteSlice};
use serde::{Deserialize, Serialize};

use super::content::ContentDigest;
use ftsh_sys::os_error::plain;

/// File, directory or symbolic link that travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path below the directory of the branch.
    pub path: BString,
    /// Permission bits.
    pub mode: u32,
    /// Time of the last change, in seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    /// Kind with the content.
    pub kind: EntryKind,
}

/// Kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// Directory, whose entries follow.
    Directory,
    /// Symbolic link with its target.
    Link(BString),
    /// Regular file with the length and the digest of the content.
    File(u64, ContentDigest),
}

/// Checks the files that a branch will take or give, which is the verb: each must exist. Returns a
/// message with the name.
pub(crate) fn check_files(directory: &Path, names: &[BString], verb: &str) -> Result<(), String> {
    list(directory, names, verb, |_, _| Ok(ContentDigest::default())).map(|_| ())
}

/// Lists the named files in the order of the names, and the contents of directories behind each
/// directory.
/// `digest` reads a file. `verb` tells people what the branch does with the names.
pub(super) fn list(
    directory: &Path,
    names: &[BString],
    verb: &str,
    mut digest: impl FnMut(File, &Metadata) -> io::Result<ContentDigest>,
) -> Result<Vec<FileEntry>, String> {
    let mut entries = Vec::new();
    for name in names {
        check_way(directory, name).map_err(|error| failed(verb, name, &error))?;
        let mut below = BTreeMap::new();
        let mut pending = vec![name.clone()];
        while let Some(path) = pending.pop() {
            let entry = entry(directory, &path, &mut pending, &mut digest)
                .map_err(|error| failed(verb, &path, &error))?;
            below.insert(path, entry);
        }
        entries.extend(below.into_values());
    }
    Ok(entries)
}

/// Returns the message about a file.
pub(super) fn failed(verb: &str, name: &BString, error: &io::Error) -> String {
    format!("the branch cannot {verb} `{name}`: {}", plain(error))
}

fn leads_out() -> io::Error {
    io::Error::other("it leads out of the directory of the branch")
}

/// Fails if a link on the way to a name leads out of the directory.
fn check_way(directory: &Path, name: &BString) -> io::Result<()> {
    let path = directory.join(name.to_path_lossy());
    let parent = path.parent().unwrap_or(directory).canonicalize()?;
    if parent.starts_with(directory.canonicalize()?) { Ok(()) } else { Err(leads_out()) }
}

fn entry(
    directory: &Path,
    path: &BString,
    pending: &mut Vec<BString>,
    digest: &mut impl FnMut(File, &Metadata) -> io::Result<ContentDigest>,
) -> io::Result<FileEntry> {
    let whole = directory.join(path.to_path().map_err(io::Error::other)?);
    let mut found = whole.symlink_metadata()?;
    let kind = found.file_type();
    let kind = if kind.is_dir() {
        for child in whole.read_dir()? {
            let name: BString = child?.file_name().into_vec().into();
            pending.push(bstr::join("/", [path, &name]).into());
        }
        EntryKind::Directory
    } else if kind.is_symlink() {
        let target: BString = whole.read_link()?.into_os_string().into_vec().into();
        if !stays_within(path, &target) {
            return Err(leads_out());
        }
        EntryKind::Link(target)
    } else if kind.is_file() {
        let no_wait = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = File::options().read(true).custom_flags(no_wait).open(&whole)?;
        found = file.metadata()?;
        EntryKind::File(found.len(), digest(file, &found)?)
    } else {
        let name = match kind {
            kind if kind.is_fifo() => "a named pipe",
            kind if kind.is_socket() => "a socket",
            _ => "a device",
        };
        return Err(io::Error::other(format!("it is {name}")));
    };
    let modified = (found.mtime(), found.mtime_nsec());
    Ok(FileEntry { path: path.clone(), mode: found.mode() & 0o777, modified, kind })
}

/// True if the target of a link at this path is in the directory, or may be there.
fn stays_within(path: &BString, target: &BString) -> bool {
    let mut depth = path.split_str("/").count() - 1;
    target.to_path_lossy().components().all(|component| match component {
        Component::RootDir | Component::Prefix(_) => false,
        Component::CurDir => true,
        Component::Normal(_) => {
            depth += 1;
            true
        }
        Component::ParentDir => {
            let is_below = depth > 0;
            depth = depth.saturating_sub(1);
            is_below
        }
    })
}

/// True if a list from another machine has all the names, each before its contents, cannot lead out of
/// the directory, and sets no set-user-ID bit.
pub(super) fn is_valid(entries: &[FileEntry], names: &[BString]) -> bool {
    let mut directories = BTreeSet::new();
    let mut missing: BTreeSet<_> = names.iter().collect();
    let mut paths = BTreeSet::new();
    entries.iter().all(|entry| {
        let (parent, name) = entry.path.rsplit_once_str("/").unwrap_or((b"", &entry.path));
        let is_name = !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
        let is_named = missing.remove(&entry.path);
        if is_named {
            // The contents of a directory follow before the next name.
            directories.clear();
        }
        let has_place = is_named || directories.contains(parent);
        let stays = match &entry.kind {
            EntryKind::Directory => directories.insert(entry.path.as_slice()),
            EntryKind::Link(target) => stays_within(&entry.path, target),
            EntryKind::File(..) => true,
        };
        let is_plain = entry.mode & !0o777 == 0;
        is_name && has_place && stays && is_plain && paths.insert(&entry.path)
    }) && missing.is_empty()
}
