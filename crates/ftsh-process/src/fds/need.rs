//! Number of descriptors needed by redirections.

use std::os::fd::AsRawFd;

use super::tables::{FdTables, HIGHEST_STANDARD, PendingContent};
use crate::descriptors::Fd;
use ftsh_machine::effect::{BufferId, FdChange, FdSource, IoId};
use ftsh_sys as sys;

/// Number of descriptors needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Need {
    /// Numbers outside the script's range, held to the end.
    pub kept: usize,
    /// Additional descriptors of any number, held only during the start.
    pub passing: usize,
}

impl Need {
    /// No descriptors.
    pub(crate) const NOTHING: Self = Self::of(0, 0);

    /// Creates a need.
    pub(crate) const fn of(kept: usize, passing: usize) -> Self {
        Self { kept, passing }
    }

    /// True if no descriptors are needed.
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::NOTHING
    }

    /// Returns the maximum number at one time.
    pub(crate) fn total(self) -> usize {
        self.kept + self.passing
    }

    /// Combines two needs, one after the other.
    fn and(self, other: Self) -> Self {
        Self::of(self.kept + other.kept, self.passing.max(other.passing))
    }
}

impl FdTables {
    /// Returns the need of changes to a table.
    pub(crate) fn need(&self, base: IoId, redirects: &[FdChange]) -> Need {
        let needs = redirects.iter().enumerate().map(|(at, changes)| match &changes.source {
            // The descriptor is shared by all users. A replayed input needs descriptors only when a
            // command reads it.
            FdSource::Null | FdSource::Gone | FdSource::Position(_) | FdSource::Spool(_) => {
                Need::NOTHING
            }
            FdSource::Descriptor(from) => {
                let is_changed = redirects[..at].iter().any(|it| it.descriptor == *from);
                let inherited = |fd: &Fd| matches!(fd, Fd::Inherited(_));
                let fd = self.table(base).and_then(|table| table.get(*from));
                Need::of(usize::from(!is_changed && fd.is_some_and(inherited)), 0)
            }
            FdSource::File { .. } | FdSource::BufferCreate(..) => Need::of(1, 0),
            FdSource::Bytes(_) | FdSource::StagedFile { .. } => Need::of(1, 1),
            FdSource::Hold(_) => {
                let fd = self.table(base).and_then(|it| it.get(changes.descriptor));
                let stays = changes.descriptor > HIGHEST_STANDARD && fd.is_none();
                if stays { Need::NOTHING } else { Need::of(2, 1) }
            }
            FdSource::Relay { .. } | FdSource::Tee { .. } => Need::of(2, 1),
            FdSource::BufferRead(id) => match self.unmade(*id) {
                None => Need::of(1, 0),
                Some(PendingContent::Bytes(_)) => Need::of(1, 1),
                Some(PendingContent::Copy(_)) => Need::of(2, 0),
            },
            FdSource::BufferAppend(id) => Need::of(usize::from(self.unmade(*id).is_some()), 0),
            FdSource::BufferCopy { of, .. } => match self.unmade(*of) {
                Some(PendingContent::Copy(_)) => Need::of(2, 0),
                Some(PendingContent::Bytes(_)) | None => Need::of(1, 0),
            },
            FdSource::PipeReader(id) | FdSource::PipeWriter(id) => match self.waiting_end(*id) {
                // The pipe is created, and one end waits.
                None => Need::of(1, 1),
                Some(end) => Need::of(usize::from(!sys::is_own(end.as_raw_fd())), 0),
            },
        });
        needs.fold(Need::NOTHING, Need::and)
    }

    pub(crate) fn need_to_read(&self, id: BufferId) -> Need {
        match self.unmade(id) {
            Some(PendingContent::Copy(_)) => Need::of(1, 0),
            Some(PendingContent::Bytes(_)) | None => Need::NOTHING,
        }
    }
}
