//! The `try` statement: attempts, their limits, channels and standard input.

pub(crate) mod channel;
pub(crate) mod entering;
pub(crate) mod futile;
pub(crate) mod input;
pub(crate) mod size;
pub(crate) mod try_block;
pub(crate) mod verdict;
pub(crate) mod watching;

use crate::program::definitions::Definitions;
use crate::tasks::core::Core;
use crate::tasks::random::Random;

/// Makes the attempts of a `try`, with the delays between them.
pub(crate) struct TryRunner<'a> {
    pub(crate) core: &'a mut Core,
    /// Rules of channels.
    pub(crate) definitions: &'a mut Definitions,
    /// Source of jitter.
    pub(crate) random: &'a mut Random,
}
