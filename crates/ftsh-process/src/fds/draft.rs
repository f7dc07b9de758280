//! Files that are written whole or not at all: a new one beside the old one, or what is to be added.

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

use super::super::cleanup::{Note, Registry, named_file};
use super::super::os::umask::umask as own_umask;
use super::buffer::{file_on_disk, unnamed_file_in};
use super::error::FdError;
use super::rights::{set_mode, take_after};
use ftsh_machine::effect::{DraftMode, Umask};
use ftsh_sys as sys;

/// As many links one after the other lead anywhere.
const MOST_LINKS: usize = 40;

/// A file to be; what there is of it goes with this.
#[derive(Default)]
pub struct Draft(Mutex<State>);

/// How far it has come.
#[derive(Default)]
pub(super) enum State {
    /// Nowhere; or it isn't one, or it is settled.
    #[default]
    Nothing,
    /// There is something that is to take a place.
    Held(Held),
}

/// What is to take which place.
pub(super) struct Held {
    /// The place, as the script says it.
    pub path: BString,
    /// The same, all links followed.
    pub target: PathBuf,
    /// What is written.
    pub file: Arc<OwnedFd>,
    pub how: How,
}

/// How it takes its place.
pub(super) enum How {
    /// As a new file.
    Replace {
        /// The name that it is hidden by, if it has one.
        hidden: Option<Note>,
        /// Whether it stays away if it is empty.
        if_written: bool,
    },
    /// At the end of the old one; a new one has this mode.
    Append(Mode),
}

impl Draft {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins it. None if that is no matter for a draft, as what has the path is no regular file.
    pub fn begin(
        &self,
        path: &BString,
        whole: &Path,
        mode: DraftMode,
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
        let (file, how) = if mode == DraftMode::Append {
            if old.is_none() {
                let needed = AccessFlags::W_OK | AccessFlags::X_OK;
                faccessat(AT_FDCWD, directory, needed, AtFlags::AT_EACCESS)
                    .map_err(|it| say(it.into()))?;
            }
            let file = file_on_disk().and_then(sys::move_up).map_err(say)?;
            sys::add_flags(file.as_fd(), OFlag::O_APPEND).map_err(say)?;
            (file, How::Append(rights))
        } else {
            let first = if old.is_some() { Mode::S_IRUSR | Mode::S_IWUSR } else { rights };
            let begun = beside(directory, first, registry).and_then(|(file, note)| {
                if let Some(old) = &old {
                    take_after(&file, &target, old)?;
                } else if umask.is_some() {
                    set_mode(&file, rights)?; // the shell's own took away from it
                }
                Ok((sys::move_up(file)?, note))
            });
            let (file, note) = begun.map_err(|error| match old {
                Some(_) => FdError::Beside { path: path.clone(), error },
                None => say(error),
            })?;
            (file, How::Replace { hidden: note, if_written: mode == DraftMode::Fill })
        };
        let file = Arc::new(file);
        *self.state() = State::Held(Held { path: path.clone(), target, file: file.clone(), how });
        Ok(Some(file))
    }

    /// How many bytes were written that aren't in their place yet.
    pub fn len(&self) -> u64 {
        match &*self.state() {
            State::Held(held) => fstat(&held.file).map_or(0, |data| data.st_size as u64),
            State::Nothing => 0,
        }
    }

    /// These bytes of them, or as many as there are.
    pub fn content_from(&self, start: u64, end: u64) -> io::Result<Vec<u8>> {
        let State::Held(held) = &*self.state() else { return Ok(Vec::new()) };
        let mut content = vec![0; end.saturating_sub(start) as usize];
        let mut filled = 0;
        while filled < content.len() {
            match pread(&held.file, &mut content[filled..], (start + filled as u64) as i64) {
                Ok(0) => break, // cut short by a writer
                Ok(count) => filled += count,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        content.truncate(filled);
        Ok(content)
    }
}

/// The file that a path leads to, and what it is now, if it is there; none if that is no regular one.
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
        return Ok(None); // opening it says what is wrong
    }
    let mut target = std::path::absolute(path)?;
    for _ in 0..MOST_LINKS {
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
            return Ok(None); // an open file, whatever it is called
        }
        target = directory.join(next);
    }
    Err(Errno::ELOOP.into())
}

/// A new file in a directory: without a name, or hidden under the noted one.
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
