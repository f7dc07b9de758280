//! Directory with the files of channels.

use std::path::{Path, PathBuf};

use super::error::ChannelFileError;
use crate::user_directory;

/// Directory with the files of channels.
pub(super) struct ChannelDirectory {
    path: PathBuf,
    /// Parent directory, if also private to ftsh.
    above: Option<PathBuf>,
}

impl ChannelDirectory {
    /// Uses the given directory, or else one in the user's private directory.
    pub(super) fn new(given: Option<PathBuf>) -> Self {
        match given {
            Some(path) => Self { path, above: None },
            None => {
                let above = user_directory::path();
                Self { path: above.join("channels"), above: Some(above) }
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory if missing, and checks that only this user can write to it.
    pub(super) fn make(&self) -> Result<(), ChannelFileError> {
        for path in self.above.iter().chain([&self.path]) {
            user_directory::make_private(path)
                .map_err(|reason| ChannelFileError::Directory { path: path.clone(), reason })?;
        }
        Ok(())
    }
}
