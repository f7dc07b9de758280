//! Where the files of channels are.

use std::path::{Path, PathBuf};

use super::error::Unusable;
use crate::user_directory;

/// The directory of channels.
pub struct Directory {
    /// Its path.
    path: PathBuf,
    /// The directory that it is in, if that is the shells' own as well.
    above: Option<PathBuf>,
}

impl Directory {
    /// This one, or else the user's own.
    pub fn new(given: Option<PathBuf>) -> Self {
        match given {
            Some(path) => Self { path, above: None },
            None => {
                let above = user_directory::path();
                Self { path: above.join("channels"), above: Some(above) }
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it if it isn't there. Nobody else can write to it then.
    pub fn make(&self) -> Result<(), Unusable> {
        for path in self.above.iter().chain([&self.path]) {
            user_directory::make_private(path)
                .map_err(|reason| Unusable::Directory { path: path.clone(), reason })?;
        }
        Ok(())
    }
}
