//! Processes of the whole system: lists, features for supervision, and killing of process trees.

pub mod features;
#[cfg(test)]
pub mod few_descriptors;
pub mod kill_tree;
mod leftovers;
pub mod list;
pub mod remains;
pub mod scanner;
mod terminal_read;

pub use self::leftovers::end_marked;
pub use self::remains::CLIENTS;
pub use self::terminal_read::{Activity, terminal_activity};
