//! View of directories: paths, programs, and the end.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::cleanup::{Note, NoteKind, Registry};
use ftsh_layers::{Attempt, CommitFailure, CommitRecord, CoverError, Directories};
use nix::errno::Errno;

use ftsh_sys as sys;
use ftsh_sys::Launch;

/// View of directories for one attempt.
#[derive(Default)]
pub(crate) struct OpenView {
    state: RwLock<ViewState>,
    /// Beginning of the mark of the layers, if the commit is recorded.
    recorded_as: Option<String>,
    /// View of the outer attempt.
    outer: Option<Arc<Self>>,
    /// Reason why the view cannot be committed: it has a part of the changes of an inner attempt.
    defect: OnceLock<String>,
}

#[derive(Default)]
enum ViewState {
    /// Not yet begun.
    #[default]
    Unbegun,
    Open(Overlays),
    Committed(CommitRecord),
    /// Committed without a record, dropped or refused.
    Ended,
}

/// Overlays of a view.
struct Overlays {
    attempt: Attempt,
    /// Directory in which the shell finds the root directory of the view.
    root: PathBuf,
    /// Notes of the layers.
    notes: Vec<Note>,
    /// Registry of files in the view, which end with the view.
    registry: Arc<Registry>,
}

impl OpenView {
    /// Creates a view that has not begun. The mark of the layers begins with `recorded_as`, if the
    /// commit is recorded.
    pub(crate) fn new(recorded_as: Option<String>, outer: Option<Arc<Self>>) -> Self {
        Self { recorded_as, outer, ..Self::default() }
    }

    /// Returns a view of these directories that an earlier process has committed, with a mark that
    /// begins in this way. Finishes a commit that has begun. Returns none if no commit had begun.
    pub(crate) fn committed(paths: &[PathBuf], mark: &str) -> io::Result<Option<Self>> {
        let places = match Directories::find(paths) {
            // Another process has removed the directory with everything in it.
            Err(CoverError::Directory { error, .. }) if error.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            places => places.map_err(|refusal| io::Error::other(refusal.to_string()))?,
        };
        let view = Self::new(Some(mark.into()), None);
        let record = CommitRecord::find(&places, mark)?;
        Ok(record.map(|record| Self { state: ViewState::Committed(record).into(), ..view }))
    }

    /// Covers directories, given as paths of the shell. Returns their absolute paths without links.
    pub(crate) fn begin(
        &self,
        paths: &[PathBuf],
        registry: &Arc<Registry>,
    ) -> Result<Vec<PathBuf>, BeginError> {
        let _busy = registry.begin().ok_or(BeginError::Dropped)?;
        let result = match &self.outer {
            None => Overlays::cover(paths, self.recorded_as.as_deref(), registry, None),
            Some(outer) => outer.cover(paths, registry),
        };
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match (&*state, result) {
            (ViewState::Unbegun, Ok((overlays, directories))) => {
                *state = ViewState::Open(overlays);
                Ok(directories)
            }
            (_, Ok(_)) => Err(BeginError::Dropped),
            (_, Err(error)) => {
                *state = ViewState::Ended;
                Err(BeginError::Cover(error))
            }
        }
    }

