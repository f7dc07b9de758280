//! File of a channel, the directory of all files, and their errors.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::locks::{STATE, try_lock, unlock};
use crate::user_directory;
use ftsh_machine::channels::stored::{Damaged, SIZE};
use ftsh_sys as sys;
use ftsh_sys::os_error::plain;

/// Open file of a channel.
#[derive(Debug)]
pub(super) struct ChannelFile {
    file: File,
    path: PathBuf,
}

impl ChannelFile {
    /// Opens the file of a channel, and creates it if missing.
    pub(super) fn open(directory: &ChannelDirectory, name: &str) -> Result<Self, ChannelFileError> {
        directory.make()?;
        let path = directory.path().join(name);
        if !is_name(name) {
            return Err(ChannelFileError::Strange { path, reason: "not the name of a channel" });
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        Self::open_with(options, path)
    }

    /// Opens the file again, with an open file description of its own, in order to wait for locks
    /// of this shell and others.
    pub(super) fn open_to_wait(&self) -> Result<Self, ChannelFileError> {
        let other = Self::open_to_look(self.path.clone())?;
        let inode = |file: &File| file.metadata().map(|found| (found.dev(), found.ino()));
        match (inode(&self.file), inode(&other.file)) {
            (Ok(one), Ok(two)) if one == two => Ok(other),
            _ => Err(self.unusable("it has been replaced")),
        }
    }

    /// Opens a file for reading.
    pub(super) fn open_to_look(path: PathBuf) -> Result<Self, ChannelFileError> {
        Self::open_with(OpenOptions::new().read(true).clone(), path)
    }

    fn open_with(mut options: OpenOptions, path: PathBuf) -> Result<Self, ChannelFileError> {
        // The open must not block on a FIFO, nor follow a link.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
        let opened = options.open(&path).and_then(|file| {
            let file = File::from(sys::move_up(OwnedFd::from(file))?);
            let found = file.metadata()?;
            Ok((file, found))
        });
        let unusable = |path, reason| Err(ChannelFileError::Strange { path, reason });
        let (file, found) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::ELOOP) => unusable(path, "it is a symbolic link"),
                    Some(libc::EISDIR) => unusable(path, "it is a directory"),
                    Some(libc::ENXIO) => unusable(path, "it is not a regular file"),
                    _ => Err(ChannelFileError::System { path, error }),
                };
            }
        };
        if !found.is_file() {
            unusable(path, "it is not a regular file")
        } else if found.uid() != nix::unistd::geteuid().as_raw() {
            unusable(path, "it belongs to another user")
        } else if found.mode() & 0o022 != 0 {
            unusable(path, "other users can write to it")
        } else {
            Ok(Self { file, path })
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates an error about this file.
    pub(super) fn error_here(&self, error: io::Error) -> ChannelFileError {
        ChannelFileError::System { path: self.path.clone(), error }
    }

    fn unusable(&self, reason: &'static str) -> ChannelFileError {
        ChannelFileError::Strange { path: self.path.clone(), reason }
    }

    /// True if the file still has a name under which other shells find it.
    pub(super) fn is_there(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() > 0)
    }

    /// Reads the text.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let mut text = vec![0; SIZE];
        let mut length = 0;
        while length < SIZE {
            match self.file.read_at(&mut text[length..], length as u64) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        text.truncate(length);
        Ok(text)
    }

    /// Overwrites the text.
    pub(super) fn write(&self, text: &[u8]) -> io::Result<()> {
        self.file.write_all_at(text, 0)
    }

    /// Saves a damaged text in a file beside this one, for people. This file is kept, since other
    /// shells hold locks on it. Returns a message for the user.
    pub(super) fn set_aside(&self, text: &[u8], why: Damaged) -> String {
        let beside = self.path.with_extension("damaged");
        // Replaces an existing file, and follows no link.
        let _ = std::fs::remove_file(&beside);
        let kept = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)
            .and_then(|file| file.write_all_at(text, 0));
        let path = self.path.display();
        match kept {
            Ok(()) => format!(
                "{path} was damaged ({why}): the channel starts empty; its earlier content is in {}",
                beside.display()
            ),
            Err(_) => format!("{path} was damaged ({why}): the channel starts empty"),
        }
    }

    /// Locks the text for a change, unless another shell holds the lock.
    pub(super) fn try_lock(self: &Arc<Self>) -> io::Result<Option<Locked>> {
        // Other shells hold the lock for microseconds.
        const TRIES: usize = 8;
        for _ in 0..TRIES {
            if try_lock(self.as_fd(), STATE)? {
                return Ok(Some(Locked(self.clone())));
            }
            std::thread::yield_now();
        }
        Ok(None)
    }
}

impl AsFd for ChannelFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// True if a name may be that of a channel's file.
pub(super) fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_letter) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// Lock on the text of a channel, released when dropped.
#[derive(Debug)]
pub(super) struct Locked(Arc<ChannelFile>);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = unlock(self.0.as_fd(), STATE);
    }
}

/// Directory with the files of channels.
pub(super) struct ChannelDirectory {
    path: PathBuf,
    /// Parent directory, if also private to ftsh.
    above: Option<PathBuf>,
}

impl ChannelDirectory {
    /// Uses the given directory, or else one in the user's private directory.
    pub(super) fn new(given: Option<PathBuf>) -> Self {
        match given {
            Some(path) => Self { path, above: None },
            None => {
                let above = user_directory::path();
                Self { path: above.join("channels"), above: Some(above) }
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory if missing, and checks that only this user can write to it.
    pub(super) fn make(&self) -> Result<(), ChannelFileError> {
        for path in self.above.iter().chain([&self.path]) {
            user_directory::make_private(path)
                .map_err(|reason| ChannelFileError::Directory { path: path.clone(), reason })?;
        }
        Ok(())
    }
}

/// Reason why the file of a channel cannot be used.
#[derive(Debug, Error)]
pub(super) enum ChannelFileError {
    /// The directory cannot be used.
    #[error("{}: {reason}; set FTSH_CHANNELS to another directory", .path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        reason: user_directory::DirectoryError,
    },
    /// The path is not a usable file.
    #[error("{}: {reason}; remove it, or set FTSH_CHANNELS to another directory", .path.display())]
    Strange { path: PathBuf, reason: &'static str },
    /// A system call failed.
    #[error("{}: {}{}", .path.display(), plain(.error), hint(.error))]
    System { path: PathBuf, error: io::Error },
    /// No worker thread is available.
    #[error("cannot start a thread: {}", plain(.0))]
    Worker(io::Error),
}

/// Returns a hint at another directory, which may have free space or support locks.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => "",
        _ => "; set FTSH_CHANNELS to another directory",
    }
}
