//! Paths as written in scripts, and as the shell itself reaches them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BStr, BString};

use crate::views::{OpenView, Views};
use ftsh_machine::effect::Directory;

/// Directory of a task, and the view in which the task finds files.
///
/// Every path of a request is resolved here, so none leads around a view.
#[derive(Clone, Default)]
pub(crate) struct TaskDirectory {
    /// Absolute path; `None` for the directory in which the shell was started.
    pub path: Option<Arc<BString>>,
    /// View of the attempt, if the attempt has one.
    pub view: Option<Arc<OpenView>>,
}

impl TaskDirectory {
    /// Returns the directory of a request with its view.
    pub(crate) fn of(directory: &Directory, views: &Views) -> Self {
        let view = directory.view.map(|view| views.get(view));
        Self { path: directory.path.clone(), view }
    }

    /// Returns a path as programs of the task see it: absolute, or relative to the directory in
    /// which the shell was started.
    pub(crate) fn join(&self, path: &[u8]) -> PathBuf {
        let path = Path::new(OsStr::from_bytes(path));
        match &self.path {
            Some(directory) => Path::new(OsStr::from_bytes(directory)).join(path),
            None => path.into(),
        }
    }

    /// Returns the path by which the shell reaches a file of the task.
    pub(crate) fn resolve(&self, path: &[u8]) -> PathBuf {
        self.reach(&self.join(path))
    }

    /// Returns the path by which the shell reaches a file of the task, or a link itself.
    pub(crate) fn resolve_link(&self, path: &[u8]) -> PathBuf {
        self.reach_by(&self.join(path), false)
    }

    /// Returns the path by which the shell reaches what programs of the task see by a path.
    pub(crate) fn reach(&self, path: &Path) -> PathBuf {
        self.reach_by(path, true)
    }

    fn reach_by(&self, path: &Path, follow: bool) -> PathBuf {
        match &self.view {
            // The empty path is no file.
            Some(view) if !path.as_os_str().is_empty() => view.translate(path, follow),
            _ => path.into(),
        }
    }
}

/// Returns a path for messages.
pub(crate) fn shown(path: &BStr) -> &BStr {
    if path.is_empty() { "\"\"".into() } else { path }
}

#[cfg(test)]
impl TaskDirectory {
    /// Creates a directory outside all views.
    pub(crate) fn at(path: impl Into<BString>) -> Self {
        Self { path: Some(Arc::new(path.into())), view: None }
    }
}
