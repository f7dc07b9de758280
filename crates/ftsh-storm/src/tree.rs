//! State of the directories at the end of a run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Length of a file whose lines are compared, at most.
const MAX_TEXT: u64 = 1024 * 1024;

/// Entries that a run changed, by absolute path. A removed entry is `None`.
pub type Changes = BTreeMap<PathBuf, Option<TreeEntry>>;

/// Entries at the end of a run, by absolute path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FinalTree(pub(crate) BTreeMap<PathBuf, TreeEntry>);

/// Returns the entries that either of two runs changed, as each run left them.
///
/// Entries that only the other run changed are as in the original directories.
pub(crate) fn ends(one: &Changes, other: &Changes) -> (FinalTree, FinalTree) {
    let of = |changes: &Changes, others: &Changes| {
        let unchanged = others.keys().filter(|path| !changes.contains_key(*path));
        let originals = unchanged.map(|path| (path, TreeEntry::read(path).ok().flatten()));
        let own = changes.iter().map(|(path, entry)| (path, entry.clone()));
        let all = own.chain(originals).filter_map(|(path, entry)| Some((path.clone(), entry?)));
        FinalTree(all.collect())
    };
    (of(one, other), of(other, one))
}

/// Entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Permissions.
    pub mode: u32,
    /// Content.
    pub content: EntryContent,
}

/// Content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryContent {
    /// A directory.
    Directory,
    /// A symbolic link.
    Link(PathBuf),
    /// A short file.
    Text(Vec<u8>),
    /// A long file: length and hash.
    Long(u64, u64),
    /// A pipe, a socket or a device.
    Special,
}

impl TreeEntry {
    /// Reads an entry; `None` if there is no such entry.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let data = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            data => data?,
        };
        let kind = data.file_type();
        let content = if kind.is_dir() {
            EntryContent::Directory
        } else if kind.is_symlink() {
            EntryContent::Link(fs::read_link(path)?)
        } else if !kind.is_file() {
            EntryContent::Special
        } else if data.len() <= MAX_TEXT {
            EntryContent::Text(fs::read(path)?)
        } else {
            EntryContent::Long(data.len(), hash_of(File::open(path)?)?)
        };
        let mode = if kind.is_symlink() { 0 } else { data.mode() & 0o7777 };
        Ok(Some(Self { mode, content }))
    }
}

fn hash_of(mut file: impl Read) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            length => hasher.write(&buffer[..length]),
        }
    }
}

/// Returns a path for people, relative to a directory if the path is below.
pub(crate) fn shown(path: &Path, directory: &Path) -> String {
    let path = path.strip_prefix(directory).unwrap_or(path);
    String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned()
}