    /// Covers directories for an inner attempt.
    fn cover(
        &self,
        paths: &[PathBuf],
        registry: &Arc<Registry>,
    ) -> Result<(Overlays, Vec<PathBuf>), CoverError> {
        if let Some(defect) = self.defect.get() {
            return Err(io::Error::other(defect.clone()).into());
        }
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            ViewState::Open(overlays) => {
                Overlays::cover(paths, None, registry, Some(&overlays.attempt))
            }
            _ => Err(io::Error::other("the outer attempt has ended").into()),
        }
    }

    /// Returns the path by which the shell reaches what programs of the view see by a path. With
    /// `follow`, the last component may be a link.
    pub(crate) fn translate(&self, path: &Path, follow: bool) -> PathBuf {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let ViewState::Open(overlays) = &*state else { return PathBuf::new() };
        match overlays.translate(path, follow) {
            Ok(path) => path,
            // The kernel reports the same error for this path.
            Err(_) => overlays.root.join(path.strip_prefix("/").unwrap_or(path)),
        }
    }

    /// Returns the absolute path without links of what programs of the view see by a path.
    pub(crate) fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let ViewState::Open(overlays) = &*state else { return Err(Errno::ENOENT.into()) };
        let reached = overlays.translate(path, true)?;
        reached.metadata()?;
        match reached.strip_prefix(&overlays.root) {
            Ok(below) => Ok(Path::new("/").join(below)),
            Err(_) => reached.canonicalize(),
        }
    }

    /// Returns the registry of files that end with this view or an outer one, if a path of the shell
    /// leads into the directories that the view covers.
    pub(crate) fn registry_of(&self, path: &Path) -> Option<Arc<Registry>> {
        let is_in = match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            ViewState::Open(overlays) => overlays.attempt.covers(path),
            ViewState::Unbegun | ViewState::Committed(_) | ViewState::Ended => true,
        };
        if is_in { Some(self.registry()) } else { self.outer.as_ref()?.registry_of(path) }
    }

    /// Returns the registry of files that end with the view.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            ViewState::Open(overlays) => overlays.registry.clone(),
            ViewState::Unbegun | ViewState::Committed(_) | ViewState::Ended => {
                Arc::new(Registry::without_notes())
            }
        }
    }

    /// Starts a program in the view.
    pub(crate) fn spawn(&self, launch: &Launch) -> Result<i32, Errno> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            ViewState::Open(overlays) => sys::spawn_within(launch, overlays.attempt.namespaces()),
            ViewState::Unbegun | ViewState::Committed(_) | ViewState::Ended => {
                Err(Errno::ECANCELED)
            }
        }
    }

    /// Makes the changes take place, if `decide` returns true right before the first change, and ends
    /// the view.
    pub(crate) fn commit(&self, decide: &mut dyn FnMut() -> bool) -> Result<(), CommitFailure> {
        if let Some(defect) = self.defect.get() {
            self.end();
            return Err(CommitFailure::Defect(defect.clone()));
        }
        let result = self.commit_overlays(decide);
        if let (Err(failure @ CommitFailure::Incomplete { .. }), Some(outer)) =
            (&result, &self.outer)
        {
            let _ = outer.defect.set(format!("an inner attempt could not be committed: {failure}"));
        }
        result
    }

    fn commit_overlays(&self, decide: &mut dyn FnMut() -> bool) -> Result<(), CommitFailure> {
        // The notes outlive the commit. They finish a commit that was interrupted.
        let Some(Overlays { attempt, notes: _notes, .. }) = self.take() else {
            return decide().then_some(()).ok_or(CommitFailure::Canceled);
        };
        let record = attempt.commit_if(self.recorded_as.is_some(), decide)?.record;
        if let Some(record) = record {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            *state = ViewState::Committed(record);
        }
        Ok(())
    }

    /// Returns the place of the record of the commit.
    pub(crate) fn record(&self) -> Option<PathBuf> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            ViewState::Committed(record) => Some(record.path().to_owned()),
            _ => None,
        }
    }

    /// Ends the view, and discards its changes unless committed. Removes the record of the commit.
    pub(crate) fn end(&self) {
        if let ViewState::Committed(record) = self.end_state() {
            // A later attempt removes an old record that cannot be removed now.
            let _ = record.remove();
        }
    }

    fn take(&self) -> Option<Overlays> {
        match self.end_state() {
            ViewState::Open(overlays) => Some(overlays),
            _ => None,
        }
    }

    fn end_state(&self) -> ViewState {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *state, ViewState::Ended)
    }
}

/// Reason why a view cannot begin.
pub(crate) enum BeginError {
    /// The view was dropped meanwhile, or the run ends.
    Dropped,
    /// The directories cannot be covered.
    Cover(CoverError),
}

impl Overlays {
    /// Covers directories, within an outer attempt if there is one. The mark of the layers begins with
    /// `recorded_as`.
    fn cover(
        paths: &[PathBuf],
        recorded_as: Option<&str>,
        registry: &Arc<Registry>,
        outer: Option<&Attempt>,
    ) -> Result<(Self, Vec<PathBuf>), CoverError> {
        let directories = match outer {
            None => Directories::find(paths)?,
            Some(outer) => Directories::find_within(paths, outer)?,
        };
        registry.report(directories.sweep());
        // Another process may have begun the same view before.
        let mark = format!("{}{:016x}", recorded_as.unwrap_or_default(), sys::random()?);
        let layers = directories.layers(&mark);
        let notes = layers.map(|path| registry.note(NoteKind::Layers, path)).collect();
        let attempt = match outer {
            None => Attempt::begin(&directories, &mark)?,
            Some(outer) => Attempt::begin_within(&directories, &mark, outer)?,
        };
        let root = attempt.root().unwrap_or_default();
        let registry = Arc::new(Registry::without_notes());
        let covered = directories.directories().map(Path::to_owned).collect();
        Ok((Self { attempt, root, notes, registry }, covered))
    }

    fn translate(&self, path: &Path, follow: bool) -> io::Result<PathBuf> {
        if path.is_absolute() {
            self.attempt.translate(path, follow)
        } else {
            self.attempt.translate(&std::env::current_dir()?.join(path), follow)
        }
    }
}
