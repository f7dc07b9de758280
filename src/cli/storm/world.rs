//! Copies of directories in which the shell runs a script.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Stdio;

use nix::sys::stat::{SFlag, fstat};

use super::inside::{INSIDE, StormFiles};
use crate::cli::messages::report;
use crate::cli::preview::covered;
use ftsh_layers::{Attempt, ChangeKind, Directories};
use ftsh_process as process;
use ftsh_storm::{Changes, RunEnd, RunSpec, RunTrace, StormWorld, TreeEntry};

/// Standard input of this process, which each run reads from the beginning if it is a file.
const STANDARD_INPUT: &str = "/proc/self/fd/0";

/// World of overlays over directories.
pub(super) struct CoveredWorld {
    places: Directories,
    attempt: Option<Attempt>,
    files: StormFiles,
    /// Arguments of this process.
    words: Vec<OsString>,
    has_input: bool,
}

impl CoveredWorld {
    /// Creates a world without a copy.
    pub(super) fn new(places: Directories, files: StormFiles, words: Vec<OsString>) -> Self {
        for line in places.sweep() {
            report(&format!("ftsh: {line}\n"));
        }
        let is_file = |mode| SFlag::from_bits_truncate(mode) & SFlag::S_IFMT == SFlag::S_IFREG;
        let has_input = fstat(io::stdin()).is_ok_and(|stat| is_file(stat.st_mode));
        Self { places, attempt: None, files, words, has_input }
    }

    fn attempt(&self) -> io::Result<&Attempt> {
        self.attempt.as_ref().ok_or_else(|| io::Error::other("there is no copy"))
    }
}

impl StormWorld for CoveredWorld {
    fn renew(&mut self) -> io::Result<()> {
        if let Some(attempt) = self.attempt.take() {
            attempt.discard()?;
        }
        // Shells keep notes and channels in the directory of the user.
        let shared = process::user_directory::path();
        let _ = process::user_directory::make_private(&shared);
        let writable = [self.files.directory.clone(), shared];
        let attempt = covered::cover(&self.places, Some(&writable));
        self.attempt = Some(attempt.map_err(io::Error::other)?);
        Ok(())
    }

    fn run(&mut self, spec: &RunSpec, is_continued: bool) -> io::Result<RunEnd> {
        let files = &self.files;
        if !is_continued {
            files.remove()?;
        }
        fs::write(&files.spec, serde_json::to_vec(spec)?)?;
        let open = |path: &Path| File::options().append(true).create(true).open(path);
        let (output, errors) = (open(&files.output)?, open(&files.errors)?);
        let input = if self.has_input { File::open(STANDARD_INPUT)?.into() } else { Stdio::null() };
        let words = [INSIDE.into(), files.directory.clone().into()];
        let words = words.into_iter().chain(self.words.iter().cloned());
        let shell = covered::run(self.attempt()?, words, |command| {
            command.stdin(input).stdout(output).stderr(errors);
            // Records of durations and channels are shared with other runs.
            command.env("FTSH_DURATIONS", "").env("FTSH_CHANNELS", &files.channels);
            command.env("TMPDIR", &files.temporary);
        })
        .map_err(io::Error::other)?;
        Ok(RunEnd {
            status: shell.code(),
            interrupt: shell.interrupt,
            output: fs::read(&files.output)?,
            errors: fs::read(&files.errors)?,
            real: fs::read_to_string(&files.real)
                .unwrap_or_default()
                .lines()
                .map(ToOwned::to_owned)
                .collect(),
            trace: RunTrace::read(&files.trace).unwrap_or_default(),
        })
    }

    fn changes(&mut self) -> io::Result<Changes> {
        let attempt = self.attempt()?;
        let mut changes = Changes::new();
        for change in attempt.changes().map_err(io::Error::other)? {
            let entry = match change.kind {
                ChangeKind::Removed => None,
                _ => TreeEntry::read(&attempt.translate(&change.path, false)?)?,
            };
            changes.insert(change.path, entry);
        }
        Ok(changes)
    }
}
