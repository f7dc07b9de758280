//! The file of a channel.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::directory::Directory;
use super::error::Unusable;
use super::locks::{self, STATE};
use ftsh_machine::channels::{Damaged, SIZE};
use ftsh_sys as sys;

/// A channel's file, open.
#[derive(Debug)]
pub struct ChannelFile {
    file: File,
    path: PathBuf,
}

impl ChannelFile {
    /// Opens the file of a channel, which is made if it isn't there.
    pub fn open(directory: &Directory, name: &str) -> Result<Self, Unusable> {
        directory.make()?;
        let path = directory.path().join(name);
        if !is_name(name) {
            return Err(Unusable::Strange { path, reason: "this is no name of a channel" });
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        Self::open_with(options, path)
    }

    /// Opens it as another description, which the system takes for somebody else, to wait for others.
    pub fn open_to_wait(&self) -> Result<Self, Unusable> {
        let other = Self::open_to_look(self.path.clone())?;
        let inode = |file: &File| file.metadata().map(|found| (found.dev(), found.ino()));
        match (inode(&self.file), inode(&other.file)) {
            (Ok(one), Ok(two)) if one == two => Ok(other),
            _ => Err(self.strange("it has been replaced")),
        }
    }

    /// Opens a file for somebody who only looks.
    pub fn open_to_look(path: PathBuf) -> Result<Self, Unusable> {
        Self::open_with(OpenOptions::new().read(true).clone(), path)
    }

    fn open_with(mut options: OpenOptions, path: PathBuf) -> Result<Self, Unusable> {
        // A FIFO mustn't make it wait, and a link could lead anywhere.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
        let opened = options.open(&path).and_then(|file| {
            let file = File::from(sys::move_up(OwnedFd::from(file))?);
            let found = file.metadata()?;
            Ok((file, found))
        });
        let strange = |path, reason| Err(Unusable::Strange { path, reason });
        let (file, found) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::ELOOP) => strange(path, "it is a symbolic link"),
                    Some(libc::EISDIR) => strange(path, "it is a directory"),
                    Some(libc::ENXIO) => strange(path, "it is no plain file"),
                    _ => Err(Unusable::System { path, error }),
                };
            }
        };
        if !found.is_file() {
            strange(path, "it is no plain file")
        } else if found.uid() != nix::unistd::geteuid().as_raw() {
            strange(path, "it belongs to somebody else")
        } else if found.mode() & 0o022 != 0 {
            strange(path, "others can write to it")
        } else {
            Ok(Self { file, path })
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What something that went wrong with it is called.
    pub fn trouble(&self, error: io::Error) -> Unusable {
        Unusable::System { path: self.path.clone(), error }
    }

    fn strange(&self, reason: &'static str) -> Unusable {
        Unusable::Strange { path: self.path.clone(), reason }
    }

    /// Whether it has a name, by which others find it.
    pub fn is_there(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() > 0)
    }

    /// Its text.
    pub fn read(&self) -> io::Result<Vec<u8>> {
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

    /// Puts another text in its place.
    pub fn write(&self, text: &[u8]) -> io::Result<()> {
        self.file.write_all_at(text, 0)
    }

    /// Keeps a text that can't be read beside the file, for people; the file itself stays, for the locks
    /// of others are on it. What to say about that.
    pub fn set_aside(&self, text: &[u8], why: Damaged) -> String {
        let beside = self.path.with_extension("damaged");
        // No link is followed: whatever has the name is replaced.
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
                "{path} was damaged ({why}): it begins anew, and what it held is in {}",
                beside.display()
            ),
            Err(_) => format!("{path} was damaged ({why}): it begins anew"),
        }
    }

    /// Takes the right to change the text, if nobody else has it.
    pub fn try_lock(self: &Arc<Self>) -> io::Result<Option<Locked>> {
        // Whoever has it needs it for microseconds.
        const TRIES: usize = 8;
        for _ in 0..TRIES {
            if locks::try_lock(self.as_fd(), STATE)? {
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

/// Whether a file of this name may belong to a channel.
pub fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_letter) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// The right to change a channel's text, as long as it lives.
#[derive(Debug)]
pub struct Locked(Arc<ChannelFile>);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = locks::unlock(self.0.as_fd(), STATE);
    }
}
