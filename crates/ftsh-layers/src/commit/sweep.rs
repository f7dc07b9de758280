//! Layers that a killed shell left.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Stat, fstat, stat, syncfs};

use super::execute::Roots;
use super::note::{CommitNote, NOTE, RECORD, UNDO};
use super::perform::resume;
use super::record::CommitRecord;
use crate::Directories;
use crate::entry::{FileId, NESTED, PREFIX, names};
use crate::layers::{ASIDE, LOWER, Layers, PRIMARY, UPPER, WORK};
use ftsh_sys::os_error::plain;

/// Time limit of the wait for commits in progress.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between looks at a commit in progress.
const COMMIT_INTERVAL: Duration = Duration::from_millis(5);

/// Age after which the record of a commit is removed. The run that may ask for the record has not
/// been resumed.
const RECORD_TIMEOUT: Duration = Duration::from_secs(7 * 86_400);

/// Result of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swept {
    /// A living shell holds the lock.
    InUse,
    /// There are no layers.
    Missing,
    /// The changes were discarded, because their commit had not begun.
    Discarded,
    /// The commit is finished.
    RolledForward,
    /// The commit is over, except for these entries, which other processes have changed since.
    Partial(Vec<PathBuf>),
}

impl Swept {
    /// Describes the end of layers for people, if there is anything to know. `path` leads to the
    /// layers.
    pub fn report(result: &io::Result<Self>, path: &Path) -> Option<String> {
        match result {
            Ok(Self::Partial(left)) => {
                let names: Vec<_> = left.iter().map(|it| format!("`{}`", it.display())).collect();
                Some(format!(
                    "an interrupted commit of `atomic in` is over; other processes have changed {} \
                     since, so these entries stay as they are",
                    names.join(", ")
                ))
            }
            Err(error) if has_note(path) => Some(format!(
                "the commit of `atomic in` in `{}` is still unfinished: {}",
                path.display(),
                plain(error)
            )),
            _ => None,
        }
    }
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
    if let Some(finished) = finish(&layers, observe)? {
        return end(layers, observe).map(|()| finished);
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
            Ok(Some(first)) if first.has(NOTE) || first.has(UNDO) => {
                drop(layers);
                let finished = finish(&first, observe)?.unwrap_or(Swept::Missing);
                return end(first, observe).map(|()| finished);
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
    /// so that an attempt that begins now sees all or nothing of them. Returns reports for people.
    ///
    /// The notes of a shell may be lost before the layers, as after a reboot.
    pub fn sweep(&self) -> Vec<String> {
        let start = Instant::now();
        // The first layers of an attempt come last: the others may not be swept without them.
        let directories: Vec<_> = self.directories().collect();
        let left = directories.into_iter().rev().flat_map(leftovers);
        let sweep = |left: PathBuf| loop {
            let result = sweep(&left);
            let is_waiting = matches!(result, Ok(Swept::InUse))
                && is_of(&left, self)
                && has_note(&left)
                && start.elapsed() < COMMIT_TIMEOUT;
            if !is_waiting {
                return Swept::report(&result, &left);
            }
            std::thread::sleep(COMMIT_INTERVAL);
        };
        left.filter_map(sweep).collect()
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
        let Some(layers) = wait_for(layers)? else { return Ok(None) };
        finish(&layers, &mut || {})?;
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
    let primary = primary.as_deref().unwrap_or(layers);
    ["note", "undo"].iter().any(|name| primary.join(name).exists())
}

/// Fails if a directory contains anything but layers.
fn check_contents(layers: &Layers) -> io::Result<()> {
    let fresh = crate::entry::open_directory(layers.fd(), c".")?;
    let known = [LOWER, UPPER, WORK, ASIDE, PRIMARY, NOTE, UNDO, CommitNote::INCOMPLETE, RECORD];
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

/// Finishes or undoes the commit of layers, ends the note, and removes the other layers of the attempt.
/// Returns none if there is no note.
fn finish(layers: &Layers, observe: &mut dyn FnMut()) -> io::Result<Option<Swept>> {
    let note = CommitNote::read(layers.fd(), NOTE)?;
    let is_undo = note.is_none();
    let note = if is_undo { CommitNote::read(layers.fd(), UNDO)? } else { note };
    let Some((note, decided)) = note else { return Ok(None) };
    let (mut directories, mut others) = (Vec::new(), Vec::new());
    for (index, tree) in note.trees.iter().enumerate() {
        let path = tree.directory();
        let directory = File::open(&path)?;
        // The number of the device may change with a reboot.
        if FileId::from(&fstat(&directory)?).inode != tree.id.inode {
            let text = format!("`{}` was moved or replaced", path.display());
            return Err(io::Error::other(text));
        }
        directories.push(directory);
        if index > 0 {
            others.push(wait_for(&tree.layers())?);
        }
    }
    let roots =
        note.trees.iter().zip(&directories).enumerate().map(|(index, (tree, directory))| {
            let own = if index == 0 { Some(layers) } else { others[index - 1].as_ref() };
            let (directory, layers) = (directory.as_fd(), own.map(Layers::fd));
            Roots { directory, layers, since: tree.since }
        });
    let left =
        resume(&note, roots.collect(), is_undo, decided, observe).map_err(|(path, error)| {
            io::Error::new(error.kind(), format!("`{}`: {}", path.display(), plain(&error)))
        })?;
    for directory in &directories {
        let _ = syncfs(directory);
    }
    observe();
    if is_undo {
        CommitNote::remove(layers.fd(), UNDO)?;
    } else {
        CommitNote::end(layers.fd(), note.is_recorded)?;
    }
    for other in others.into_iter().flatten() {
        observe();
        other.remove()?;
    }
    Ok(Some(match is_undo {
        _ if !left.is_empty() => Swept::Partial(left),
        true => Swept::Discarded,
        false => Swept::RolledForward,
    }))
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

/// Locks layers, after the sweep by another process if there is one. Returns none if they are gone.
fn wait_for(path: &Path) -> io::Result<Option<Layers>> {
    loop {
        match Layers::lock(path.into()) {
            Ok(None) => std::thread::sleep(COMMIT_INTERVAL),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            layers => return layers,
        }
    }
}
