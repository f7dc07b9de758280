//! Registry of the files that one run must remove.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::kind::NoteKind;
use super::sweep::{RUNS, clean, remove_run};
use crate::user_directory::{self, DirectoryError};
use ftsh_sys as sys;
use ftsh_sys::{FileLock, LockKind};

/// Time limit of the end of a run for workers that hang in a file system.
const WORKER_TIMEOUT: Duration = Duration::from_secs(5);

/// Files that this run may have to remove. Its directory is created for the first note.
pub(crate) struct Registry {
    state: Mutex<State>,
    rested: Condvar,
    /// Socket to the supervisor, if any, which receives the lock.
    supervisor: Option<Arc<UnixStream>>,
    /// False if no other process can remove the files.
    has_notes: bool,
}

#[derive(Default)]
struct State {
    run: Option<RunDirectory>,
    /// Number of workers in the middle of an operation.
    busy: usize,
    /// Set when the run ends: no further operation may begin.
    closed: bool,
    count: u64,
    /// Files without a note, by number. Only this process can remove them.
    unnoted: HashMap<u64, (NoteKind, PathBuf)>,
    /// Lines about commits of killed shells, for the log.
    reports: Vec<String>,
    /// Notes of this run for jobs of killed shells, to be canceled.
    stale_jobs: Vec<Note>,
}

/// Directory of the run, locked while open.
struct RunDirectory {
    directory: FileLock,
    path: PathBuf,
}

impl Registry {
    /// Creates a registry without notes.
    pub(crate) fn new(supervisor: Option<Arc<UnixStream>>) -> Self {
        Self { state: Mutex::default(), rested: Condvar::new(), supervisor, has_notes: true }
    }

