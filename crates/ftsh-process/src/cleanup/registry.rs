//! The notes of one run.

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
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::kind::Kind;
use super::sweep;
use crate::user_directory::{self, Unusable};
use ftsh_sys as sys;

/// The end of a run waits no longer for workers that don't come back from a file system.
const PATIENCE: Duration = Duration::from_secs(5);

/// What this run may have to remove. Nothing is made for it before the first note.
pub struct Registry {
    state: Mutex<State>,
    rested: Condvar,
    /// Where the supervisor, if there is one, finds what else holds the lock.
    supervisor: Option<Arc<UnixStream>>,
}

#[derive(Default)]
struct State {
    run: Option<Run>,
    /// How many workers are in the middle of something.
    busy: usize,
    /// Nothing is begun any more.
    closed: bool,
    count: u64,
    /// Things without a note, by their number: only this process can remove them.
    unnoted: HashMap<u64, (Kind, PathBuf)>,
}

/// The run's directory, which is locked as long as it is open.
struct Run {
    directory: Flock<File>,
    path: PathBuf,
}

impl Registry {
    /// One without notes.
    pub fn new(supervisor: Option<Arc<UnixStream>>) -> Self {
        Self { state: Mutex::default(), rested: Condvar::new(), supervisor }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins what the end of the run waits for; none if that has come.
    pub fn begin(self: &Arc<Self>) -> Option<Busy> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        state.busy += 1;
        Some(Busy(self.clone()))
    }

    /// Notes what is about to be made. Where nothing can be noted, the end of the run removes the thing if
    /// this process lives that long.
    pub fn note(self: &Arc<Self>, kind: Kind, path: PathBuf) -> Note {
        let mut state = self.state();
        if state.run.is_none() && !state.closed {
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
            is_settled: false,
        }
    }

    fn open(&self) -> io::Result<Run> {
        let user = user_directory::path();
        let runs = user.join(sweep::RUNS);
        loop {
            user_directory::make_private(&user).map_err(io::Error::other)?;
            match user_directory::make_private(&runs) {
                // The last of the others has just ended.
                Err(Unusable::System(error)) if error.kind() == io::ErrorKind::NotFound => continue,
                result => result.map_err(io::Error::other)?,
            }
            let path = runs.join(format!("{:016x}", sys::random()?));
            match DirBuilder::new().mode(0o700).create(&path) {
                // The last of the others has just ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                result => result?,
            }
            match self.lock(&path) {
                Ok(Some(directory)) => return Ok(Run { directory, path }),
                Ok(None) => {}
                Err(error) => {
                    let _ = std::fs::remove_dir(&path);
                    return Err(error);
                }
            }
        }
    }

    /// Locks the run's directory, and passes the lock on to the supervisor. Returns none if another
    /// shell took the directory for that of a killed shell, which it may do before the lock.
    fn lock(&self, path: &Path) -> io::Result<Option<Flock<File>>> {
        let directory = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        let directory = File::from(sys::move_up(directory.into())?);
        let own = directory.metadata()?;
        let directory = match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
            Err((_, Errno::EWOULDBLOCK | Errno::EINTR)) => return Ok(None),
            result => result.map_err(|(_, errno)| errno)?,
        };
        let is_there = |it: Metadata| (it.dev(), it.ino()) == (own.dev(), own.ino());
        if !path.symlink_metadata().is_ok_and(is_there) {
            return Ok(None);
        }
        if let Some(supervisor) = &self.supervisor {
            // Without the supervisor, which may just have been killed, this process and the next shell
            // still need the notes.
            let _ = sys::send_descriptors(supervisor, sys::Parcel::Lock, &[directory.as_fd()]);
        }
        Ok(Some(directory))
    }

    /// Removes all that is noted, once no worker is in the middle of something.
    pub fn clear(&self) {
        self.clean(false);
    }

    /// The same, for good: nothing is begun any more.
    pub fn close(&self) {
        self.clean(true);
    }

    fn clean(&self, is_end: bool) {
        let mut state = self.state();
        state.closed |= is_end;
        if state.busy > 0 {
            let wait = self.rested.wait_timeout_while(state, PATIENCE, |state| state.busy > 0);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(run) = state.run.take() {
            sweep::clean(run.directory.as_fd(), true);
            sweep::forget(&run.path);
        }
        for (kind, path) in std::mem::take(&mut state.unnoted).into_values() {
            if !kind.is_gone(&path) {
                let _ = kind.remove(&path);
            }
        }
    }
}

#[cfg(test)]
impl Registry {
    /// The run's directory, if it is there.
    pub fn path(&self) -> Option<PathBuf> {
        self.state().run.as_ref().map(|run| run.path.clone())
    }

    /// As if this process were killed. Unlocking would free what others hold as well.
    pub fn die(&self) {
        if let Some(run) = self.state().run.take() {
            let number = std::os::fd::AsRawFd::as_raw_fd(&*run.directory);
            let _ = nix::unistd::close(number);
            std::mem::forget(run);
        }
    }
}

/// While it is there, the end of the run waits.
pub struct Busy(Arc<Registry>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.busy -= 1;
        if state.busy == 0 {
            self.0.rested.notify_all();
        }
    }
}

/// What is or was to be made; removed with this, if it is there.
pub struct Note {
    registry: Arc<Registry>,
    number: u64,
    name: Option<String>,
    kind: Kind,
    path: PathBuf,
    is_settled: bool,
}

impl Note {
    /// What is there is to stay, after all.
    pub fn settle(mut self) {
        self.is_settled = true;
    }

    /// Removes what is there. Where that fails the end of the run tries once more.
    pub fn remove(mut self) -> io::Result<()> {
        let result = self.kind.remove(&self.path);
        self.is_settled = result.is_ok();
        result
    }

    /// What is to be made.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if !self.is_settled && self.kind.remove(&self.path).is_err() {
            return; // the end of the run tries once more
        }
        let mut state = self.registry.state();
        state.unnoted.remove(&self.number);
        if let (Some(run), Some(name)) = (&state.run, &self.name) {
            let _ = unlinkat(run.directory.as_fd(), name.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}
