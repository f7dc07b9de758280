//! Directories of attempts.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::kind::Kind;
use super::registry::{Note, Registry};
use ftsh_sys as sys;

/// The directory of one attempt, made when it is first asked for.
#[derive(Default)]
pub struct Scratch(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Unmade,
    Made(Note),
    Removed,
}

impl Scratch {
    /// Where it is. It may be asked for by several at once.
    pub fn path(&self, registry: &Arc<Registry>) -> io::Result<PathBuf> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Made(note) => Ok(note.path().into()),
            State::Removed => Err(io::ErrorKind::NotFound.into()),
            State::Unmade => {
                let _busy = registry.begin().ok_or(io::ErrorKind::Interrupted)?;
                let path = std::path::absolute(scratch_place())?
                    .join(format!("ftsh-{:016x}", sys::random()?));
                let note = registry.note(Kind::Tree, path.clone());
                DirBuilder::new().mode(0o700).create(&path)?;
                *state = State::Made(note);
                Ok(path)
            }
        }
    }

    /// Removes it with all in it; from now on there is none. That may take long. Says what it couldn't
    /// remove, and why.
    pub fn remove(&self, registry: &Arc<Registry>) -> Result<(), (PathBuf, io::Error)> {
        let _busy = registry.begin();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Removed) {
            State::Made(note) => {
                let path = note.path().to_owned();
                note.remove().map_err(|error| (path, error))
            }
            State::Unmade | State::Removed => Ok(()),
        }
    }
}

/// Where it is made: what is put there may be large, so not where the notes are.
pub fn scratch_place() -> PathBuf {
    let named = std::env::var_os("TMPDIR").filter(|name| !name.is_empty());
    named.map_or_else(|| Path::new("/tmp").into(), PathBuf::from)
}
