//! Commands, builtins, redirections and tables of descriptors.

pub mod builtins;
pub(crate) mod command;
pub(crate) mod invocation;
pub(crate) mod modifiers;
pub(crate) mod opening;
pub(crate) mod redirect;
pub(crate) mod table;

use crate::program::definitions::Definitions;
use crate::tasks::core::Core;
use crate::tasks::random::Random;

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
