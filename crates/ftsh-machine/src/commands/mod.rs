//! Commands, builtins, redirections and tables of descriptors.

pub mod builtins;
mod calls;
mod command;
mod redirect;

use crate::core::Core;
use crate::program::Definitions;
use crate::random::Random;

pub(crate) use self::builtins::begin_in;
pub(crate) use self::command::command_lost;

/// Executes commands, builtins, and calls of functions.
pub(crate) struct CommandRunner<'a> {
    pub(crate) core: &'a mut Core,
    /// Functions available to commands, extended by `source`.
    pub(crate) definitions: &'a mut Definitions,
    /// Random choices of `random`.
    pub(crate) random: &'a mut Random,
    /// Set by `exit`.
    pub(crate) exit_requested: &'a mut bool,
}
