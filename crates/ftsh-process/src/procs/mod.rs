//! Processes of the whole system: lists, features for supervision, and killing of process trees.

pub mod features;
#[cfg(test)]
pub mod few_descriptors;
pub mod kill_tree;
pub mod list;
pub mod scanner;
pub mod shutdown_sweep;
mod stale_runs;
mod terminal_read;

pub use self::shutdown_sweep::CLIENTS;
pub use self::stale_runs::kill_stale_runs;
pub use self::terminal_read::{TerminalActivity, terminal_activity};
