//! Relay of branches' output, line by line with a tag.

pub(crate) mod run;
pub(crate) mod state;
