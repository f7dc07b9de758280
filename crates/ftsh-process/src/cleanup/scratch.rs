//! Scratch directories of attempts.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::kind::NoteKind;
use super::registry::{Note, Registry};
use super::sweep::not_removed;
use ftsh_machine::record::Level;
use ftsh_sys as sys;

/// Scratch directory of one attempt, created on first use.
#[derive(Default)]
pub(crate) struct Scratch(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Unmade,
    Made(Note),
    Removed,
}

impl Scratch {
    /// Returns the path. Safe to call from several threads.
    pub(crate) fn path(&self, registry: &Arc<Registry>) -> io::Result<PathBuf> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Made(note) => Ok(note.path().into()),
            State::Removed => Err(io::ErrorKind::NotFound.into()),
            State::Unmade => {
                let _busy = registry.begin().ok_or(io::ErrorKind::Interrupted)?;
                let path = std::path::absolute(scratch_place())?
                    .join(format!("ftsh-{:016x}", sys::random()?));
                let note = registry.note(NoteKind::Tree, path.clone());
                DirBuilder::new().mode(0o700).create(&path)?;
                *state = State::Made(note);
                Ok(path)
            }
        }
    }

    /// Removes the directory and its contents, and prevents its creation. May take long. Fails with
    /// a line for the log.
    pub(crate) fn remove(&self, registry: &Arc<Registry>) -> Result<(), (Level, String)> {
        let _busy = registry.begin();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Removed) {
            State::Made(note) => {
                let path = note.path().to_owned();
                note.remove().map_err(|error| not_removed(&path, &error))
            }
            State::Unmade | State::Removed => Ok(()),
        }
    }
}

/// Returns the parent of scratch directories. Scratch files may be large, so the directory of notes
/// is unsuitable.
pub(crate) fn scratch_place() -> PathBuf {
    let named = std::env::var_os("TMPDIR").filter(|name| !name.is_empty());
    named.map_or_else(|| Path::new("/tmp").into(), PathBuf::from)
}
