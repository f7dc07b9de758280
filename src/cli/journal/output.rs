//! What `--cron` keeps beside a journal: what the starts of a run have printed, until it is over.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

use super::place::Place;
use ftsh_sys::os_error::plain;

/// Opens the file, for a run that begins or goes on. One that belongs to nobody's run is left alone.
pub fn open(place: &Place, begins: bool) -> Result<File> {
    let path = beside(&place.path);
    let mut options = OpenOptions::new();
    options
        .read(true)
        .append(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let file =
        if place.is_new { options.create_new(true) } else { options.create(true) }.open(&path);
    let opened = file.and_then(|file| {
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no plain file"));
        }
        if begins {
            file.set_len(0)?;
        }
        Ok(file)
    });
    opened.map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            return anyhow!(
                "can't keep what is printed in `{}`: it is there already, without a run in `{}` that it would be of; \
                 if it is of one that you have removed, remove it as well",
                path.display(),
                place.path.display()
            );
        }
        anyhow!("can't keep what is printed in `{}`: {}", path.display(), plain(&error))
    })
}

/// Removes it.
pub fn remove(journal: &Path) {
    // If it can't be removed, the next run empties it.
    let _ = std::fs::remove_file(beside(journal));
}

fn beside(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".output");
    name.into()
}
