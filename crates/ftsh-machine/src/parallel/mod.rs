//! Tasks that run at once: the branches of `forall` and of a hedged `forany`, and the stages of a
//! pipeline.

mod beside;
mod branches;
mod hedging;
mod joining;
mod stages;

use crate::core::Core;
use crate::program::Definitions;
use crate::random::Random;
use crate::remote::Packer;

pub(crate) use self::hedging::next_word_is_due;

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
