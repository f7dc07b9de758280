//! Branches on other machines, as plain data.

pub(crate) mod dispatch;
pub(crate) mod engines;
pub(crate) mod nodes;
pub(crate) mod pack;
pub mod packed;
pub(crate) mod remote_branch;
pub(crate) mod state;
pub(crate) mod unpack;

use crate::program::definitions::Definitions;
use crate::remote::pack::Packer;
use crate::tasks::core::Core;
use crate::tasks::random::Random;

/// Dispatches branches to other machines, and handles their results.
pub(crate) struct Dispatcher<'a> {
    pub(crate) core: &'a mut Core,
    /// Functions and channels sent along with branches.
    pub(crate) definitions: &'a Definitions,
    /// Source of jitter, and of the seeds of branches.
    pub(crate) random: &'a mut Random,
}

impl Dispatcher<'_> {
    /// Returns a packer of branches.
    pub(crate) fn packer(&self) -> Packer<'_> {
        Packer { core: self.core, definitions: self.definitions, random: self.random }
    }
}
