//! Jobs of carriers: programs that run branches elsewhere. A note keeps a job until nothing of it is
//! left, so that a survivor of the shell can cancel it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use wait_timeout::ChildExt;

use crate::cleanup::{Note, NoteKind, Registry};
use crate::kill::kill_subtree;

/// Time limit of a command that cancels jobs.
pub const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
/// Variable of a carrier with the words of the clause, when the carrier cancels or lists jobs.
pub const CARRY_WORDS: &str = "FTSH_CARRY_WORDS";

/// Job that a carrier has somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedJob {
    /// Path of the carrier's program, since another shell may have another `PATH`.
    pub program: String,
    /// Words of the clause, with blanks between.
    pub words: BString,
    /// Name of the job.
    pub name: String,
}

impl CarriedJob {
    /// Returns true if the same call can concern both jobs.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.program, &self.words) == (&other.program, &other.words)
    }

    /// Returns the text of a note: a line for each field, the words last.
    fn path(&self) -> PathBuf {
        let mut text = format!("{}\n{}\n", self.program, self.name).into_bytes();
        text.extend_from_slice(&self.words);
        OsString::from_vec(text).into()
    }

    /// Parses the text of a note.
    fn of(path: &Path) -> Option<Self> {
        let mut lines = path.as_os_str().as_bytes().splitn(3, |byte| *byte == b'\n');
        let mut line = || lines.next();
        let (program, name, words) = (line()?, line()?, line()?);
        Some(Self {
            program: program.to_str().ok()?.into(),
            words: words.into(),
            name: name.to_str().ok()?.into(),
        })
    }
}

/// Job with a note, which keeps the job for a survivor of this shell. Dropping the note forgets the
/// job.
pub struct NotedJob {
    /// The job.
    pub job: CarriedJob,
    _note: Note,
}

impl fmt::Debug for NotedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.job, f)
    }
}

/// Jobs of carriers that are known to this shell.
pub struct CarriedJobs(Arc<Registry>);

impl CarriedJobs {
    /// Returns the jobs in a registry.
    pub(crate) fn of(registry: &Arc<Registry>) -> Self {
        Self(Arc::clone(registry))
    }

    /// Registers a job before its submission.
    pub fn note(&self, job: CarriedJob) -> NotedJob {
        NotedJob { _note: self.0.note(NoteKind::Job, job.path()), job }
    }

    /// Removes and returns the jobs of shells that were killed together with their supervisors.
    pub fn take_stale(&self) -> Vec<NotedJob> {
        let stale = self.0.take_stale_jobs().into_iter();
        stale
            .filter_map(|note| Some(NotedJob { job: CarriedJob::of(note.path())?, _note: note }))
            .collect()
    }
}

/// Cancels jobs of a dead shell by their notes, with one call for all jobs that are alike. Blocks,
/// at most for the time limit of each call.
pub(crate) fn cancel_jobs(notes: &[PathBuf]) {
    let mut jobs: Vec<_> = notes.iter().filter_map(|note| CarriedJob::of(note)).collect();
    while let Some(first) = jobs.pop() {
        let alike = jobs.extract_if(.., |job| job.is_like(&first)).map(|job| job.name);
        let names: Vec<_> = alike.chain([first.name.clone()]).collect();
        let child = ftsh_sys::release_signals_of(&mut Command::new(&first.program))
            .arg("cancel")
            .args(names)
            .env(CARRY_WORDS, OsStr::from_bytes(&first.words))
            // Those of a carrier that runs this shell.
            .env_remove("FTSH_CARRY_JOB")
            .env_remove("FTSH_CARRY_AVOID")
            .env_remove("FTSH_CARRY_HOST")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        // Nobody is left who could be told of a failure.
        if let Ok(mut child) = child
            && !matches!(child.wait_timeout(CANCEL_TIMEOUT), Ok(Some(_)))
        {
            kill_subtree(child.id().cast_signed());
            let _ = child.wait();
        }
    }
}
