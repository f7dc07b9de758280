//! `--cron-after`: the number of failed runs in a row, in a file next to the lock.
//!
//! A run counts as failed from its start until it succeeds, so that a run ended by SIGKILL counts.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use anyhow::Result;

use super::LockLocation;
use ftsh_process::replace_file;

/// Start of the file. Other files are never overwritten.
const MAGIC: &str = "ftsh failures ";

/// Count of failed runs in a row.
pub(crate) struct FailureCount {
    file: PathBuf,
    /// Number of the first failure that is shown.
    shown_from: u64,
    /// Failures before this run. None before its start, and if the file cannot be used.
    before: Cell<Option<u64>>,
}

impl FailureCount {
    /// Creates the count of a lock, which lies in the directory of the locks of scripts or next to FILE.
    pub(crate) fn new(
        lock: &LockLocation,
        directory: Option<PathBuf>,
        shown_from: u64,
    ) -> Result<Self> {
        let mut file = lock.file(directory)?.into_os_string();
        file.push(".failures");
        Ok(Self { file: file.into(), shown_from, before: Cell::new(None) })
    }

    /// Returns what fails with an error, for a message.
    pub(crate) fn action(&self) -> String {
        format!("count failures in `{}`", self.file.display())
    }

    /// Counts a run at its start.
    pub(crate) fn begin(&self) -> io::Result<()> {
        let before = match std::fs::read_to_string(&self.file) {
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            text => {
                let number = text?.strip_prefix(MAGIC).and_then(|it| it.trim_end().parse().ok());
                number.ok_or_else(|| io::Error::other("the file has other content"))?
            }
        };
        replace_file(&self.file, 0o600, format!("{MAGIC}{}\n", before + 1).as_bytes())?;
        self.before.set(Some(before));
        Ok(())
    }

    /// True if a failure of this run is not shown.
    pub(crate) fn is_withheld(&self) -> bool {
        self.before.get().is_some_and(|before| before + 1 < self.shown_from)
    }

    /// Notes a success. Returns the number of failures before, if the last one was shown.
    pub(crate) fn succeed(&self) -> io::Result<Option<u64>> {
        let Some(before) = self.before.get() else { return Ok(None) };
        match std::fs::remove_file(&self.file) {
            // Another run without a lock has succeeded meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            removed => removed.map(|()| Some(before).filter(|before| *before >= self.shown_from)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_at_the_same_time_may_both_succeed() {
        let directory = tempfile::tempdir().expect("a directory");
        let lock = LockLocation::File(directory.path().join("lock"));
        let counts = [(); 3].map(|()| FailureCount::new(&lock, None, 1).expect("a count"));
        for count in &counts {
            count.begin().expect("a file");
        }
        // The first run has failed.
        let ends: Vec<_> = counts[1..].iter().map(|it| it.succeed().expect("no error")).collect();
        assert_eq!(ends, [Some(1), None]);
    }
}
