//! Commit of staged files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::BString;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, open};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{fsync, linkat};

use super::staged_file::{CommitStrategy, StagedContent, StagedFile, State};
use crate::cleanup::{NoteKind, Registry, hidden_name};
use crate::paths::FdError;
use crate::workers::Control;
use ftsh_machine::event::Refusal;
use ftsh_machine::event::Reply;

/// Block size for appending.
const BLOCK: usize = 256 * 1024;

/// Commits staged files in order, after all of them are synced to disk. Fails only if none was
/// committed.
pub(crate) fn commit_files(
    staged_files: &[Arc<StagedFile>],
    registry: &Arc<Registry>,
    control: &Control,
) -> Result<Reply, FdError> {
    sync_files(staged_files)?;
    let end = || FdError::Gone("the end of the run");
    let _busy = registry.begin().ok_or_else(end)?;
    // From here on, the commit cannot be canceled.
    if !control.commit() {
        return Err(end());
    }
    let (mut placed, mut directories) = (Vec::<BString>::new(), BTreeSet::<PathBuf>::new());
    for staged_file in staged_files {
        let mut state = staged_file.state();
        let State::Staged(staged) = &*state else { continue };
        match staged.take_place() {
            Ok(()) => {}
            Err(CommitError { error, is_whole: true }) if placed.is_empty() => {
                return Err(staged.refuse(error));
            }
            Err(CommitError { error, is_whole }) => {
                let error = staged.refuse(error);
                return Ok(incomplete(&error, is_whole, &placed));
            }
        }
        placed.push(staged.path.clone());
        directories.extend(staged.target.parent().map(Into::into));
        *state = State::Nothing;
    }
    for directory in directories {
        // Some directories cannot be opened, and some file systems do not sync them.
        if let Ok(opened) = File::open(&directory)
            && let Err(Errno::EIO) = fsync(&opened)
        {
            let path = directory.into_os_string().into_encoded_bytes().into();
            let error = FdError::File { path, error: Errno::EIO.into() };
            return Ok(incomplete(&error, true, &placed));
        }
    }
    Ok(Reply::Truth(true))
}

/// Writes the contents of new files to disk.
pub(super) fn sync_files(staged_files: &[Arc<StagedFile>]) -> Result<(), FdError> {
    for staged_file in staged_files {
        if let State::Staged(staged) = &*staged_file.state()
            && matches!(staged.strategy, CommitStrategy::Replace { .. })
        {
            fsync(&staged.file).map_err(|errno| staged.refuse(errno.into()))?;
        }
    }
    Ok(())
}

/// Returns the answer to an incomplete commit.
fn incomplete(error: &FdError, is_whole: bool, placed: &[BString]) -> Reply {
    let message = reported(error, is_whole, placed);
    Reply::Incomplete(Refusal { message, errno: error.errno() })
}

/// Formats the reason why the commit is incomplete.
fn reported(error: &FdError, is_whole: bool, placed: &[BString]) -> String {
    let part = if is_whole { "" } else { "; a part was appended" };
    let names: Vec<String> = placed.iter().map(ToString::to_string).collect();
    let already = match names.as_slice() {
        [] => String::new(),
        names => format!("; written already: {}", names.join(", ")),
    };
    format!("{error}{part}{already}")
}

struct CommitError {
    error: io::Error,
    /// True if the target is unchanged.
    is_whole: bool,
}

impl From<io::Error> for CommitError {
    fn from(error: io::Error) -> Self {
        Self { error, is_whole: true }
    }
}

impl From<Errno> for CommitError {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

impl StagedContent {
    fn refuse(&self, error: io::Error) -> FdError {
        FdError::File { path: self.path.clone(), error }
    }

    fn take_place(&self) -> Result<(), CommitError> {
        if matches!(self.strategy, CommitStrategy::Replace { if_written: true, .. })
            && fstat(&self.file)?.st_size == 0
        {
            return Ok(());
        }
        let there = match self.target.symlink_metadata() {
            Ok(there) if !there.is_file() => {
                return Err(io::Error::other("it is no longer a regular file").into());
            }
            Ok(there) => Some(there.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        match &self.strategy {
            CommitStrategy::Append(mode) => self.append(there, *mode),
            CommitStrategy::Replace { hidden: Some(hidden), .. } => {
                Ok(std::fs::rename(hidden.path(), &self.target)?)
            }
            CommitStrategy::Replace { hidden: None, .. } => {
                if there.is_none() {
                    match self.link(&self.target) {
                        Err(Errno::EEXIST) => {} // another process has just created it
                        result => return Ok(result?),
                    }
                }
                let directory = self.target.parent().unwrap_or(Path::new("/"));
                let hidden = self.registry.note(NoteKind::File, directory.join(hidden_name()?));
                self.link(hidden.path())?;
                Ok(std::fs::rename(hidden.path(), &self.target)?)
            }
        }
    }

    /// Gives a name to an unnamed file.
    fn link(&self, path: &Path) -> Result<(), Errno> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match linkat(AT_FDCWD, own.as_str(), AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW) {
            Err(Errno::ENOENT | Errno::EXDEV) => {
                linkat(self.file.as_fd(), "", AT_FDCWD, path, AtFlags::AT_EMPTY_PATH)
            }
            result => result,
        }
    }

    /// Appends the staged content. After an error, removes the appended part again, unless another
    /// process has appended too.
    fn append(&self, before: Option<u64>, mode: Mode) -> Result<(), CommitError> {
        let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_CLOEXEC;
        let file = File::from(open(&self.target, flags, mode)?);
        if before.is_none() {
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode.bits()))?;
        }
        let start = file.metadata()?.len();
        let kind =
            NoteKind::Addition { from: start, to: start + fstat(&self.file)?.st_size as u64 };
        // After a kill, the survivor or the next shell removes the appended part.
        let note = self.registry.note(kind, self.target.clone());
        let mut done = 0;
        let result = self.copy(&file, &mut done).and_then(|()| file.sync_all());
        note.keep();
        let Err(error) = result else { return Ok(()) };
        let is_ours = file.metadata().is_ok_and(|it| it.size() == start + done);
        let is_whole = is_ours && file.set_len(start).is_ok();
        if is_whole && before.is_none() {
            let _ = std::fs::remove_file(&self.target);
        }
        Err(CommitError { error, is_whole })
    }

    fn copy(&self, to: &File, done: &mut u64) -> io::Result<()> {
        let staged = File::from(self.file.try_clone()?);
        let mut block = vec![0; BLOCK];
        loop {
            let count = match staged.read_at(&mut block, *done) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut left = &block[..count];
            while !left.is_empty() {
                match io::Write::write(&mut &*to, left) {
                    Ok(written) => {
                        left = &left[written..];
                        *done += written as u64;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
