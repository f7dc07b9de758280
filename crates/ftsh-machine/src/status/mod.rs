//! A snapshot of all tasks, and its text.

mod snapshot;
pub mod text;

pub use self::snapshot::{Branches, Doing, InProgress, Status, TaskStatus, TryStatus};
pub(crate) use self::snapshot::{in_progress, take_snapshot};
