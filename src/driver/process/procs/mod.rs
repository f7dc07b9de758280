//! Processes at large: which there are, what the system offers to watch over them, and how a tree of
//! them is killed for certain.

pub mod features;
pub mod kill_tree;
pub mod list;
pub mod scanner;
