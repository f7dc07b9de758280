//! Records of commits, for processes that resume a run.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::layers::{ASIDE, Layers, UPPER, WORK};
use crate::note::{NOTE, RECORD};
use crate::sweep;

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

    /// Returns the record of the commit of an attempt, given the path of its first layers. Finishes a
    /// commit that has begun. Returns none if the commit had not begun.
    pub fn find(layers: &Path) -> io::Result<Option<Self>> {
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
