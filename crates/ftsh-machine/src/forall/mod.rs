//! The branches of `forall`.

pub(crate) mod branches;
pub(crate) mod joining;

use crate::program::definitions::Definitions;
use crate::remote::pack::Packer;
use crate::tasks::core::Core;
use crate::tasks::random::Random;

/// Starts tasks beside each other: branches of `forall` and `forany`, and stages of pipelines.
pub(crate) struct Forker<'a> {
    pub(crate) core: &'a mut Core,
    /// Functions and channels that packed branches go with.
    pub(crate) definitions: &'a Definitions,
    /// First words of `forany`, and seeds of packed branches.
    pub(crate) random: &'a mut Random,
}

impl Forker<'_> {
    /// Returns what packs branches.
    pub(crate) fn packer(&self) -> Packer<'_> {
        Packer { core: self.core, definitions: self.definitions, random: self.random }
    }
}
