//! Attempts whose changes to directories are kept apart.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use ftsh_sys::{Namespaces, Overlay, mount_overlays};

use crate::change::Change;
use crate::commit::{self, Committed};
use crate::directories::Directories;
use crate::error::{CommitFailure, CoverError};
use crate::layers::Layers;
use crate::mounts;
use crate::note::RECORD;
use crate::record::CommitRecord;
use crate::translate;
use crate::tree::CoveredTree;

/// Overlays over directories, in namespaces of their own. Dropping an attempt discards its changes.
pub struct Attempt {
    /// `None` once the overlays are released.
    namespaces: Option<Namespaces>,
    trees: Vec<CoveredTree>,
}

impl Attempt {
    /// Covers directories. The mark is a part of the layers' names, which [`Directories::layers`]
    /// returns; each mark serves one attempt.
    ///
    /// The call waits for the kernel, so it does not belong on an event loop.
    pub fn begin(places: &Directories, mark: &str) -> Result<Self, CoverError> {
        let mut attempt = Self { namespaces: None, trees: Vec::new() };
        for (place, path) in places.places.iter().zip(places.layers(mark)) {
            if !place.is_current() {
                let error = io::Error::other("the directory was moved or replaced");
                return Err(CoverError::Directory { path: place.path.clone(), error });
            }
            let primary = attempt.trees.first().map(|tree| tree.layers.path.clone());
            let tree = CoveredTree::create(place, &path, primary.as_deref())
                .map_err(|error| CoverError::Layers { path: place.path.clone(), error })?;
            attempt.trees.push(tree);
        }
        let is_privileged = attempt.trees.iter().all(|tree| tree.start.is_privileged);
        let overlays: io::Result<Vec<Overlay>> =
            attempt.trees.iter().map(|tree| tree.overlay(is_privileged)).collect();
        let namespaces = mount_overlays(&overlays?, !is_privileged).map_err(|failure| {
            let trees = &attempt.trees;
            mounts::refusal(failure, |index| {
                trees.get(index).map(|tree| (tree.path.as_path(), &tree.directory))
            })
        })?;
        attempt.namespaces = Some(namespaces);
        Ok(attempt)
    }

    /// Returns the namespaces, for [`ftsh_sys::spawn_within`].
    pub fn namespaces(&self) -> Option<&Namespaces> {
        self.namespaces.as_ref()
    }

    /// Returns the path by which the shell itself reaches the root directory of the namespaces.
    pub fn root(&self) -> Option<PathBuf> {
        self.namespaces.as_ref().map(|namespaces| translate::root(namespaces.root.as_fd()))
    }

    /// Returns the locks on the layers. The layers belong to a living shell as long as any process
    /// has one of them open.
    pub fn locks(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.trees.iter().map(|tree| tree.layers.fd())
    }

    /// Returns the path by which the shell itself reaches what the programs of the attempt reach by
    /// an absolute path. With `follow`, the last component may be a link.
    ///
    /// A path that leads to no covered directory is returned unchanged.
    pub fn translate(&self, path: &Path, follow: bool) -> io::Result<PathBuf> {
        let Some(namespaces) = &self.namespaces else { return Ok(path.into()) };
        let covered = |path: &Path| self.trees.iter().any(|tree| path.starts_with(&tree.path));
        translate::translate(namespaces.root.as_fd(), path, follow, &covered)
    }

    /// Returns the changes so far, sorted by path.
    ///
    /// All programs of the attempt have ended.
    pub fn changes(&self) -> Result<Vec<Change>, CommitFailure> {
        commit::changes(&self.trees)
    }

    /// Makes all changes take place.
    ///
    /// All programs of the attempt have ended. After an error other than
    /// [`CommitFailure::Unfinished`], the directories are as before the attempt.
    pub fn commit(self) -> Result<Committed, CommitFailure> {
        self.commit_observed(false, &mut || {})
    }

    /// Commits like [`Attempt::commit`], and leaves a record of the commit for a process that asks
    /// later, by [`CommitRecord::find`].
    pub fn commit_recorded(self) -> Result<Committed, CommitFailure> {
        self.commit_observed(true, &mut || {})
    }

    /// Commits, with a call before each step.
    pub(crate) fn commit_observed(
        mut self,
        is_recorded: bool,
        observe: &mut dyn FnMut(),
    ) -> Result<Committed, CommitFailure> {
        // The kernel removes the mounts.
        drop(self.namespaces.take());
        let trees = std::mem::take(&mut self.trees);
        let mut result = commit::commit(&trees, is_recorded, observe);
        if matches!(result, Err(CommitFailure::Unfinished { .. })) {
            return result;
        }
        let mut layers: Vec<Layers> = trees.into_iter().map(|tree| tree.layers).collect();
        let is_recorded = layers.first().is_some_and(|primary| primary.has(RECORD));
        let primary = is_recorded.then(|| layers.remove(0));
        // The next sweep removes what cannot be removed now.
        let _ = remove_layers(layers, observe);
        if let (Ok(committed), Some(primary)) = (&mut result, primary) {
            observe();
            committed.record = Some(CommitRecord::of(primary));
        }
        result
    }

    /// Discards all changes.
    pub fn discard(mut self) -> io::Result<()> {
        self.release()
    }

    fn release(&mut self) -> io::Result<()> {
        drop(self.namespaces.take());
        let trees = std::mem::take(&mut self.trees);
        remove_layers(trees.into_iter().map(|tree| tree.layers).collect(), &mut || {})
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        // The next sweep removes what cannot be removed now.
        let _ = self.release();
    }
}

/// Removes layers, those with the note of the attempt last.
fn remove_layers(layers: Vec<Layers>, observe: &mut dyn FnMut()) -> io::Result<()> {
    let mut result = Ok(());
    for layers in layers.into_iter().rev() {
        observe();
        result = layers.remove().and(result);
    }
    result
}
