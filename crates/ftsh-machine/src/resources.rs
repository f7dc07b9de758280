//! Handles of resources of the driver, released with their last use.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::effect::{BufferId, Effect, IoId, ScratchId, SpoolId, StagedFileId, ViewId};

/// Reference-counted handle of a driver's resource. After the last handle is dropped, the driver
/// releases the resource.
#[derive(Clone)]
pub(crate) struct ResourceHandle<Id: Copy>(Arc<HandleInner<Id>>);

struct HandleInner<Id: Copy> {
    id: Id,
    resource: Resource,
    released: Released,
}

impl<Id: Copy> Drop for HandleInner<Id> {
    fn drop(&mut self) {
        if let Ok(mut resources) = self.released.0.resources.lock() {
            resources.push(self.resource);
            self.released.0.any.store(true, Ordering::Release);
        }
    }
}

/// Resources without a handle, not yet released by the driver.
#[derive(Clone, Default)]
pub(crate) struct Released(Arc<Unreleased>);

#[derive(Default)]
struct Unreleased {
    /// True if the list may have entries, checked far more often than entries exist.
    any: AtomicBool,
    resources: Mutex<Vec<Resource>>,
}

/// Resource of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// A variable used as a file.
    Buffer(BufferId),
    /// A table of descriptors.
    Io(IoId),
    /// A staged file, written whole or not at all.
    StagedFile(StagedFileId),
    /// Input read again by the next attempt.
    Spool(SpoolId),
    /// The scratch directory of an attempt.
    Scratch(ScratchId),
    /// The view of an attempt.
    View(ViewId),
}

impl Resource {
    /// Returns the effect that releases the resource; `None` for the shell's own descriptors.
    pub(crate) fn dropped(self) -> Option<Effect> {
        Some(match self {
            Self::Buffer(buffer) => Effect::DropBuffer(buffer),
            Self::Io(IoId::INHERITED) => return None,
            Self::Io(io) => Effect::CloseIo(io),
            Self::StagedFile(draft) => Effect::DropStagedFile(draft),
            Self::Spool(replay) => Effect::DropSpool(replay),
            Self::Scratch(scratch) => Effect::DropScratch(scratch),
            Self::View(view) => Effect::DropView(view),
        })
    }
}

impl From<BufferId> for Resource {
    fn from(id: BufferId) -> Self {
        Self::Buffer(id)
    }
}

impl From<IoId> for Resource {
    fn from(id: IoId) -> Self {
        Self::Io(id)
    }
}

impl From<StagedFileId> for Resource {
    fn from(id: StagedFileId) -> Self {
        Self::StagedFile(id)
    }
}

impl From<SpoolId> for Resource {
    fn from(id: SpoolId) -> Self {
        Self::Spool(id)
    }
}

impl From<ScratchId> for Resource {
    fn from(id: ScratchId) -> Self {
        Self::Scratch(id)
    }
}

impl From<ViewId> for Resource {
    fn from(id: ViewId) -> Self {
        Self::View(id)
    }
}

impl Released {
    /// Takes a resource to release.
    pub(crate) fn pop(&self) -> Option<Resource> {
        if !self.0.any.load(Ordering::Acquire) {
            return None;
        }
        let mut resources = self.0.resources.lock().ok()?;
        let last = resources.pop();
        self.0.any.store(!resources.is_empty(), Ordering::Release);
        last
    }
}

impl<Id: Copy> ResourceHandle<Id>
where
    Resource: From<Id>,
{
    /// Creates the first handle of a resource.
    pub(crate) fn new(id: Id, released: &Released) -> Self {
        Self(Arc::new(HandleInner { id, resource: id.into(), released: released.clone() }))
    }
}

impl<Id: Copy> ResourceHandle<Id> {
    /// Returns the id of the resource.
    pub(crate) fn id(&self) -> Id {
        self.0.id
    }

    /// Returns true if no other handle of the resource exists.
    pub(crate) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl<Id: Copy + fmt::Debug> fmt::Debug for ResourceHandle<Id> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.id.fmt(f)
    }
}
