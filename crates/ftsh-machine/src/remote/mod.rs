//! Branches on other machines, as plain data.

mod dispatch;
mod files;
mod pack;
mod unpack;

use crate::core::Core;
use crate::program::Definitions;
use crate::random::Random;

pub(crate) use self::dispatch::{engine_of, forget_remote, wake_waiting};
pub(crate) use self::files::{begin_files, check_given};
pub(crate) use self::pack::{Packer, query_for_packing};
pub(crate) use self::unpack::Unpacked;

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
