//! What must not stay, whatever happens to the shell: hidden files on their way to their names, and
//! the directories of attempts.
//!
//! Each is noted before it is made, in a directory of the run that the shell holds a lock of. The lock is
//! the kernel's, on that directory itself. It is sent to the supervisor as well: while that lives, it waits
//! in the socket between the two, unread. So the one of them that is left cleans up; after the death of
//! both the lock is free, and the user's next shell does.

mod kind;
mod named;
mod registry;
mod remove;
mod scratch;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

pub use self::kind::Kind;
pub use self::named::{hidden_name, named_file, unlinked_file};
pub use self::registry::{Note, Registry};
pub use self::scratch::{Scratch, scratch_place};
pub use self::sweep::{Left, clean_up_after_interpreter};
use ftsh_machine::effect::ScratchId;

/// What a run has to remove.
pub struct Cleanup {
    /// Its notes.
    pub registry: Arc<Registry>,
    scratches: HashMap<ScratchId, Arc<Scratch>>,
}

impl Cleanup {
    /// Nothing yet. The lock of what comes is sent through this.
    pub fn new(supervisor: Option<Arc<UnixStream>>) -> Self {
        let registry = Arc::new(Registry::new(supervisor));
        named::keep_notes_in(&registry);
        Self { registry, scratches: HashMap::new() }
    }

    /// The directory of an attempt, made or not.
    pub fn scratch(&mut self, id: ScratchId) -> Arc<Scratch> {
        self.scratches.entry(id).or_default().clone()
    }

    /// The same, which isn't known any more; none if it never was.
    pub fn take_scratch(&mut self, id: ScratchId) -> Option<Arc<Scratch>> {
        self.scratches.remove(&id)
    }

    /// A job for a worker: to remove what shells left that were killed together with their supervisors;
    /// none if there are no signs of any. Its result is what will never be removed.
    pub fn after_others(&self) -> Option<impl FnOnce() -> Left + Send + 'static> {
        let registry = self.registry.clone();
        sweep::may_have_remains().then(|| {
            let busy = registry.begin();
            move || {
                let left = sweep::clean_up_after_others();
                drop(busy);
                left
            }
        })
    }
}

impl Drop for Cleanup {
    /// Whatever ends the run, nothing of it stays.
    fn drop(&mut self) {
        self.registry.close();
    }
}
