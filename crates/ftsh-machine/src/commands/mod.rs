//! Commands, builtins, redirections and tables of descriptors.

pub mod builtins;
pub(crate) mod command;
pub(crate) mod invocation;
pub(crate) mod opening;
pub(crate) mod redirect;
pub(crate) mod table;
