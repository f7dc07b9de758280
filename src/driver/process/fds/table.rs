//! Tables of descriptors: what a command starts from.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::fstat;

use super::super::sys;
use super::error::FdError;
use super::place::Place;
use crate::machine::effect::ReplayId;

/// How many descriptors a table has.
pub const SIZE: usize = 10;

/// An open descriptor.
#[derive(Clone, Debug)]
pub enum Fd {
    /// One that the shell was started with, still at its number.
    Inherited(RawFd),
    /// One of our own, at a number outside the script's range.
    Owned(Arc<OwnedFd>),
    /// A buffer: what is written comes at its end, and using it never blocks.
    Memory(Arc<File>),
    /// What reads a buffer from an offset of its own; using it never blocks.
    Reader(Arc<OwnedFd>),
    /// `/dev/null`, by the shell's own choice.
    Null(Arc<OwnedFd>),
}

impl Fd {
    /// Takes over a new descriptor.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self::Owned(Arc::new(sys::move_up(fd)?)))
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
            Self::Inherited(number) => sys::borrow(*number),
            Self::Memory(file) => file.as_fd(),
            Self::Owned(fd) | Self::Reader(fd) | Self::Null(fd) => fd.as_fd(),
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
        let passed = |number: usize| {
            let number = number as RawFd;
            sys::is_passed_on(number).then_some(Fd::Inherited(number))
        };
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

    /// Whether there is nothing to read from descriptor 0: the shell gave it `/dev/null`.
    pub fn reads_nothing(&self) -> bool {
        matches!(self.descriptors[0], None | Some(Fd::Null(_)))
    }

    /// The numbers to set in a child that inherits ours, as `from` and `to`.
    pub fn changes(&self) -> Vec<(RawFd, RawFd)> {
        let mut changes = Vec::with_capacity(SIZE);
        for (number, fd) in self.descriptors.iter().enumerate() {
            match fd {
                Some(Fd::Inherited(_)) | None => {}
                Some(fd) => changes.push((fd.as_fd().as_raw_fd(), number as RawFd)),
            }
        }
        changes
    }
}
