//! Layers that a killed shell left.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Stat, fstat, stat, syncfs};

use super::execute::Roots;
use super::note::{CommitNote, NOTE, RECORD};
use super::perform::resume;
use super::record::CommitRecord;
use crate::Directories;
use crate::entry::{FileId, NESTED, PREFIX, names};
use crate::layers::{ASIDE, LOWER, Layers, PRIMARY, UPPER, WORK};

/// Time limit of the wait for commits in progress.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between looks at a commit in progress.
const COMMIT_INTERVAL: Duration = Duration::from_millis(5);

/// Age after which the record of a commit is removed. The run that may ask for the record has not
/// been resumed.
const RECORD_TIMEOUT: Duration = Duration::from_secs(7 * 86_400);

/// Result of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swept {
    /// A living shell holds the lock.
    InUse,
    /// There are no layers.
    Missing,
    /// The changes were discarded, because their commit had not begun.
    Discarded,
    /// The commit is finished.
    RolledForward,
}

/// Returns paths of layers beside or inside a directory. Some may belong to living shells.
pub fn leftovers(directory: &Path) -> Vec<PathBuf> {
    let homes = [directory.parent(), Some(directory)].into_iter().flatten();
    let entries = homes.filter_map(|home| std::fs::read_dir(home).ok()).flatten().flatten();
    let ours = entries.filter(|entry| {
        entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry.path().join("lower").is_symlink()
    });
    ours.map(|entry| entry.path()).collect()
}

/// Finishes the commit of layers that a killed shell left, or removes the layers if their commit
/// had not begun.
pub fn sweep(path: &Path) -> io::Result<Swept> {
    sweep_observed(path, &mut || {})
}

/// Sweeps layers, with a call before each step.
pub(crate) fn sweep_observed(path: &Path, observe: &mut dyn FnMut()) -> io::Result<Swept> {
    let layers = match Layers::lock(path.into()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Swept::Missing),
        layers => layers?,
    };
    let Some(layers) = layers else { return Ok(Swept::InUse) };
    check_contents(&layers)?;
    if layers.has(NOTE) {
        finish(&layers, observe)?;
        return end(layers, observe).map(|()| Swept::RolledForward);
    }
    if layers.has(RECORD) {
        let record = layers.part(RECORD).symlink_metadata()?;
        let is_old = record.modified()?.elapsed().is_ok_and(|age| age > RECORD_TIMEOUT);
        if is_old {
            layers.remove()?;
        } else {
            drop(CommitRecord::of(layers));
        }
        return Ok(Swept::RolledForward);
    }
    if layers.has(PRIMARY) {
        let primary = std::fs::read_link(layers.path.join("primary"))?;
        let is_mounted = is_on_file_system_of(&layers, &primary);
        match Layers::lock(primary) {
            Ok(None) => return Ok(Swept::InUse),
            Ok(Some(first)) if first.has(NOTE) => {
                drop(layers);
                finish(&first, observe)?;
                return end(first, observe).map(|()| Swept::RolledForward);
            }
            Ok(Some(_)) => {}
            // Layers with a note are removed last, so the commit had not begun, or is finished.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_mounted => {}
            // The file system with the note may be missing.
            Err(error) => return Err(error),
        }
    }
    observe();
    layers.remove()?;
    Ok(Swept::Discarded)
}

/// Returns true if the parent of other layers is on the same file system, which is mounted.
fn is_on_file_system_of(layers: &Layers, other: &Path) -> bool {
    let device = |found: &Stat| FileId::from(found).device;
    let own = fstat(layers.fd()).map(|found| device(&found));
    let parent = other.parent().map(|parent| stat(parent).map(|found| device(&found)));
    parent.is_some_and(|parent| parent.is_ok() && parent == own)
}

impl Directories {
    /// Sweeps layers that killed shells left on the directories, and waits for commits in progress,
    /// so that an attempt that begins now sees all or nothing of them.
    ///
    /// The notes of a shell may be lost before the layers, as after a reboot.
    pub fn sweep(&self) {
        let start = Instant::now();
        // The first layers of an attempt come last: the others may not be swept without them.
        let directories: Vec<_> = self.directories().collect();
        for left in directories.into_iter().rev().flat_map(leftovers) {
            while matches!(sweep(&left), Ok(Swept::InUse))
                && is_of(&left, self)
                && has_note(&left)
                && start.elapsed() < COMMIT_TIMEOUT
            {
                std::thread::sleep(COMMIT_INTERVAL);
            }
        }
    }
}

