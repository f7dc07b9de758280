//! Variables used as files: anonymous memory, or an unlinked file where there is none.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bstr::BString;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::super::sys;
use super::table::Fd;

/// A file without a name that grows at its end.
#[derive(Clone, Debug)]
pub struct Buffer(Arc<OwnedFd>);

impl Buffer {
    /// An empty one.
    pub fn new() -> io::Result<Self> {
        let fd = sys::move_up(anonymous_file()?)?;
        // Whoever writes, writes at the end: the descriptor's offset is shared by all writers.
        sys::add_flags(fd.as_fd(), OFlag::O_APPEND)?;
        Ok(Self(Arc::new(fd)))
    }

    /// A descriptor that writes at the end.
    pub fn writer(&self) -> Fd {
        Fd::Memory(self.0.clone())
    }

    /// A descriptor that reads from the beginning, at an offset of its own.
    pub fn reader(&self) -> io::Result<OwnedFd> {
        #[cfg(target_os = "linux")]
        {
            let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
            let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
            if let Ok(fd) = open(path.as_str(), flags, Mode::empty()) {
                return sys::move_up(fd);
            }
        }
        // Without /proc: a copy.
        let mut copy = File::from(anonymous_file()?);
        copy.write_all(&self.content()?)?;
        io::Seek::rewind(&mut copy)?;
        sys::move_up(copy.into())
    }

    /// Whether nobody else has it.
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// How many bytes it holds.
    pub fn len(&self) -> u64 {
        self.file().and_then(|file| Ok(file.metadata()?.len())).unwrap_or(0)
    }

    /// All bytes.
    pub fn content(&self) -> io::Result<BString> {
        let file = self.file()?;
        let length = file.metadata()?.len() as usize;
        let mut content = Vec::new();
        content.try_reserve_exact(length)?;
        content.resize(length, 0);
        let mut filled = 0;
        while filled < content.len() {
            match file.read_at(&mut content[filled..], filled as u64)? {
                0 => break, // cut short by a writer
                count => filled += count,
            }
        }
        content.truncate(filled);
        Ok(content.into())
    }

    /// Adds bytes.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.file()?.write_all(bytes)
    }

    /// Adds the content of another one.
    pub fn append_from(&self, other: &Self) -> io::Result<()> {
        io::copy(&mut File::from(other.reader()?), &mut self.file()?)?;
        Ok(())
    }

    fn file(&self) -> io::Result<File> {
        Ok(self.0.try_clone()?.into())
    }
}

#[cfg(target_os = "linux")]
fn anonymous_file() -> io::Result<OwnedFd> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    match memfd_create(c"ftsh", MFdFlags::MFD_CLOEXEC) {
        Ok(fd) => Ok(fd),
        Err(_) => unlinked_file(),
    }
}

#[cfg(not(target_os = "linux"))]
fn anonymous_file() -> io::Result<OwnedFd> {
    unlinked_file()
}

fn unlinked_file() -> io::Result<OwnedFd> {
    unlinked_file_in(&std::env::temp_dir())
}

/// A file on a disk, if there is room for one.
pub fn file_on_disk() -> io::Result<OwnedFd> {
    // `/tmp` may be memory.
    let places = [std::env::var_os("TMPDIR"), Some("/var/tmp".into()), Some("/tmp".into())];
    let places = places.into_iter().flatten().filter(|place| !place.is_empty());
    let mut result = Err(io::ErrorKind::NotFound.into());
    for place in places {
        result = unlinked_file_in(Path::new(&place));
        if result.is_ok() {
            break;
        }
    }
    result
}

fn unlinked_file_in(directory: &Path) -> io::Result<OwnedFd> {
    let (fd, path) = nix::unistd::mkstemp(&directory.join("ftsh-XXXXXX"))?;
    std::fs::remove_file(path)?;
    sys::duplicate(fd.as_fd()) // closed on exec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reader_starts_at_the_beginning_and_writers_at_the_end() -> io::Result<()> {
        let buffer = Buffer::new()?;
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
        let (a, b) = (Buffer::new()?, Buffer::new()?);
        a.append(b"a")?;
        b.append_from(&a)?;
        b.append(b"b")?;
        assert_eq!(a.content()?, "a");
        assert_eq!(b.content()?, "ab");
        Ok(())
    }

    #[test]
    fn an_unlinked_file_serves_as_well() -> io::Result<()> {
        let file = File::from(unlinked_file()?);
        (&file).write_all(b"x")?;
        assert_eq!(file.metadata()?.len(), 1);
        Ok(())
    }
}
