//! Attempts whose changes to directories are kept apart.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use ftsh_sys::{Namespaces, Overlay, mount_overlays, mount_overlays_within};

use crate::change::Change;
use crate::commit::{self, CommitRecord, Committed, RECORD};
use crate::directories::{Directories, OuterPlace, ResolvedPath};
use crate::entry::c_string;
use crate::error::{CommitFailure, CoverError};
use crate::layers::Layers;
use crate::mounts;
use crate::translate;
use crate::tree::CoveredTree;

/// Overlays over directories, in namespaces of their own. Dropping an attempt discards its changes.
pub struct Attempt {
    /// `None` once the overlays are released.
    namespaces: Option<Namespaces>,
    trees: Vec<CoveredTree>,
    /// Trees that an outer attempt covers as well. Their changes go to the outer attempt.
    nested: Vec<CoveredTree>,
    /// Directories of the outer attempts, the innermost attempt first.
    around: Vec<OuterPlace>,
}

impl Attempt {
    /// Covers directories. The mark is a part of the layers' names, which [`Directories::layers`]
    /// returns; each mark serves one attempt.
    ///
    /// The call waits for the kernel, so it does not belong on an event loop.
    pub fn begin(places: &Directories, mark: &str) -> Result<Self, CoverError> {
        Self::begin_around(places, mark, None, None)
    }

    /// Covers directories, and makes files outside them read-only, except for those below the writable
    /// directories. Programs can use devices, FIFOs and sockets as before.
    pub fn begin_alone(
        places: &Directories,
        mark: &str,
        writable: &[PathBuf],
    ) -> Result<Self, CoverError> {
        Self::begin_around(places, mark, None, Some(writable))
    }

    /// Covers directories within an outer attempt. The outer attempt lives longer.
    pub fn begin_within(
        places: &Directories,
        mark: &str,
        outer: &Self,
    ) -> Result<Self, CoverError> {
        Self::begin_around(places, mark, Some(outer), None)
    }

