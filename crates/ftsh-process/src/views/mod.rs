//! Views of directories: overlays in namespaces, and the paths that lead into them.

mod open_view;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

pub(crate) use self::open_view::{BeginError, OpenView};
use ftsh_machine::effect::ViewId;

/// Views that the machine has begun and not dropped.
#[derive(Default)]
pub(crate) struct Views {
    all: HashMap<ViewId, Arc<OpenView>>,
    /// Number of the run, if a journal records the run.
    recorded_run: Option<u64>,
}

/// Removes the record that an earlier process of a run has committed a view of these directories.
/// `run` is the number of the run.
pub fn remove_commit_record(run: u64, view: ViewId, directories: &[BString]) {
    let mut views = Views { recorded_run: Some(run), ..Views::default() };
    // The run is over, and a later sweep removes the record.
    let _ = views.add_committed(view, directories);
    if let Some(view) = views.remove(view) {
        view.end();
    }
}

impl Views {
    /// Begins to leave records of commits.
    pub(crate) fn record_commits(&mut self, run: u64) {
        self.recorded_run = Some(run);
    }

    /// Adds a view that is about to begin, inside an outer one if there is one.
    pub(crate) fn add(&mut self, id: ViewId, outer: Option<Arc<OpenView>>) -> Arc<OpenView> {
        let recorded_as = self.record_mark(id);
        self.all.entry(id).or_insert_with(|| Arc::new(OpenView::new(recorded_as, outer))).clone()
    }

    /// Adds a view of these directories that an earlier process of the run has committed. Returns
    /// false if that process had not begun the commit.
    pub(crate) fn add_committed(
        &mut self,
        id: ViewId,
        directories: &[BString],
    ) -> io::Result<bool> {
        let paths: Vec<_> = directories.iter().map(|it| it.to_path_lossy().into_owned()).collect();
        let Some(mark) = self.record_mark(id) else { return Ok(false) };
        let view = OpenView::committed(&paths, &mark)?;
        let is_committed = view.is_some();
        self.all.extend(view.map(|view| (id, Arc::new(view))));
        Ok(is_committed)
    }

    /// Returns the beginning of the marks of a view whose commit is recorded. The next process that
    /// resumes the run finds the layers by their marks.
    fn record_mark(&self, id: ViewId) -> Option<String> {
        self.recorded_run.map(|run| format!("{run:016x}-{:x}-", id.0))
    }

    /// Returns a view. No path leads to a file in one that has ended.
    pub(crate) fn get(&self, id: ViewId) -> Arc<OpenView> {
        self.all.get(&id).cloned().unwrap_or_default()
    }

    pub(crate) fn remove(&mut self, id: ViewId) -> Option<Arc<OpenView>> {
        self.all.remove(&id)
    }
}
