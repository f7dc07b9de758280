//! Tables of descriptors: what a command starts from.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{Whence, lseek};

use super::error::FdError;
use super::place::Place;
use ftsh_machine::effect::ReplayId;
use ftsh_sys as sys;

/// How many descriptors a table has.
pub const SIZE: usize = 10;

/// An open descriptor.
#[derive(Clone, Debug)]
pub enum Fd {
    /// One that the shell was started with, still at its number.
    Inherited(sys::Inherited),
    /// One of our own, at a number outside the script's range.
    Owned(Arc<OwnedFd>),
    /// A buffer: what is written comes at its end, and using it never blocks.
    Memory(Arc<File>),
    /// What reads a buffer from an offset of its own; using it never blocks.
    Reader(Arc<OwnedFd>),
    /// `/dev/null`, by the shell's own choice.
    Null(Arc<OwnedFd>),
    /// What it led to is gone: to read and to write are errors.
    Gone(Arc<OwnedFd>),
}

impl Fd {
    /// Takes over a new descriptor.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self::Owned(Arc::new(sys::move_up(fd)?)))
    }

    /// What leads nowhere. A socket without another end, for it is never taken for an end of input: a
    /// descriptor that is closed or opened the wrong way is, by programs that think they have no standard
    /// input then, and by those that open it once more by its name.
    pub fn gone() -> io::Result<Self> {
        let fd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
        Ok(Self::Gone(Arc::new(sys::move_up(fd)?)))
    }

    /// How far it is from the beginning of a file; none if that can't be sought.
    pub fn position(&self) -> Option<u64> {
        if !self.is_seekable() {
            return None;
        }
        lseek(self, 0, Whence::SeekCur).ok().map(i64::cast_unsigned)
    }

    /// Goes to a place of a file, for all who share its opening. What can't be sought stays.
    pub fn go_to(&self, position: u64) {
        if self.is_seekable() {
            let _ = lseek(self, position.cast_signed(), Whence::SeekSet);
        }
    }

    fn is_seekable(&self) -> bool {
        let kind = fstat(self).map(|data| SFlag::from_bits_truncate(data.st_mode) & SFlag::S_IFMT);
        matches!(kind, Ok(SFlag::S_IFREG | SFlag::S_IFBLK))
    }

    /// Whether both are one opening of a file, as far as is known here.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Inherited(one), Self::Inherited(other)) => one == other,
            (Self::Owned(one), Self::Owned(other)) | (Self::Reader(one), Self::Reader(other)) => {
                Arc::ptr_eq(one, other)
            }
            _ => false,
        }
    }

    /// Whether it can be read from, as far as its opening goes.
    pub fn is_readable(&self) -> bool {
        self.access().is_some_and(|access| access != OFlag::O_WRONLY)
    }

    /// Whether it can be written to, as far as its opening goes.
    pub fn is_writable(&self) -> bool {
        self.access().is_some_and(|access| access != OFlag::O_RDONLY)
    }

    fn access(&self) -> Option<OFlag> {
        let flags = fcntl(self, FcntlArg::F_GETFL).ok()?;
        Some(OFlag::from_bits_retain(flags) & OFlag::O_ACCMODE)
    }

    /// What tells the file that it leads to from others: device and number.
    pub fn identity(&self) -> Option<(u64, u64)> {
        let data = fstat(self).ok()?;
        Some((data.st_dev, data.st_ino))
    }

    /// Whether it is a buffer's.
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

/// What a command's descriptors 0 to 9 are.
#[derive(Clone, Debug, Default)]
pub struct FdTable {
    pub descriptors: [Option<Fd>; SIZE],
    /// The structures around it that hold descriptors.
    pub place: Place,
    /// Whether it is such a structure's itself.
    pub holds: bool,
    /// What is read anew by attempts that it is for, from the outermost.
    pub replays: Vec<ReplayId>,
}

impl FdTable {
    /// The descriptors that are open now and stay open in children.
    pub fn inherited() -> Self {
        let passed = |number: usize| sys::Inherited::of(number as RawFd).map(Fd::Inherited);
        Self { descriptors: std::array::from_fn(passed), ..Self::default() }
    }

    /// A descriptor, if it is open.
    pub fn get(&self, number: u8) -> Option<&Fd> {
        self.descriptors.get(usize::from(number))?.as_ref()
    }

    pub fn set(&mut self, number: u8, fd: Fd) -> Result<(), FdError> {
        let place = self.descriptors.get_mut(usize::from(number));
        *place.ok_or(FdError::NoNumber(number))? = Some(fd);
        Ok(())
    }

    /// Whether there is nothing to read from descriptor 0: the shell gave it `/dev/null`, or it is gone.
    pub fn reads_nothing(&self) -> bool {
        matches!(self.descriptors[0], None | Some(Fd::Null(_) | Fd::Gone(_)))
    }

    /// The numbers to set in a child that inherits ours, as `from` and `to`.
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
