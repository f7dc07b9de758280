//! Directory of a storm's own files, outside the directories that are copied.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use ftsh_layers::Directories;
use ftsh_process as process;
use ftsh_sys::{FileLock, LockKind, remove_tree};

/// Directories for temporary files, after that of `TMPDIR`.
const USUAL: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Beginning of the names of such directories.
const PREFIX: &str = "ftsh-storm-";

/// Directory of a storm's own files, which is removed at the end, or by the next storm of the user.
pub(super) struct WorkDirectory {
    path: PathBuf,
    /// Lock of a living storm.
    _lock: FileLock,
}

impl WorkDirectory {
    /// Creates a directory for the runs of a storm, and removes those of storms that were killed.
    pub(super) fn create(places: &Directories) -> Result<Self> {
        let named = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|it| it.is_absolute());
        for parent in named.into_iter().chain(USUAL.map(PathBuf::from)) {
            let Ok(parent) = parent.canonicalize() else { continue };
            let is_covered = |place: &Path| parent.starts_with(place);
            if places.directories().any(is_covered) {
                continue;
            }
            sweep(&parent);
            let path = parent.join(format!("{PREFIX}{:016x}", process::random()?));
            if DirBuilder::new().mode(0o700).create(&path).is_ok()
                && let Ok(Some(lock)) = lock(&path)
            {
                return Ok(Self { path, _lock: lock });
            }
        }
        bail!("--storm: no directory for temporary files outside the copied ones; set TMPDIR")
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        let _ = remove_tree(&self.path);
    }
}

/// Removes the directories of storms of this user that were killed.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours =
        entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    for path in ours.map(|it| it.path()) {
        if let Ok(Some(_lock)) = lock(&path) {
            let _ = remove_tree(&path);
        }
    }
}

/// Locks a directory of this user. Returns `None` if a storm lives there, and for other entries.
fn lock(path: &Path) -> io::Result<Option<FileLock>> {
    let directory =
        File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY).open(path)?;
    let found = directory.metadata()?;
    let is_private =
        found.mode() & 0o777 == 0o700 && found.uid() == nix::unistd::geteuid().as_raw();
    let Some(lock) = FileLock::lock(directory, LockKind::ExclusiveNow).ok().filter(|_| is_private)
    else {
        return Ok(None);
    };
    // Another storm may have removed the directory before the lock.
    let is_there = path.symlink_metadata().is_ok_and(|it| it.ino() == found.ino());
    Ok(is_there.then_some(lock))
}
