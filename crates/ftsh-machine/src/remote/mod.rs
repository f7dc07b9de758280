//! Branches on other machines, as plain data.

pub(crate) mod dispatch;
pub(crate) mod engines;
pub(crate) mod nodes;
pub(crate) mod pack;
pub mod packed;
pub(crate) mod remote_branch;
pub(crate) mod unpack;