    fn begin_around(
        places: &Directories,
        mark: &str,
        outer: Option<&Self>,
        writable: Option<&[PathBuf]>,
    ) -> Result<Self, CoverError> {
        let around = outer.map(Self::places).unwrap_or_default();
        let (trees, nested) = (Vec::new(), Vec::new());
        let mut attempt = Self { namespaces: None, trees, nested, around };
        for (index, place) in places.places.iter().enumerate() {
            let path = place.layers(mark, index);
            if !place.is_current() {
                let error = io::Error::other("the directory was moved or replaced");
                return Err(CoverError::Directory { path: place.path.clone(), error });
            }
            let primary = attempt.trees.first().map(|tree| tree.layers.path.clone());
            let tree = CoveredTree::create(place, &path, primary.as_deref())
                .map_err(|error| CoverError::Layers { path: place.path.clone(), error })?;
            match place.nested {
                None => attempt.trees.push(tree),
                Some(_) => attempt.nested.push(tree),
            }
        }
        let trees: Vec<_> = attempt.trees.iter().chain(&attempt.nested).collect();
        let is_privileged = trees.iter().all(|tree| tree.start.is_privileged);
        let overlays: io::Result<Vec<Overlay>> =
            trees.iter().map(|tree| tree.overlay(is_privileged)).collect();
        let overlays = overlays?;
        let writable = writable.map(|it| {
            let layers = trees.iter().map(|tree| tree.layers.path.as_path());
            let all = it.iter().map(PathBuf::as_path).chain(layers);
            // Programs set up themselves and their namespaces by `/proc`, and share memory by `/dev`.
            let all = all.chain(["/proc", "/dev"].map(Path::new)).filter(|it| it.exists());
            all.map(c_string).collect::<io::Result<Vec<_>>>()
        });
        let writable = writable.transpose()?;
        let mounted = match outer.and_then(Self::namespaces) {
            Some(outer) => mount_overlays_within(&overlays, outer),
            None => mount_overlays(&overlays, !is_privileged, writable.as_deref()),
        };
        let namespaces = mounted.map_err(|failure| {
            let refusal = mounts::refusal(failure, |index| {
                trees.get(index).map(|tree| (tree.path.as_path(), &tree.directory))
            });
            match refusal {
                // The kernel stacks two overlays at most.
                CoverError::FileSystem { path, .. }
                    if trees.iter().any(|tree| tree.path == path && tree.nested.is_some()) =>
                {
                    CoverError::Stacked { path }
                }
                refusal => refusal,
            }
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

    /// Returns the directories of this attempt and of the outer ones.
    fn places(&self) -> Vec<OuterPlace> {
        let Some(root) = self.root() else { return Vec::new() };
        let own = self.nested.iter().chain(&self.trees).map(|tree| OuterPlace {
            covered: tree.path.clone(),
            root: root.clone(),
            layers: tree.layers.path.clone(),
        });
        own.chain(self.around.iter().cloned()).collect()
    }

    /// Returns the place of a path that this attempt or an outer one covers.
    fn place_of(&self, path: &Path) -> Option<OuterPlace> {
        self.places().into_iter().find(|place| path.starts_with(&place.covered))
    }

    /// Returns the absolute path without links of what programs of the attempt reach by a path, and
    /// the path by which the shell reaches a directory that is covered.
    fn resolve(&self, path: &Path) -> io::Result<ResolvedPath> {
        let path =
            if path.is_absolute() { path.into() } else { std::env::current_dir()?.join(path) };
        let reached = self.translate(&path, true)?;
        let roots = self.places().into_iter().map(|place| place.root);
        for root in roots {
            if let Ok(below) = reached.strip_prefix(&root) {
                reached.metadata()?;
                return Ok((Path::new("/").join(below), Some(reached)));
            }
        }
        Ok((reached.canonicalize()?, None))
    }

    /// True if the attempt itself covers what the shell reaches by a path.
    pub fn covers(&self, reached: &Path) -> bool {
        self.root().is_some_and(|root| reached.starts_with(root))
    }

    /// Returns the locks on the layers. The layers belong to a living shell as long as any process
    /// has one of them open.
    pub fn locks(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.trees.iter().chain(&self.nested).map(|tree| tree.layers.fd())
    }

    /// Returns the path by which the shell itself reaches what the programs of the attempt reach by
    /// an absolute path. With `follow`, the last component may be a link.
    ///
    /// A path that leads to no covered directory is returned unchanged.
    pub fn translate(&self, path: &Path, follow: bool) -> io::Result<PathBuf> {
        let Some(namespaces) = &self.namespaces else { return Ok(path.into()) };
        let root_of = |path: &Path| self.place_of(path).map(|place| place.root);
        translate::translate(namespaces.root.as_fd(), path, follow, &root_of)
    }

    /// Returns the changes so far, sorted by path.
    ///
    /// All programs of the attempt have ended.
    pub fn changes(&self) -> Result<Vec<Change>, CommitFailure> {
        let mut changes = commit::changes(&self.trees)?;
        changes.extend(commit::changes(&self.nested)?);
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(changes)
    }

    /// Makes all changes take place.
    ///
    /// All programs of the attempt have ended. After an error other than
    /// [`CommitFailure::Unfinished`] and [`CommitFailure::Mixed`], the directories are as before the
    /// attempt.
    pub fn commit(self) -> Result<Committed, CommitFailure> {
        self.commit_if(false, &mut || true)
    }

    /// Commits like [`Attempt::commit`], if `decide` returns true right before the first change. What
    /// takes long, as the wait for the disk, is over then.
    ///
    /// With `is_recorded`, leaves a record of the commit for a process that asks later, by
    /// [`CommitRecord::find`].
    pub fn commit_if(
        self,
        is_recorded: bool,
        decide: &mut dyn FnMut() -> bool,
    ) -> Result<Committed, CommitFailure> {
        self.commit_with(is_recorded, decide, &mut || {})
    }

    /// Commits, with a call before each step.
    #[cfg(test)]
    pub(crate) fn commit_observed(
        self,
        is_recorded: bool,
        observe: &mut dyn FnMut(),
    ) -> Result<Committed, CommitFailure> {
        self.commit_with(is_recorded, &mut || true, observe)
    }

    fn commit_with(
        mut self,
        is_recorded: bool,
        decide: &mut dyn FnMut() -> bool,
        observe: &mut dyn FnMut(),
    ) -> Result<Committed, CommitFailure> {
        // The kernel removes the mounts.
        drop(self.namespaces.take());
        let trees = std::mem::take(&mut self.trees);
        let nested = commit::commit_nested(&self.nested, decide)?.changes;
        let mut result = commit::commit(&trees, is_recorded, decide, observe);
        match &mut result {
            Ok(committed) => committed.changes += nested,
            Err(failure) if nested > 0 && !matches!(failure, CommitFailure::Unfinished { .. }) => {
                let path = self.nested[0].path.clone();
                let error = io::Error::other(failure.to_string());
                result = Err(CommitFailure::Incomplete { path, error });
            }
            Err(_) => {}
        }
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
        let (own, nested) = (std::mem::take(&mut self.trees), std::mem::take(&mut self.nested));
        let trees = own.into_iter().chain(nested);
        remove_layers(trees.map(|tree| tree.layers).collect(), &mut || {})
    }
}

impl Directories {
    /// Resolves directories like [`Directories::find`], as programs of an outer attempt see them.
    pub fn find_within(
        directories: &[impl AsRef<Path>],
        outer: &Attempt,
    ) -> Result<Self, CoverError> {
        let resolved = directories.iter().map(|given| {
            let given = given.as_ref();
            let refuse = |error| CoverError::Directory { path: given.into(), error };
            outer.resolve(given).map_err(refuse)
        });
        Self::of_resolved(resolved.collect::<Result<_, _>>()?, &outer.places())
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
