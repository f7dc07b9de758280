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

/// Sends branches to other machines, and takes in what comes back.
pub(crate) struct Dispatcher<'a> {
    pub(crate) core: &'a mut Core,
    /// Functions and channels that branches go with.
    pub(crate) definitions: &'a Definitions,
    /// Jitter of delays, and seeds of branches.
    pub(crate) random: &'a mut Random,
}

impl Dispatcher<'_> {
    /// Returns what packs branches.
    pub(crate) fn packer(&self) -> Packer<'_> {
        Packer { core: self.core, definitions: self.definitions, random: self.random }
    }
}
