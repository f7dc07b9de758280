//! Scopes: what is ended together, and how that is done for certain.

mod remaining;
mod terminate;
mod tree;

pub use self::tree::ScopeTree;
