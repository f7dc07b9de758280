//! Descriptor tables of commands.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{Whence, lseek};

use super::tree_position::TreePosition;
use crate::paths::FdError;
use ftsh_machine::effect::SpoolId;
use ftsh_sys as sys;

/// Number of descriptors in a table.
pub(crate) const SIZE: usize = 10;

/// Open descriptor.
#[derive(Clone, Debug)]
pub enum Fd {
    /// Inherited by the shell, still under the same number.
    Inherited(sys::Inherited),
    /// Opened by the shell, under a number outside the script's range.
    Owned(Arc<OwnedFd>),
    /// Writer of a buffer: appends, and never blocks.
    Memory(Arc<File>),
    /// Reader of a buffer with its own offset: never blocks.
    Reader(Arc<OwnedFd>),
    /// `/dev/null`, opened by the shell itself.
    Null(Arc<OwnedFd>),
    /// Placeholder for a lost descriptor: reads and writes fail.
    Gone(Arc<OwnedFd>),
}

impl Fd {
    /// Takes ownership of a new descriptor.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self::Owned(Arc::new(sys::move_up(fd)?)))
    }

    /// Creates the placeholder for a lost descriptor, a socket without a peer. Reads never return
    /// the end of input. A closed descriptor, or one opened for the wrong access, can look like an
    /// empty input: to programs that test standard input, and to programs that open it again by
    /// name.
    pub fn gone() -> io::Result<Self> {
        let fd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
        Ok(Self::Gone(Arc::new(sys::move_up(fd)?)))
    }

    /// Returns the offset in the file; none if the descriptor cannot seek.
    pub fn position(&self) -> Option<u64> {
        if !self.is_seekable() {
            return None;
        }
        lseek(self, 0, Whence::SeekCur).ok().map(i64::cast_unsigned)
    }

    /// Sets the offset in the file, which all users of the open file description share. Does
    /// nothing if the descriptor cannot seek.
    pub fn go_to(&self, position: u64) {
        if self.is_seekable() {
            let _ = lseek(self, position.cast_signed(), Whence::SeekSet);
        }
    }

    fn is_seekable(&self) -> bool {
        let kind = fstat(self).map(|data| SFlag::from_bits_truncate(data.st_mode) & SFlag::S_IFMT);
        matches!(kind, Ok(SFlag::S_IFREG | SFlag::S_IFBLK))
    }

    /// True if both are known to share an open file description.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Inherited(one), Self::Inherited(other)) => one == other,
            (Self::Owned(one), Self::Owned(other)) | (Self::Reader(one), Self::Reader(other)) => {
                Arc::ptr_eq(one, other)
            }
            _ => false,
        }
    }

    /// True if the descriptor was opened for reading.
    pub fn is_readable(&self) -> bool {
        self.access().is_some_and(|access| access != OFlag::O_WRONLY)
    }

    /// True if the descriptor was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.access().is_some_and(|access| access != OFlag::O_RDONLY)
    }

    fn access(&self) -> Option<OFlag> {
        let flags = fcntl(self, FcntlArg::F_GETFL).ok()?;
        Some(OFlag::from_bits_retain(flags) & OFlag::O_ACCMODE)
    }

    /// Returns device and inode of the file.
    pub fn identity(&self) -> Option<(u64, u64)> {
        let data = fstat(self).ok()?;
        Some((data.st_dev, data.st_ino))
    }

    /// True for a descriptor of a buffer.
    pub fn is_memory(&self) -> bool {
        matches!(self, Self::Memory(_) | Self::Reader(_))
    }
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Inherited(fd) => fd.as_fd(),
            Self::Memory(file) => file.as_fd(),
            Self::Owned(fd) | Self::Reader(fd) | Self::Null(fd) | Self::Gone(fd) => fd.as_fd(),
        }
    }
}

/// Descriptors 0 to 9 of a command.
#[derive(Clone, Debug, Default)]
pub struct FdTable {
    pub descriptors: [Option<Fd>; SIZE],
    /// Position among the structures that hold descriptors.
    pub place: TreePosition,
    /// True if the table belongs to such a structure.
    pub holds: bool,
    /// Enclosing attempts that read their input again, outermost first.
    pub replays: Vec<SpoolId>,
}

impl FdTable {
    /// Returns the descriptors that are open now and not closed by `exec`.
    pub fn inherited() -> Self {
        let passed = |number: usize| sys::Inherited::of(number as RawFd).map(Fd::Inherited);
        Self { descriptors: std::array::from_fn(passed), ..Self::default() }
    }

    /// Returns a descriptor, if open.
    pub fn get(&self, number: u8) -> Option<&Fd> {
        self.descriptors.get(usize::from(number))?.as_ref()
    }

    pub fn set(&mut self, number: u8, fd: Fd) -> Result<(), FdError> {
        let place = self.descriptors.get_mut(usize::from(number));
        *place.ok_or(FdError::NoNumber(number))? = Some(fd);
        Ok(())
    }

    /// True if descriptor 0 has no input: closed, lost, or the shell's own `/dev/null`.
    pub fn reads_nothing(&self) -> bool {
        matches!(self.descriptors[0], None | Some(Fd::Null(_) | Fd::Gone(_)))
    }

    /// Returns the descriptors to set in a child, each with its number.
    pub fn changes(&self) -> Vec<(BorrowedFd<'_>, RawFd)> {
        let mut changes = Vec::with_capacity(SIZE);
        for (number, fd) in self.descriptors.iter().enumerate() {
            match fd {
                Some(Fd::Inherited(_)) | None => {}
                Some(fd) => changes.push((fd.as_fd(), number as RawFd)),
            }
        }
        changes
    }
}
