//! How many descriptors changes to a table take.

use std::os::fd::AsRawFd;

use super::table::Fd;
use super::tables::{FdTables, HIGHEST_STANDARD, Unmade};
use ftsh_machine::effect::{BufferId, FdChange, FdSource, IoId};
use ftsh_sys as sys;

/// How many descriptors something needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// With numbers of our own, to its end.
    pub kept: usize,
    /// Besides, with any numbers, while it begins.
    pub passing: usize,
}

impl Need {
    /// None.
    pub const NOTHING: Self = Self::of(0, 0);

    /// So many.
    pub const fn of(kept: usize, passing: usize) -> Self {
        Self { kept, passing }
    }

    /// Whether that is none.
    pub fn is_nothing(self) -> bool {
        self == Self::NOTHING
    }

    /// At most at a time.
    pub fn total(self) -> usize {
        self.kept + self.passing
    }

    /// What both need, one after the other.
    fn and(self, other: Self) -> Self {
        Self::of(self.kept + other.kept, self.passing.max(other.passing))
    }
}

impl FdTables {
    /// What changes to a table need.
    pub fn need(&self, base: IoId, redirects: &[FdChange]) -> Need {
        let needs = redirects.iter().enumerate().map(|(at, changes)| match &changes.source {
            // All share one; what is read anew takes some when something reads it.
            FdSource::Null | FdSource::Gone | FdSource::Position(_) | FdSource::Replay(_) => {
                Need::NOTHING
            }
            FdSource::Descriptor(from) => {
                let is_changed = redirects[..at].iter().any(|it| it.descriptor == *from);
                let inherited = |fd: &Fd| matches!(fd, Fd::Inherited(_));
                let fd = self.table(base).and_then(|table| table.get(*from));
                Need::of(usize::from(!is_changed && fd.is_some_and(inherited)), 0)
            }
            FdSource::File { .. } | FdSource::BufferCreate(..) => Need::of(1, 0),
            FdSource::Bytes(_) | FdSource::Draft { .. } => Need::of(1, 1),
            FdSource::Hold(_) => {
                let fd = self.table(base).and_then(|it| it.get(changes.descriptor));
                let stays = changes.descriptor > HIGHEST_STANDARD && fd.is_none();
                if stays { Need::NOTHING } else { Need::of(2, 1) }
            }
            FdSource::Relay { .. } | FdSource::Tee { .. } => Need::of(2, 1),
            FdSource::BufferRead(id) => match self.unmade(*id) {
                None => Need::of(1, 0),
                Some(Unmade::Bytes(_)) => Need::of(1, 1),
                Some(Unmade::Copy(_)) => Need::of(2, 0),
            },
            FdSource::BufferAppend(id) => Need::of(usize::from(self.unmade(*id).is_some()), 0),
            FdSource::BufferCopy { of, .. } => match self.unmade(*of) {
                Some(Unmade::Copy(_)) => Need::of(2, 0),
                Some(Unmade::Bytes(_)) | None => Need::of(1, 0),
            },
            FdSource::PipeReader(id) | FdSource::PipeWriter(id) => match self.waiting_end(*id) {
                // It comes into being, and one end of it waits.
                None => Need::of(1, 1),
                Some(end) => Need::of(usize::from(!sys::is_own(end.as_raw_fd())), 0),
            },
        });
        needs.fold(Need::NOTHING, Need::and)
    }

    /// What it takes to get at a buffer's content.
    pub fn need_to_read(&self, id: BufferId) -> Need {
        match self.unmade(id) {
            Some(Unmade::Copy(_)) => Need::of(1, 0),
            Some(Unmade::Bytes(_)) | None => Need::NOTHING,
        }
    }
}
