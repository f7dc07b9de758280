//! Directories that change completely or not at all.
//!
//! An [`Attempt`] covers directories with overlays in namespaces of its own. Programs started
//! within the namespaces see the directories, and their changes go to layers beside the
//! directories. A commit moves the changed files from the layers to their places; until then, the
//! directories are untouched.
//!
//! Renames are the only steps that change files, so each file is old or new at any time. Only entries
//! of a renamed directory that takes the place of another directory are missing for a moment.
//!
//! Other processes may change the directories meanwhile. Each rename exchanges the entries, and a look
//! at the one that came out follows. An entry that differs from the one of the comparison goes back.
//!
//! A durable note with all steps, and with what the comparison saw, precedes the first step of a
//! commit. After a kill, [`sweep`] finishes a commit that has a note where the entries are still the
//! same, undoes a commit that has failed, and removes the layers of other attempts.

mod attempt;
mod change;
mod commit;
mod directories;
mod entry;
mod error;
mod layers;
mod mounts;
mod plan;
mod seen;
mod step;
#[cfg(test)]
mod tests;
mod translate;
mod tree;
mod upper;
mod walk;

pub use attempt::Attempt;
pub use change::{Change, ChangeKind};
pub use commit::{CommitRecord, Committed, Swept, leftovers, sweep};
pub use directories::Directories;
pub use error::{CommitFailure, CoverError};
