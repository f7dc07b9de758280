//! Records of commits, for processes that resume a run.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::directories::Directories;
use crate::entry::PREFIX;
use crate::layers::{ASIDE, Layers, UPPER, WORK};
use crate::note::{NOTE, RECORD};
use crate::sweep::{self, leftovers};

/// Time limit of the wait for another process that finishes the commit.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between looks at the lock of the other process.
const FINISH_INTERVAL: Duration = Duration::from_millis(5);

/// Record that a commit has taken place, in the first layers of the attempt.
///
/// The record outlives the process until [`CommitRecord::remove`]. A sweep removes a record after a
/// week.
pub struct CommitRecord(Layers);

impl CommitRecord {
    /// Returns the record in layers, without what the attempt needed.
    pub(crate) fn of(layers: Layers) -> Self {
        for part in [UPPER, WORK, ASIDE] {
            // The removal of the record removes the rest.
            let _ = ftsh_sys::remove_tree(&layers.part(part));
        }
        Self(layers)
    }

    /// Returns the record of a commit of an attempt whose mark begins with these characters. Finishes
    /// a commit that has begun. Returns none if no commit had begun.
    pub fn find(places: &Directories, mark: &str) -> io::Result<Option<Self>> {
        let begin = format!("{PREFIX}{mark}");
        for layers in places.directories().take(1).flat_map(leftovers) {
            let name = layers.file_name().unwrap_or_default().as_encoded_bytes();
            let is_first = name.starts_with(begin.as_bytes()) && name.ends_with(b"-0");
            if is_first && let Some(record) = Self::of_layers(&layers)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Returns the record in layers, which are the first ones of an attempt.
    pub(crate) fn of_layers(layers: &Path) -> io::Result<Option<Self>> {
        let start = Instant::now();
        let layers = loop {
            match Layers::lock(layers.into()) {
                Ok(Some(layers)) => break layers,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
                Ok(None) if start.elapsed() >= FINISH_TIMEOUT => {
                    return Err(io::ErrorKind::ResourceBusy.into());
                }
                Ok(None) => std::thread::sleep(FINISH_INTERVAL),
            }
        };
        if layers.has(NOTE) {
            sweep::finish(&layers, &mut || {})?;
        }
        Ok(layers.has(RECORD).then(|| Self::of(layers)))
    }

    /// Returns the path of the layers with the record.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Removes the record.
    pub fn remove(self) -> io::Result<()> {
        self.0.remove()
    }
}

impl std::fmt::Debug for CommitRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CommitRecord").field(&self.0.path).finish()
    }
}
