//! The side that has the files.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use bstr::{BString, ByteSlice};

use super::content::{Broken, Digests, copy};
use super::entries::{EntryKind, FileEntry, failed, list};

/// Reason for the end of a transfer.
#[derive(Debug, PartialEq, Eq)]
pub enum TransferError {
    /// The other side is gone, or the files did not arrive whole.
    Cut,
    /// Message about a file on this side.
    Files(String),
}

/// Files that are ready to be sent.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// Directory of the branch.
    directory: &'a Path,
    verb: &'static str,
    /// Files with the contents of directories.
    pub entries: Vec<FileEntry>,
    digests: &'a Digests,
}

impl<'a> Outgoing<'a> {
    /// Lists the files of a branch in this directory, which the branch will `take` or `give`.
    pub fn list(
        directory: &'a Path,
        names: &[BString],
        verb: &'static str,
        digests: &'a Digests,
    ) -> Result<Self, String> {
        let entries = list(directory, names, verb, |file, found| digests.of(file, found))?;
        Ok(Self { directory, verb, entries, digests })
    }

    /// Returns the number of bytes of all contents.
    pub fn length(&self) -> u64 {
        let length = |entry: &FileEntry| match entry.kind {
            EntryKind::File(length, _) => length,
            EntryKind::Directory | EntryKind::Link(_) => 0,
        };
        self.entries.iter().map(length).sum()
    }

    /// Sends the content of the entry with this index. A file that has changed since is an error.
    pub fn send(&self, index: usize, to: &mut impl Write) -> Result<(), TransferError> {
        let Some(entry) = self.entries.get(index) else { return Err(TransferError::Cut) };
        let EntryKind::File(length, digest) = entry.kind else { return Ok(()) };
        let changed =
            |error: &io::Error| TransferError::Files(failed(self.verb, &entry.path, error));
        let no_wait = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let path = self.directory.join(entry.path.to_path_lossy());
        let mut file = File::options()
            .read(true)
            .custom_flags(no_wait)
            .open(path)
            .map_err(|error| changed(&error))?;
        let meanwhile = || io::Error::other("it has changed meanwhile");
        let sent = copy(&self.digests.key, &mut file, to, length);
        let found = file.metadata().map_err(|error| changed(&error))?;
        match sent {
            Err(Broken::Target(_)) => Err(TransferError::Cut),
            Ok(sent) if sent == digest && (found.mtime(), found.mtime_nsec()) == entry.modified => {
                Ok(())
            }
            Ok(_) | Err(Broken::Source(_)) => Err(changed(&meanwhile())),
        }
    }
}
