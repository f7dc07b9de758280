//! Processes of the whole system: lists, features for supervision, and killing of process trees.

pub(crate) mod features;
#[cfg(test)]
pub(crate) mod few_descriptors;
pub(crate) mod kill_tree;
pub(crate) mod list;
pub(crate) mod scanner;
pub(crate) mod shutdown_sweep;
mod stale_runs;
mod subtree;
mod terminal_read;

pub use self::shutdown_sweep::CLIENTS;
pub use self::stale_runs::kill_stale_runs;
pub use self::subtree::{adopt_orphans, kill_children, kill_subtree};
pub(crate) use self::terminal_read::{TerminalActivity, terminal_activity};
