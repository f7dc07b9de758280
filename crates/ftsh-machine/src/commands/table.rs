//! A table of descriptors that the driver has, and what of it matters here.

use crate::effect::{FdChange, FdSource, IoId};
use crate::values::value::Handle;

/// A table of descriptors.
#[derive(Clone, Debug)]
pub struct Table {
    io: Handle<IoId>,
    /// A bit for each descriptor that leads to where later stages of a pipeline read, or to the shell's
    /// own output.
    piped: u16,
    /// A bit for each descriptor that may read what comes to an end: a pipe or a socket.
    passing: u16,
}

impl Table {
    /// Returns the table that the shell was started with. Its descriptor 0 may come to an end.
    pub fn new(io: Handle<IoId>, passing: bool) -> Self {
        Self { io, piped: 1 << 1 | 1 << 2, passing: u16::from(passing) }
    }

    /// This one with changes made to it, under another name.
    pub fn changed(&self, io: Handle<IoId>, changes: &[FdChange]) -> Self {
        let passing =
            follow(self.passing, changes, |source, _| matches!(source, FdSource::PipeReader(_)));
        Self { io, piped: self.piped_after(changes), passing }
    }

    /// Its name.
    pub fn id(&self) -> IoId {
        self.io.id()
    }

    /// Returns true if what is written there may go to a later stage of a pipeline, or to the shell's own
    /// output: the stage, or the script, ends where nobody reads any more.
    pub fn has_readers(&self) -> bool {
        self.piped != 0
    }

    /// Returns true if what is written to this descriptor may go there.
    pub fn feeds(&self, descriptor: u8) -> bool {
        self.piped & 1 << descriptor != 0
    }

    /// Returns a bit for each descriptor that leads there after these changes.
    pub fn piped_after(&self, changes: &[FdChange]) -> u16 {
        follow(self.piped, changes, |source, before| match source {
            FdSource::PipeWriter(_) => true,
            FdSource::Relay { .. } | FdSource::Tee { .. } => before,
            _ => false,
        })
    }

    /// Whether descriptor 0 is something that may come to an end, and then is there no more.
    pub fn may_end(&self) -> bool {
        self.passing & 1 != 0
    }
}

/// What bits for descriptors are after changes; `is` says of other sources than descriptors whether they
/// have it, where the one before them had it or not.
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
