//! Tables of descriptors, as far as the machine needs to know them.

use crate::effect::{FdChange, FdSource, IoId};
use crate::values::value::ResourceHandle;

/// Table of descriptors.
#[derive(Clone, Debug)]
pub(crate) struct IoTable {
    io: ResourceHandle<IoId>,
    /// Bit set of the descriptors leading to a later stage of a pipeline, or to the shell's own
    /// output.
    piped: u16,
    /// Bit set of the descriptors that may read from a pipe or a socket, whose input can end.
    passing: u16,
}

impl IoTable {
    /// Returns the table with which the shell was started. `passing` states that descriptor 0 is a
    /// pipe or a socket.
    pub(crate) fn new(io: ResourceHandle<IoId>, passing: bool) -> Self {
        Self { io, piped: 1 << 1 | 1 << 2, passing: u16::from(passing) }
    }

    /// Returns the table after changes, under a new id.
    pub(crate) fn changed(&self, io: ResourceHandle<IoId>, changes: &[FdChange]) -> Self {
        let passing =
            follow(self.passing, changes, |source, _| matches!(source, FdSource::PipeReader(_)));
        Self { io, piped: self.piped_after(changes), passing }
    }

    /// Returns the id of the table.
    pub(crate) fn id(&self) -> IoId {
        self.io.id()
    }

    /// Returns true if output may go to a later stage of a pipeline, or to the shell's own output.
    /// The stage or the script ends when the reader is gone.
    pub(crate) fn has_readers(&self) -> bool {
        self.piped != 0
    }

    /// Returns true if output of a descriptor may go to such a reader.
    pub(crate) fn feeds(&self, descriptor: u8) -> bool {
        self.piped & 1 << descriptor != 0
    }

    /// Returns the bit set of such descriptors after changes.
    pub(crate) fn piped_after(&self, changes: &[FdChange]) -> u16 {
        follow(self.piped, changes, |source, before| match source {
            FdSource::PipeWriter(_) => true,
            FdSource::Relay { .. } | FdSource::Tee { .. } => before,
            _ => false,
        })
    }

    /// Returns true if descriptor 0 is input that can end.
    pub(crate) fn may_end(&self) -> bool {
        self.passing & 1 != 0
    }
}

/// Returns a bit set of descriptors after changes. `is` decides for sources other than descriptors,
/// with the descriptor's previous bit.
fn follow(bits: u16, changes: &[FdChange], is: impl Fn(&FdSource, bool) -> bool) -> u16 {
    changes.iter().fold(bits, |bits, change| {
        let bit = 1 << change.descriptor;
        let set = match &change.source {
            FdSource::Descriptor(from) => bits & 1 << from != 0,
            source => is(source, bits & bit != 0),
        };
        if set { bits | bit } else { bits & !bit }
    })
}
