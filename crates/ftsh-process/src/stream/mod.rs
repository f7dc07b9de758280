//! Input and output of builtins.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use bstr::{BString, ByteSlice};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::SFlag;
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::{Whence, lseek, read, write};

use crate::descriptors::{Fd, FdTable};
use crate::files::is_null;
use crate::paths::FdError;
use crate::workers::{Call, Control};
use ftsh_machine::event::{CommandStatus, SpawnError, SpawnErrorKind};
use ftsh_machine::size::{MAX_VALUE_LEN, ValueTooLong};
use ftsh_sys as sys;
use ftsh_sys::os_error::{name, plain};

/// Bytes that a pipe accepts without blocking if it polls as writable.
pub(crate) const PIPE_ROOM: usize = libc::PIPE_BUF;
/// Bytes written to a file at once on the event loop.
const FILE_ROOM: usize = 64 * 1024;
/// Block size for the search of a line's end.
const BLOCK: usize = 4096;

/// End of a builtin: its status, and the line it read.
pub(crate) type Ended = Result<(CommandStatus, Option<BString>), SpawnError>;

/// Writes bytes without blocking. Returns the end of the builtin, or the number of bytes left for a
/// worker.
pub(crate) fn print_now(table: &FdTable, bytes: &[u8]) -> Result<Ended, usize> {
    let Some(fd) = table.get(1) else { return Ok(Err(closed(1))) };
    match write_without_waiting(fd, bytes) {
        Ok(count) if count == bytes.len() => Ok(Ok((CommandStatus::Exited(0), None))),
        Ok(count) => Err(bytes.len() - count),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(bytes.len()),
        Err(error) => Ok(write_failed(&error)),
    }
}

/// Writes as many bytes as possible without blocking; `WouldBlock` if none.
pub(crate) fn write_without_waiting(fd: &Fd, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let kind = sys::fd_kind(fd.as_fd())?;
    if kind.file_type == SFlag::S_IFREG || is_null(&kind) {
        let room = bytes.len().min(FILE_ROOM);
        return Ok(write(fd, &bytes[..room])?);
    }
    if kind.file_type != SFlag::S_IFIFO {
        return Err(ErrorKind::WouldBlock.into()); // a terminal may be stopped, so a worker writes
    }
    match sys::write_now(fd.as_fd(), bytes) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            if is_ready(fd.as_fd(), PollFlags::POLLOUT, PollTimeout::ZERO)? {
                Ok(write(fd, &bytes[..bytes.len().min(PIPE_ROOM)])?)
            } else {
                Err(ErrorKind::WouldBlock.into())
            }
        }
        result => result,
    }
}

/// Writes all bytes. Blocks.
pub(crate) fn print(table: &FdTable, mut bytes: &[u8], control: &Control) -> Ended {
    let Some(fd) = table.get(1) else { return Err(closed(1)) };
    control.note(Call::Write(fd.as_fd().as_raw_fd()));
    while !bytes.is_empty() {
        match write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) if !control.is_cancelled() => {}
            // Another process has set O_NONBLOCK.
            Err(Errno::EAGAIN) => {
                wait(fd.as_fd(), PollFlags::POLLOUT, control).map_err(|error| failed(&error))?;
            }
            Err(error) => return write_failed(&error.into()),
        }
    }
    Ok((CommandStatus::Exited(0), None))
}

/// Copies the input to the output. Blocks.
pub(crate) fn copy(table: &FdTable, control: &Control) -> Ended {
    let Some(from) = table.get(0) else { return Err(closed(0)) };
    let mut block = vec![0; FILE_ROOM];
    loop {
        control.note(Call::Read(from.as_fd().as_raw_fd()));
        match read(from, &mut block) {
            Ok(0) => return Ok((CommandStatus::Exited(0), None)),
            Ok(count) => match print(table, &block[..count], control) {
                Ok((CommandStatus::Exited(0), _)) => {}
                ended => return ended,
            },
            Err(Errno::EINTR) if !control.is_cancelled() => {}
            Err(Errno::EAGAIN) => {
                wait(from.as_fd(), PollFlags::POLLIN, control).map_err(|error| failed(&error))?;
            }
            Err(error) => return Err(failed(&error.into())),
        }
    }
}

/// Amount of input to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// All that is still to come.
    All,
    /// As much as is there, at least a byte; nothing at the end.
    Part,
    /// Bytes up to and including a text, and none after the text.
    Word(BString),
}

