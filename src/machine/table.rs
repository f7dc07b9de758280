//! A table of descriptors that the driver has, and what of it matters here.

use super::effect::{FdChange, FdSource, IoId};
use super::value::Handle;

/// A table of descriptors.
#[derive(Clone, Debug)]
pub struct Table {
    io: Handle<IoId>,
    /// A bit for each descriptor that leads to where later stages of a pipeline read.
    piped: u16,
}

impl Table {
    /// One that leads to no other stage.
    pub fn new(io: Handle<IoId>) -> Self {
        Self { io, piped: 0 }
    }

    /// This one with changes made to it, under another name.
    pub fn changed(&self, io: Handle<IoId>, changes: &[FdChange]) -> Self {
        Self { io, piped: self.piped_after(changes) }
    }

    /// Its name.
    pub fn id(&self) -> IoId {
        self.io.id()
    }

    /// Whether what is written there may go to a later stage of a pipeline: where nobody reads any more,
    /// that ends the stage.
    pub fn feeds_a_stage(&self) -> bool {
        self.piped != 0
    }

    /// Whether what is written to this descriptor may go to a later stage of a pipeline.
    pub fn feeds(&self, descriptor: u8) -> bool {
        self.piped & 1 << descriptor != 0
    }

    /// A bit for each descriptor that leads, after these changes, to where later stages read.
    pub fn piped_after(&self, changes: &[FdChange]) -> u16 {
        changes.iter().fold(self.piped, |piped, change| {
            let leads = match change.source {
                FdSource::PipeWriter(_) => true,
                FdSource::Relay { .. } => piped & 1 << change.descriptor != 0,
                FdSource::Descriptor(from) => piped & 1 << from != 0,
                _ => false,
            };
            let bit = 1 << change.descriptor;
            if leads { piped | bit } else { piped & !bit }
        })
    }
}
