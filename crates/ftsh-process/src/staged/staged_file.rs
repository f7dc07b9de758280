//! Staged files: files written completely or not at all. A staged file is a new file beside the old
//! one, or text to append.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bstr::BString;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::sys::stat::{Mode, fstat, mode_t};
use nix::sys::uio::pread;
use nix::unistd::{AccessFlags, faccessat};

use super::rights::{set_mode, take_after};
use crate::buffers::{file_on_disk, unnamed_file_in};
use crate::cleanup::{Note, Registry, named_file};
use crate::paths::FdError;
use crate::system::umask as own_umask;
use ftsh_machine::effect::{CommitMode, Umask};
use ftsh_sys as sys;

/// Maximum number of symbolic links followed.
const MAX_LINKS: usize = 40;

/// File that waits for its commit. Dropping the value removes it.
#[derive(Default)]
pub(crate) struct StagedFile(Mutex<State>);

/// State of a staged file.
#[derive(Default)]
pub(crate) enum State {
    /// Not begun, already committed, or not a regular file.
    #[default]
    Nothing,
    /// Ready to be committed.
    Staged(StagedContent),
}

/// Content and target of a staged file.
pub(crate) struct StagedContent {
    /// Path as written in the script.
    pub path: BString,
    /// Absolute path of the target, with links resolved.
    pub target: PathBuf,
    /// New content.
    pub file: Arc<OwnedFd>,
    /// Registry of hidden names beside the target.
    pub registry: Arc<Registry>,
    pub strategy: CommitStrategy,
}

/// Method of the commit.
pub(crate) enum CommitStrategy {
    /// Replaces the target.
    Replace {
        /// Note of the hidden name, if the file has one.
        hidden: Option<Note>,
        /// True if an empty file is not committed.
        if_written: bool,
    },
    /// Appends to the target, which is created with this mode if missing.
    Append(Mode),
}

impl StagedFile {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the file for new content. Returns none if the path names something other than a
    /// regular file.
    pub(crate) fn begin(
        &self,
        path: &BString,
        whole: &Path,
        mode: CommitMode,
        umask: Umask,
        registry: &Arc<Registry>,
    ) -> Result<Option<Arc<OwnedFd>>, FdError> {
        let say = |error: io::Error| FdError::File { path: path.clone(), error };
        let Some((target, old)) = target(whole).map_err(say)? else { return Ok(None) };
        if old.is_some() {
            let flags = AtFlags::AT_EACCESS;
            faccessat(AT_FDCWD, &target, AccessFlags::W_OK, flags).map_err(|it| say(it.into()))?;
        }
        let rights =
            Mode::from_bits_truncate(0o666 & !mode_t::from(umask.unwrap_or_else(own_umask)));
        let directory = target.parent().unwrap_or(Path::new("/"));
        let (file, strategy) = if mode == CommitMode::Append {
            if old.is_none() {
                let needed = AccessFlags::W_OK | AccessFlags::X_OK;
                faccessat(AT_FDCWD, directory, needed, AtFlags::AT_EACCESS)
                    .map_err(|it| say(it.into()))?;
            }
            let file = file_on_disk().and_then(sys::move_up).map_err(say)?;
            sys::add_flags(file.as_fd(), OFlag::O_APPEND).map_err(say)?;
            (file, CommitStrategy::Append(rights))
        } else {
            let first = if old.is_some() { Mode::S_IRUSR | Mode::S_IWUSR } else { rights };
            let begun = beside(directory, first, registry).and_then(|(file, note)| {
                if let Some(old) = &old {
                    take_after(&file, &target, old)?;
                } else if umask.is_some() {
                    set_mode(&file, rights)?; // the umask of the shell removed permissions
                }
                Ok((sys::move_up(file)?, note))
            });
            let (file, note) = begun.map_err(|error| match old {
                Some(_) => FdError::Beside { path: path.clone(), error },
                None => say(error),
            })?;
            (file, CommitStrategy::Replace { hidden: note, if_written: mode == CommitMode::Fill })
        };
        let file = Arc::new(file);
        *self.state() = State::Staged(StagedContent {
            path: path.clone(),
            target,
            file: file.clone(),
            registry: registry.clone(),
            strategy,
        });
        Ok(Some(file))
    }

    /// True if the file is in the view with this registry.
    pub(crate) fn is_in(&self, view: &Arc<Registry>) -> bool {
        match &*self.state() {
            State::Staged(staged) => Arc::ptr_eq(&staged.registry, view),
            State::Nothing => false,
        }
    }

    /// Returns the number of bytes that wait for the commit.
    pub(crate) fn len(&self) -> u64 {
        match &*self.state() {
            State::Staged(staged) => fstat(&staged.file).map_or(0, |data| data.st_size as u64),
            State::Nothing => 0,
        }
    }

    /// Returns these bytes of them, or as many as exist.
    pub(crate) fn content_from(&self, start: u64, end: u64) -> io::Result<Vec<u8>> {
        let State::Staged(staged) = &*self.state() else { return Ok(Vec::new()) };
        let mut content = vec![0; end.saturating_sub(start) as usize];
        let mut filled = 0;
        while filled < content.len() {
            match pread(&staged.file, &mut content[filled..], (start + filled as u64) as i64) {
                Ok(0) => break, // truncated by a writer
                Ok(count) => filled += count,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        content.truncate(filled);
        Ok(content)
    }
}

/// Returns the target of a path and its metadata, if present; none if the path names something
/// other than a regular file.
fn target(path: &Path) -> io::Result<Option<(PathBuf, Option<Metadata>)>> {
    if path.as_os_str().is_empty() {
        return Err(Errno::ENOENT.into());
    }
    let found = match path.metadata() {
        Ok(found) if !found.is_file() => return Ok(None),
        Ok(found) => Some(found),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if found.is_none() && path.as_os_str().as_bytes().ends_with(b"/") {
        return Ok(None); // opening the path reports the error
    }
    let mut target = std::path::absolute(path)?;
    for _ in 0..MAX_LINKS {
        let Ok(next) = std::fs::read_link(&target) else {
            // Some links only look as if they led somewhere.
            let same = |there: &Metadata, it: &Metadata| {
                (there.dev(), there.ino()) == (it.dev(), it.ino())
            };
            let is_it = match (&found, target.symlink_metadata()) {
                (Some(found), Ok(there)) => same(&there, found),
                (None, Err(_)) => true,
                _ => false,
            };
            return Ok(is_it.then_some((target, found)));
        };
        let directory = target.parent().unwrap_or(Path::new("/"));
        if directory.canonicalize().is_ok_and(|it| it.starts_with("/proc")) {
            return Ok(None); // an open file, not a name
        }
        target = directory.join(next);
    }
    Err(Errno::ELOOP.into())
}

/// Creates a file in a directory, unnamed or under a hidden name with a note.
fn beside(
    directory: &Path,
    mode: Mode,
    registry: &Arc<Registry>,
) -> io::Result<(OwnedFd, Option<Note>)> {
    if let Some(file) = unnamed_file_in(directory, OFlag::O_RDWR, mode)? {
        return Ok((file, None));
    }
    let (file, note) = named_file(directory, mode, registry)?;
    Ok((file, Some(note)))
}
