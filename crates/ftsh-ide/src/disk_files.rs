//! Files that a script uses, read from the disk.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use ftsh_syntax::uses::{UsedFile, UsedFiles, joined};
use ftsh_syntax::{MAX_SCRIPT_LENGTH, SCRIPT_TOO_LONG};
use ftsh_sys::os_error::plain;

/// Files that a script and its files use.
#[derive(Debug)]
pub struct DiskFiles {
    script: String,
    directory: PathBuf,
}

impl DiskFiles {
    /// Creates the access to the files of a script by its name and its directory.
    pub fn new(script: &str, directory: PathBuf) -> Self {
        Self { script: script.to_owned(), directory }
    }
}

impl UsedFiles for DiskFiles {
    fn read(&mut self, user: &str, path: &str) -> Result<UsedFile, String> {
        let directory = if *user == *self.script {
            &self.directory
        } else {
            Path::new(user).parent().unwrap_or(Path::new(""))
        };
        let place = joined(directory, path);
        let identity = fs::canonicalize(&place).map_err(|error| plain(&error))?;
        // A FIFO would block an editor.
        if !identity.is_file() {
            return Err("not a regular file".to_owned());
        }
        let (mut text, limit) = (Vec::new(), MAX_SCRIPT_LENGTH as u64 + 1);
        File::open(&identity)
            .and_then(|file| file.take(limit).read_to_end(&mut text))
            .map_err(|error| plain(&error))?;
        if text.len() > MAX_SCRIPT_LENGTH {
            return Err(SCRIPT_TOO_LONG.to_owned());
        }
        if text.starts_with("\u{feff}".as_bytes()) {
            text.drain(.."\u{feff}".len());
        }
        Ok(UsedFile { name: place.display().to_string(), identity, text })
    }
}