    /// Creates a registry of files that only this process can reach.
    pub(crate) fn without_notes() -> Self {
        Self { has_notes: false, ..Self::new(None) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps lines about commits of killed shells for the log.
    pub(crate) fn report(&self, lines: Vec<String>) {
        self.state().reports.extend(lines);
    }

    /// Takes over a job of a killed shell. A survivor of this shell then cancels the job.
    pub(super) fn keep_stale_job(self: &Arc<Self>, job: &Path) {
        let note = self.note(NoteKind::Job, job.to_owned());
        self.state().stale_jobs.push(note);
    }

    /// Removes and returns the notes of jobs of killed shells.
    pub(crate) fn take_stale_jobs(&self) -> Vec<Note> {
        std::mem::take(&mut self.state().stale_jobs)
    }

    /// Returns the lines that the log has not had yet.
    pub(crate) fn take_reports(&self) -> Vec<String> {
        std::mem::take(&mut self.state().reports)
    }

    /// Begins an operation that delays the end of the run; none if the run has ended.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Busy> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        state.busy += 1;
        Some(Busy(self.clone()))
    }

    /// Registers a file before its creation. If the note cannot be written, only the orderly end of
    /// this process removes the file.
    pub(crate) fn note(self: &Arc<Self>, kind: NoteKind, path: PathBuf) -> Note {
        let mut state = self.state();
        if state.run.is_none() && !state.closed && self.has_notes {
            state.run = self.open().ok();
        }
        state.count += 1;
        let number = state.count;
        let name = kind.note(number);
        let is_noted = state.run.as_ref().is_some_and(|run| {
            symlinkat(path.as_path(), run.directory.as_fd(), name.as_str()).is_ok()
        });
        if !is_noted {
            state.unnoted.insert(number, (kind, path.clone()));
        }
        Note {
            registry: self.clone(),
            number,
            name: is_noted.then_some(name),
            kind,
            path,
            is_handled: false,
        }
    }

    fn open(&self) -> io::Result<RunDirectory> {
        let user = user_directory::path();
        let runs = user.join(RUNS);
        loop {
            user_directory::make_private(&user).map_err(io::Error::other)?;
            match user_directory::make_private(&runs) {
                // Another shell, the last user of the directory, has just removed it.
                Err(DirectoryError::System(error)) if error.kind() == io::ErrorKind::NotFound => {
                    continue;
                }
                result => result.map_err(io::Error::other)?,
            }
            let path = runs.join(format!("{:016x}", sys::random()?));
            match DirBuilder::new().mode(0o700).create(&path) {
                // Another shell, the last user of the directory, has just removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                result => result?,
            }
            match self.lock(&path) {
                Ok(Some(directory)) => return Ok(RunDirectory { directory, path }),
                Ok(None) => {}
                Err(error) => {
                    let _ = std::fs::remove_dir(&path);
                    return Err(error);
                }
            }
        }
    }

    /// Locks the run's directory and sends the lock to the supervisor. Returns none if another
    /// shell removed the directory as that of a killed shell, which is possible before the lock.
    fn lock(&self, path: &Path) -> io::Result<Option<FileLock>> {
        let directory = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        let directory = File::from(sys::move_up(directory.into())?);
        let own = directory.metadata()?;
        let directory = match FileLock::lock(directory, LockKind::ExclusiveNow) {
            Err((_, Errno::EWOULDBLOCK | Errno::EINTR)) => return Ok(None),
            result => result.map_err(|(_, errno)| errno)?,
        };
        let is_there = |it: Metadata| (it.dev(), it.ino()) == (own.dev(), own.ino());
        if !path.symlink_metadata().is_ok_and(is_there) {
            return Ok(None);
        }
        if let Some(supervisor) = &self.supervisor {
            // Ignores errors: the supervisor may just have been killed, and this process and the
            // next shell can still clean up.
            let _ = sys::send_descriptors(supervisor, sys::Parcel::Lock, &[directory.as_fd()]);
        }
        Ok(Some(directory))
    }

    /// Removes all registered files after the end of all operations of workers.
    pub(crate) fn clear(&self) {
        self.clean(false);
    }

    /// Removes all registered files and refuses further operations. Returns the jobs that are not
    /// canceled, whose notes stay.
    pub(crate) fn close(&self) -> Vec<PathBuf> {
        self.clean(true)
    }

    fn clean(&self, is_end: bool) -> Vec<PathBuf> {
        let mut jobs = Vec::new();
        let mut state = self.state();
        state.closed |= is_end;
        if state.busy > 0 {
            let wait =
                self.rested.wait_timeout_while(state, WORKER_TIMEOUT, |state| state.busy > 0);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(run) = state.run.take() {
            jobs = clean(run.directory.as_fd(), true).jobs;
            remove_run(&run.path);
        }
        for (kind, path) in std::mem::take(&mut state.unnoted).into_values() {
            if !kind.is_gone(&path) {
                let _ = kind.remove(&path);
            }
        }
        // Dropping a note takes the lock. The run is closed, so the note stays in its directory.
        let notes = std::mem::take(&mut state.stale_jobs);
        drop(state);
        drop(notes);
        jobs
    }
}

#[cfg(test)]
impl Registry {
    /// Returns the run's directory, if created.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.state().run.as_ref().map(|run| run.path.clone())
    }

    /// Simulates a kill of this process. Unlocking would release the lock for its other holders
    /// too.
    pub(crate) fn die(&self) {
        if let Some(run) = self.state().run.take() {
            let number = std::os::fd::AsRawFd::as_raw_fd(&*run.directory);
            let _ = nix::unistd::close(number);
            std::mem::forget(run);
        }
    }
}

/// Operation that delays the end of the run.
pub(crate) struct Busy(Arc<Registry>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.busy -= 1;
        if state.busy == 0 {
            self.0.rested.notify_all();
        }
    }
}

/// Registration of one file. Dropping the note removes the file.
pub(crate) struct Note {
    registry: Arc<Registry>,
    number: u64,
    name: Option<String>,
    kind: NoteKind,
    path: PathBuf,
    is_handled: bool,
}

impl Note {
    /// Keeps the file.
    pub(crate) fn keep(mut self) {
        self.is_handled = true;
    }

    /// Removes the file. After an error, the end of the run tries again.
    pub(crate) fn remove(mut self) -> io::Result<()> {
        let result = self.kind.remove(&self.path);
        self.is_handled = result.is_ok();
        result
    }

    /// Returns the registered path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if !self.is_handled && self.kind.remove(&self.path).is_err() {
            return; // the end of the run tries again
        }
        let mut state = self.registry.state();
        state.unnoted.remove(&self.number);
        if let (Some(run), Some(name)) = (&state.run, &self.name) {
            let _ = unlinkat(run.directory.as_fd(), name.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}