impl CommitRecord {
    /// Returns the record of a commit of an attempt whose mark begins with these characters. Finishes
    /// a commit that has begun. Returns none if no commit had begun.
    pub fn find(places: &Directories, mark: &str) -> io::Result<Option<Self>> {
        let begin = format!("{PREFIX}{mark}");
        for layers in places.directories().take(1).flat_map(leftovers) {
            let name = layers.file_name().unwrap_or_default().as_encoded_bytes();
            let is_first = name.starts_with(begin.as_bytes()) && name.ends_with(b"-0");
            if is_first && let Some(record) = Self::of_layers(&layers)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Returns the record in layers, which are the first ones of an attempt.
    pub(crate) fn of_layers(layers: &Path) -> io::Result<Option<Self>> {
        let start = Instant::now();
        let layers = loop {
            match Layers::lock(layers.into()) {
                Ok(Some(layers)) => break layers,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
                Ok(None) if start.elapsed() >= COMMIT_TIMEOUT => {
                    return Err(io::ErrorKind::ResourceBusy.into());
                }
                Ok(None) => std::thread::sleep(COMMIT_INTERVAL),
            }
        };
        if layers.has(NOTE) {
            finish(&layers, &mut || {})?;
        }
        Ok(layers.has(RECORD).then(|| Self::of(layers)))
    }
}

/// True if layers belong to one of the directories, or to a directory above or below.
fn is_of(layers: &Path, directories: &Directories) -> bool {
    std::fs::read_link(layers.join("lower")).is_ok_and(|lower| {
        directories.directories().any(|own| own.starts_with(&lower) || lower.starts_with(own))
    })
}

/// True if the commit of layers has begun.
fn has_note(layers: &Path) -> bool {
    let primary = std::fs::read_link(layers.join("primary"));
    primary.as_deref().unwrap_or(layers).join("note").exists()
}

/// Finishes the commit of layers, if it has begun. Returns false otherwise.
pub fn roll_forward(path: &Path) -> io::Result<bool> {
    match Layers::lock(path.into())? {
        Some(layers) if layers.has(NOTE) => {
            finish(&layers, &mut || {})?;
            end(layers, &mut || {}).map(|()| true)
        }
        _ => Ok(false),
    }
}

/// Fails if a directory contains anything but layers.
fn check_contents(layers: &Layers) -> io::Result<()> {
    let fresh = crate::entry::open_directory(layers.fd(), c".")?;
    let known = [LOWER, UPPER, WORK, ASIDE, PRIMARY, NOTE, CommitNote::INCOMPLETE, RECORD];
    // The removal of the layers may have been interrupted.
    let is_known = |name: &CStr| {
        known.contains(&name)
            || name.to_bytes().starts_with(NESTED.as_bytes())
            || ftsh_sys::is_left_by_removal(name.to_bytes())
    };
    match names(fresh)?.into_iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let name = name.to_string_lossy().into_owned();
            Err(io::Error::other(format!("`{name}` does not belong to layers")))
        }
    }
}

/// Executes the remaining steps of a note, ends the note, and removes the other layers of the attempt.
pub(crate) fn finish(layers: &Layers, observe: &mut dyn FnMut()) -> io::Result<()> {
    let Some(note) = CommitNote::read(layers.fd())? else { return Ok(()) };
    let (mut directories, mut others) = (Vec::new(), Vec::new());
    for (index, tree) in note.trees.iter().enumerate() {
        let path = tree.directory();
        let directory = File::open(&path)?;
        if FileId::from(&fstat(&directory)?) != tree.id {
            let text = format!("`{}` was moved or replaced", path.display());
            return Err(io::Error::other(text));
        }
        directories.push(directory);
        if index > 0 {
            others.push(other_layers(tree.layers())?);
        }
    }
    // Layers that are gone have no steps left.
    let roots = directories.iter().enumerate().map(|(index, directory)| {
        let own = if index == 0 { Some(layers) } else { others[index - 1].as_ref() };
        Roots { directory: directory.as_fd(), layers: own.unwrap_or(layers).fd() }
    });
    resume(&note, roots.collect(), observe).map_err(|(path, error)| {
        io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
    })?;
    for directory in &directories {
        let _ = syncfs(directory);
    }
    observe();
    CommitNote::end(layers.fd(), note.is_recorded)?;
    for other in others.into_iter().flatten() {
        observe();
        other.remove()?;
    }
    Ok(())
}

/// Removes the layers of a finished commit, except for the record.
fn end(layers: Layers, observe: &mut dyn FnMut()) -> io::Result<()> {
    observe();
    if !layers.has(RECORD) {
        return layers.remove();
    }
    drop(CommitRecord::of(layers));
    Ok(())
}

/// Locks other layers of a note. Returns none if they are gone.
fn other_layers(path: PathBuf) -> io::Result<Option<Layers>> {
    match Layers::lock(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(None) => Err(io::Error::other("another process holds the lock on the layers")),
        layers => layers,
    }
}
