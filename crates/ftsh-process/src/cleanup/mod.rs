//! Removal of files after any end of the shell: staged files under hidden names, scratch
//! directories, and jobs of carriers.
//!
//! A note registers each file before its creation. The notes are in a directory of the run, on
//! which the shell holds a lock. The shell also sends the lock to the supervisor, where the lock
//! waits unread in the socket between the two. The survivor of the two cleans up. After the death
//! of both, the lock is free, and the user's next shell cleans up.

mod kind;
mod named;
mod registry;
mod scratch;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

pub(crate) use self::kind::NoteKind;
pub use self::named::replace_file;
pub(crate) use self::named::{hidden_name, named_file, unlinked_file};
pub(crate) use self::registry::{Note, Registry};
pub(crate) use self::scratch::scratch_place;
pub(crate) use self::sweep::sweep_interpreter;

use self::scratch::Scratch;
use ftsh_machine::effect::ScratchId;
use ftsh_machine::record::Level;

/// Files that a run must remove.
pub(crate) struct Cleanup {
    /// Notes of the run.
    pub registry: Arc<Registry>,
    scratches: HashMap<ScratchId, Arc<Scratch>>,
}

impl Cleanup {
    /// Creates an empty registry. Its lock is sent to the supervisor through this socket.
    pub(crate) fn new(supervisor: Option<Arc<UnixStream>>) -> Self {
        let registry = Arc::new(Registry::new(supervisor));
        named::keep_notes_in(&registry);
        Self { registry, scratches: HashMap::new() }
    }

    /// Returns the scratch directory of an attempt, created or not.
    pub(crate) fn scratch(&mut self, id: ScratchId) -> Arc<Scratch> {
        self.scratches.entry(id).or_default().clone()
    }

    /// Removes a scratch directory from the table; none if the id is unknown.
    pub(crate) fn take_scratch(&mut self, id: ScratchId) -> Option<Arc<Scratch>> {
        self.scratches.remove(&id)
    }

    /// Returns a worker's job that removes files of shells killed together with their supervisors;
    /// none if there is no sign of any. The job keeps the jobs left elsewhere, and returns lines
    /// about the files given up.
    pub(crate) fn sweep_job(
        &self,
    ) -> Option<impl FnOnce() -> Vec<(Level, String)> + Send + 'static> {
        let registry = self.registry.clone();
        sweep::has_stale_runs().then(|| {
            let busy = registry.begin();
            move || {
                let lines = sweep::sweep_stale_runs(|job| registry.keep_stale_job(job));
                drop(busy);
                lines
            }
        })
    }
}

impl Drop for Cleanup {
    /// Removes all files of the run, whatever ends the run. The notes of jobs stay for the
    /// supervisor or the next shell.
    fn drop(&mut self) {
        self.registry.close();
    }
}