/// Reads what is still to come from a descriptor, unless that is more than a value can have.
pub(crate) fn read_input(
    table: &FdTable,
    number: u8,
    amount: &Amount,
    control: &Control,
) -> Result<BString, FdError> {
    let from = table.get(number).ok_or(FdError::Closed(number))?;
    let trouble = |error| FdError::Copy { number, error };
    control.note(Call::Read(from.as_fd().as_raw_fd()));
    let block = match amount {
        Amount::Word(end) if end == "\n" => block_for(from),
        // A terminal gives lines, which may have more than one word.
        Amount::Word(_) if lseek(from, 0, Whence::SeekCur).is_err() => vec![0; 1],
        Amount::Word(_) => vec![0; BLOCK],
        Amount::All | Amount::Part => vec![0; FILE_ROOM],
    };
    let (mut text, mut block) = (Vec::new(), block);
    loop {
        match read(from, &mut block) {
            Ok(0) => return Ok(text.into()),
            Ok(count) if text.len() + count > MAX_VALUE_LEN => {
                return Err(ValueTooLong(text.len() + count).into());
            }
            Ok(count) => {
                text.try_reserve(count).map_err(|error| trouble(error.into()))?;
                text.extend_from_slice(&block[..count]);
                match amount {
                    Amount::All => {}
                    Amount::Part => return Ok(text.into()),
                    Amount::Word(end) => {
                        let before = (text.len() - count).saturating_sub(end.len() - 1);
                        if let Some(at) = text[before..].find(&**end) {
                            let surplus = text.split_off(before + at + end.len());
                            if !surplus.is_empty() {
                                let back = -(surplus.len() as i64);
                                lseek(from, back, Whence::SeekCur)
                                    .map_err(|error| trouble(error.into()))?;
                            }
                            return Ok(text.into());
                        }
                    }
                }
            }
            Err(Errno::EINTR) if !control.is_cancelled() => {}
            Err(Errno::EAGAIN) => {
                wait(from.as_fd(), PollFlags::POLLIN, control).map_err(trouble)?;
            }
            Err(error) => return Err(trouble(error.into())),
        }
    }
}

/// Reads a line, and not a byte more, without blocking. If a read would block, returns the part
/// already read, for a worker.
pub(crate) fn read_line_now(table: &FdTable) -> Result<Ended, Vec<u8>> {
    let Some(fd) = table.get(0) else { return Ok(Err(closed(0))) };
    let (mut line, mut block) = (Vec::new(), block_for(fd));
    while line.len() < FILE_ROOM {
        match read_part(fd, &mut line, &mut block, |room| sys::read_now(fd.as_fd(), room)) {
            Ok(Some(status)) => return Ok(Ok((status, Some(line.into())))),
            Ok(None) => {}
            Err(_) => break, // a worker waits, or reports the error
        }
    }
    Err(line)
}

/// Reads the rest of a line, and not a byte more. Blocks.
pub(crate) fn read_line(table: &FdTable, mut line: Vec<u8>, control: &Control) -> Ended {
    let Some(fd) = table.get(0) else { return Err(closed(0)) };
    control.note(Call::Read(fd.as_fd().as_raw_fd()));
    let mut block = block_for(fd);
    loop {
        match read_part(fd, &mut line, &mut block, |room| Ok(read(fd, room)?)) {
            Ok(Some(status)) => return Ok((status, Some(line.into()))),
            Ok(None) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted && !control.is_cancelled() => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(fd.as_fd(), PollFlags::POLLIN, control).map_err(|error| failed(&error))?;
            }
            Err(error) => return Err(failed(&error)),
        }
    }
}

/// Returns the buffer for the next read. From a file, a block is read and the bytes after the line
/// are given back by a seek. A terminal returns one line at a time, so that several `read`s get
/// whole lines.
fn block_for(fd: &Fd) -> Vec<u8> {
    let gives_lines = || tcgetattr(fd).is_ok_and(|it| it.local_flags.contains(LocalFlags::ICANON));
    let is_block = lseek(fd, 0, Whence::SeekCur).is_ok() || gives_lines();
    vec![0; if is_block { BLOCK } else { 1 }]
}

/// Reads more of a line. Returns the builtin's status at the end of the line.
fn read_part(
    fd: &Fd,
    line: &mut Vec<u8>,
    block: &mut [u8],
    read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
) -> io::Result<Option<CommandStatus>> {
    let count = read(block)?;
    if count == 0 {
        return Ok(Some(CommandStatus::Exited(1)));
    }
    let Some(end) = block[..count].find_byte(b'\n') else {
        if line.len() + count > MAX_VALUE_LEN {
            return Err(io::Error::other(ValueTooLong(line.len() + count)));
        }
        line.try_reserve(count)?;
        line.extend_from_slice(&block[..count]);
        return Ok(None);
    };
    line.extend_from_slice(&block[..end]);
    let surplus = (count - end - 1) as i64;
    if surplus > 0 {
        lseek(fd, -surplus, Whence::SeekCur)?;
    }
    Ok(Some(CommandStatus::Exited(0)))
}

fn wait(fd: BorrowedFd, events: PollFlags, control: &Control) -> io::Result<()> {
    while !is_ready(fd, events, PollTimeout::NONE)? {
        if control.is_cancelled() {
            return Err(ErrorKind::Interrupted.into());
        }
    }
    Ok(())
}

fn is_ready(fd: BorrowedFd, events: PollFlags, timeout: PollTimeout) -> io::Result<bool> {
    match poll(&mut [PollFd::new(fd, events)], timeout) {
        Ok(count) => Ok(count > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Maps a lost reader to the signal that would end a program.
fn write_failed(error: &io::Error) -> Ended {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok((CommandStatus::Signaled(libc::SIGPIPE), None)),
        _ => Err(failed(error)),
    }
}

fn failed(error: &io::Error) -> SpawnError {
    SpawnError { kind: SpawnErrorKind::Builtin, message: plain(error), errno: name(error) }
}

fn closed(number: u8) -> SpawnError {
    let message = format!("descriptor {number} is not open");
    SpawnError::new(SpawnErrorKind::Builtin, message)
}
