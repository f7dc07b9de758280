//! The branches of `forall`.

pub(crate) mod branches;
pub(crate) mod gate;
pub(crate) mod gating;
pub(crate) mod joining;
pub(crate) mod once;
pub(crate) mod recording;
pub(crate) mod slots;
pub(crate) mod words;

use crate::program::definitions::Definitions;
use crate::remote::pack::Packer;
use crate::tasks::core::Core;
use crate::tasks::random::Random;

/// Starts parallel tasks: branches of `forall` and `forany`, and stages of pipelines.
pub(crate) struct Forker<'a> {
    pub(crate) core: &'a mut Core,
    /// Functions and channels sent along with packed branches.
    pub(crate) definitions: &'a Definitions,
    /// Source of the first word of a `forany`, and of the seeds of packed branches.
    pub(crate) random: &'a mut Random,
}

impl Forker<'_> {
    /// Returns a packer of branches.
    pub(crate) fn packer(&self) -> Packer<'_> {
        Packer { core: self.core, definitions: self.definitions, random: self.random }
    }
}
