//! Variables used as files: anonymous memory, or an unlinked file as a fallback.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::BString;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use crate::cleanup::unlinked_file;
use crate::descriptors::Fd;
use crate::system::limits_memory;
use ftsh_sys as sys;

/// Block size for copies.
const BLOCK: usize = 16 * 1024;
/// Number of bytes hashed to detect changed content.
const COMPARED: usize = 4 * 1024;

/// Unnamed file that grows at its end.
#[derive(Clone, Debug)]
pub(crate) struct FileBuffer(Arc<File>);

impl FileBuffer {
    /// Creates an empty buffer.
    pub(crate) fn new() -> io::Result<Self> {
        Self::of(anonymous_file()?)
    }

    /// Creates an empty buffer for output of commands to a variable. Where memory is limited, the
    /// buffer is on disk: output in memory could exceed the limit, and killing a process would not
    /// free it.
    pub(crate) fn of_variable() -> io::Result<Self> {
        if limits_memory() { Self::large() } else { Self::new() }
    }

    /// Creates an empty buffer on disk, for large content. The page cache keeps as much of it in
    /// memory as fits.
    pub(crate) fn large() -> io::Result<Self> {
        Self::of(file_on_disk().or_else(|_| anonymous_file())?)
    }

    /// Wraps a file that no other process writes to.
    pub(crate) fn of(fd: OwnedFd) -> io::Result<Self> {
        let fd = sys::move_up(fd)?;
        // All writers share the offset of the descriptor, so they append.
        sys::add_flags(fd.as_fd(), OFlag::O_APPEND)?;
        Ok(Self(Arc::new(fd.into())))
    }

    /// Returns a descriptor that appends.
    pub(crate) fn writer(&self) -> Fd {
        Fd::Memory(self.0.clone())
    }

    /// Returns a descriptor that reads from the beginning, with its own offset.
    pub(crate) fn reader(&self) -> io::Result<OwnedFd> {
        sys::move_up(self.open_reader()?)
    }

    fn open_reader(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        if let Ok(fd) = open(path.as_str(), flags, Mode::empty()) {
            return Ok(fd);
        }
        // Without /proc, the content is copied.
        let mut copy = File::from(anonymous_file()?);
        copy.write_all(&self.content()?)?;
        io::Seek::rewind(&mut copy)?;
        Ok(copy.into())
    }

    /// Returns a descriptor that reads the given bytes.
    pub(crate) fn reader_of(content: &[u8]) -> io::Result<OwnedFd> {
        // These descriptors are temporary, so they need no number outside the script's range.
        let buffer = Self(Arc::new(anonymous_file()?.into()));
        buffer.append(content)?;
        let reader = buffer.open_reader()?;
        drop(buffer);
        sys::move_up(reader)
    }

    /// True if no descriptor of the buffer is in use.
    pub(crate) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Returns device and inode of the file.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        self.0.metadata().ok().map(|data| (data.dev(), data.ino()))
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.0.metadata().map_or(0, |data| data.len())
    }

    pub(crate) fn content(&self) -> io::Result<BString> {
        self.content_from(0).map(Into::into)
    }

    /// Returns the content from an offset on.
    pub(crate) fn content_from(&self, start: u64) -> io::Result<Vec<u8>> {
        let length = self.0.metadata()?.len().saturating_sub(start) as usize;
        let mut content = Vec::new();
        content.try_reserve_exact(length)?;
        content.resize(length, 0);
        let mut filled = 0;
        while filled < content.len() {
            match self.0.read_at(&mut content[filled..], start + filled as u64)? {
                0 => break, // truncated by a writer
                count => filled += count,
            }
        }
        content.truncate(filled);
        Ok(content)
    }

    /// Returns a hash of the last bytes before an offset, to detect changed content.
    pub(crate) fn hash_before(&self, end: u64) -> io::Result<u64> {
        let mut last = [0; COMPARED];
        let start = end.saturating_sub(COMPARED as u64);
        let count = self.0.read_at(&mut last[..(end - start) as usize], start)?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&last[..count]);
        Ok(hasher.finish())
    }

    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&*self.0).write_all(bytes)
    }

    /// Appends the content of another buffer.
    pub(crate) fn append_from(&self, other: &Self) -> io::Result<()> {
        let mut block = [0; BLOCK];
        let mut done = 0;
        loop {
            match other.0.read_at(&mut block, done)? {
                0 => return Ok(()),
                count => {
                    self.append(&block[..count])?;
                    done += count as u64;
                }
            }
        }
    }
}

fn anonymous_file() -> io::Result<OwnedFd> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    match memfd_create(c"ftsh", MFdFlags::MFD_CLOEXEC) {
        Ok(fd) => Ok(fd),
        Err(_) => unlinked_file(&std::env::temp_dir()),
    }
}

/// Creates an unnamed file on disk, if there is space. Falls back to a file system in memory.
pub(crate) fn file_on_disk() -> io::Result<OwnedFd> {
    let places = [std::env::var_os("TMPDIR"), Some("/var/tmp".into()), Some("/tmp".into())];
    let places = places.into_iter().flatten().filter(|place| !place.is_empty());
    let mut result = Err(io::ErrorKind::NotFound.into());
    for place in places.map(PathBuf::from) {
        let found = match unnamed_file_in(&place, OFlag::O_RDWR, UNSHARED) {
            Ok(Some(fd)) => Ok(fd),
            Ok(None) => unlinked_file(&place),
            Err(error) => Err(error),
        };
        match found {
            Ok(fd) if !is_in_memory(&fd) => return Ok(fd),
            found if result.is_err() => result = found,
            _ => {}
        }
    }
    result
}

fn is_in_memory(file: &OwnedFd) -> bool {
    use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};
    fstatfs(file).is_ok_and(|it| it.filesystem_type() == TMPFS_MAGIC)
}

const UNSHARED: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

/// Creates an unnamed file in a directory; none where the file system does not support unnamed
/// files.
pub(crate) fn unnamed_file_in(
    directory: &Path,
    access: OFlag,
    mode: Mode,
) -> io::Result<Option<OwnedFd>> {
    match open(directory, access | OFlag::O_TMPFILE | OFlag::O_CLOEXEC, mode) {
        Ok(fd) => return Ok(Some(fd)),
        Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reader_starts_at_the_beginning_and_writers_at_the_end() -> io::Result<()> {
        let buffer = FileBuffer::new()?;
        buffer.append(b"one ")?;
        let first = buffer.reader()?;
        buffer.append(b"two\0")?;
        let read = |fd: OwnedFd| io::read_to_string(File::from(fd));
        assert_eq!(read(first)?, "one two\0");
        assert_eq!(read(buffer.reader()?)?, "one two\0");
        assert_eq!(buffer.content()?, "one two\0");
        assert_eq!(buffer.len(), 8);
        Ok(())
    }

    #[test]
    fn a_copy_leaves_the_original_alone() -> io::Result<()> {
        let (a, b) = (FileBuffer::new()?, FileBuffer::new()?);
        a.append(b"a")?;
        b.append_from(&a)?;
        b.append(b"b")?;
        assert_eq!(a.content()?, "a");
        assert_eq!(b.content()?, "ab");
        Ok(())
    }

    #[test]
    fn an_unlinked_file_serves_as_well() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        let file = File::from(unlinked_file(place.path())?);
        (&file).write_all(b"x")?;
        assert_eq!(file.metadata()?.len(), 1);
        assert_eq!(place.path().read_dir()?.count(), 0);
        Ok(())
    }
}
