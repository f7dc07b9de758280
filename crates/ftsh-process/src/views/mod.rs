//! Views of directories: overlays in namespaces, and the paths that lead into them.

mod open_view;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use self::open_view::{BeginError, OpenView};
use ftsh_machine::effect::ViewId;

/// Views that the machine has begun and not dropped.
#[derive(Default)]
pub(crate) struct Views(HashMap<ViewId, Arc<OpenView>>);

impl Views {
    /// Adds a view that is about to begin.
    pub(crate) fn add(&mut self, id: ViewId) -> Arc<OpenView> {
        self.0.entry(id).or_default().clone()
    }

    /// Returns a view. No path leads to a file in one that has ended.
    pub(crate) fn get(&self, id: ViewId) -> Arc<OpenView> {
        self.0.get(&id).cloned().unwrap_or_default()
    }

    /// Removes a view.
    pub(crate) fn remove(&mut self, id: ViewId) -> Option<Arc<OpenView>> {
        self.0.remove(&id)
    }
}
