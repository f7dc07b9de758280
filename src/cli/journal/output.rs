//! Output that `--cron` captures beside a journal, over all starts of a run.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use nix::unistd::geteuid;

use super::journal_file::JournalFile;
use ftsh_sys::os_error::plain;

/// Opens the file of the output, for a run that begins or is resumed. Refuses a file that belongs
/// to no run, unless the file is empty.
pub(crate) fn open(journal_file: &JournalFile, begins: bool) -> Result<File> {
    let path = beside(&journal_file.path);
    let mut options = OpenOptions::new();
    options
        .read(true)
        .append(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let opened = options.create(true).open(&path).and_then(|file| {
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        // The owner of the file could read the output.
        if found.uid() != geteuid().as_raw() {
            return Err(io::Error::other("it belongs to another user"));
        }
        // An empty file may be left from a start that ended before the run began.
        if journal_file.is_new && found.len() > 0 {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if begins {
            file.set_len(0)?;
        }
        Ok(file)
    });
    opened.map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            return anyhow!(
                "can't capture the output in `{}`: the file exists, but `{}` holds no run; \
                 remove the file if it is left from a removed journal",
                path.display(),
                journal_file.path.display()
            );
        }
        anyhow!("can't capture the output in `{}`: {}", path.display(), plain(&error))
    })
}

/// Removes the file of the output.
pub(super) fn remove(journal: &Path) {
    // The next run empties a file that cannot be removed.
    let _ = std::fs::remove_file(beside(journal));
}

fn beside(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".output");
    name.into()
}
