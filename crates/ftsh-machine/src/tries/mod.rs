//! The `try` statement: attempts, their limits, channels and standard input.

mod channel;
mod input;
mod taken_back;
mod try_block;
mod verdict;

use crate::core::Core;
use crate::program::Definitions;
use crate::random::Random;

pub(crate) use self::taken_back::take_back;

/// Makes the attempts of a `try`, with the delays between them.
pub(crate) struct TryRunner<'a> {
    pub(crate) core: &'a mut Core,
    /// Rules of channels.
    pub(crate) definitions: &'a mut Definitions,
    /// Source of jitter.
    pub(crate) random: &'a mut Random,
}
