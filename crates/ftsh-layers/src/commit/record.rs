//! Records of commits, for processes that resume a run.

use std::io;
use std::path::Path;

use crate::layers::{ASIDE, Layers, UPPER, WORK};

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
