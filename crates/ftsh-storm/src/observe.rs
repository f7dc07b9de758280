//! Observation of directories between commands, which attributes changes to commands.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Number of entries beyond which directories are not observed, since each command would wait.
const MAX_ENTRIES: usize = 20_000;

/// State of an entry: inode, size, mode, and the time of the last change in ns.
type Stamp = (u64, u64, u32, i128);

/// Observer of the entries below directories.
pub(crate) struct Observer {
    directories: Vec<PathBuf>,
    /// State after the last command; none if there are too many entries.
    stamps: Option<BTreeMap<PathBuf, Stamp>>,
}

impl Observer {
    /// Observes directories from now on.
    pub(crate) fn new(directories: Vec<PathBuf>) -> Self {
        let stamps = stamps(&directories);
        Self { directories, stamps }
    }

    /// Returns the entries that were added, changed or removed since the last call.
    pub(crate) fn changes(&mut self) -> Vec<PathBuf> {
        let Some(before) = self.stamps.take() else { return Vec::new() };
        let Some(now) = stamps(&self.directories) else { return Vec::new() };
        let gone = before.keys().filter(|path| !now.contains_key(*path));
        let new = now.iter().filter(|(path, stamp)| before.get(*path) != Some(stamp));
        let changes = gone.chain(new.map(|(path, _)| path)).cloned().collect();
        self.stamps = Some(now);
        changes
    }
}

fn stamps(directories: &[PathBuf]) -> Option<BTreeMap<PathBuf, Stamp>> {
    let mut found = BTreeMap::new();
    directories.iter().all(|it| add(it, &mut found)).then_some(found)
}

/// Adds the entries below a directory. Returns false if there are too many.
fn add(directory: &Path, found: &mut BTreeMap<PathBuf, Stamp>) -> bool {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        let time = i128::from(data.ctime()) * 1_000_000_000 + i128::from(data.ctime_nsec());
        // The time of a directory changes with its entries, which are observed themselves.
        let (size, time) = if data.is_dir() { (0, 0) } else { (data.size(), time) };
        found.insert(path.clone(), (data.ino(), size, data.mode(), time));
        if found.len() > MAX_ENTRIES || (data.is_dir() && !add(&path, found)) {
            return false;
        }
    }
    true
}
