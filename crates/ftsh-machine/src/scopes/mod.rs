//! Scopes: families of processes that end together.

pub(crate) mod scope;
pub(crate) mod tree;
