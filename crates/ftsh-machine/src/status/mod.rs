//! A snapshot of all tasks, and its text.

pub mod snapshot;
pub mod text;

pub use snapshot::*;
