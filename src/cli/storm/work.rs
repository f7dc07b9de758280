//! Directory of a storm's own files, outside the directories that are copied.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use ftsh_layers::Directories;
use ftsh_process as process;

/// Directories for temporary files, after that of `TMPDIR`.
const USUAL: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Directory of a storm's own files, which is removed at the end.
pub(super) struct WorkDirectory(PathBuf);

impl WorkDirectory {
    /// Creates a directory for the runs of a storm.
    pub(super) fn create(places: &Directories) -> Result<Self> {
        let named = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|it| it.is_absolute());
        for parent in named.into_iter().chain(USUAL.map(PathBuf::from)) {
            let Ok(parent) = parent.canonicalize() else { continue };
            let is_covered = |place: &Path| parent.starts_with(place);
            if places.directories().any(is_covered) {
                continue;
            }
            let path = parent.join(format!("ftsh-storm-{:016x}", process::random()?));
            if DirBuilder::new().mode(0o700).create(&path).is_ok() {
                return Ok(Self(path));
            }
        }
        bail!("--storm: no directory for temporary files outside the copied ones; set TMPDIR")
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the file of traces.
    pub(super) fn trace(&self) -> PathBuf {
        self.0.join("trace")
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
