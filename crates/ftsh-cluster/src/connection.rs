//! Pipes to the standard streams of an engine's command. No function here blocks.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use ftsh_process::{ProcessDriver, Readiness};

/// Maximum number of bytes of one read.
const MAX_READ: usize = 64 * 1024;

/// Pipe of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionPipe {
    /// Pipe to the standard input of the command.
    Input,
    /// Pipe from the standard output of the command.
    Output,
    /// Pipe from the standard error of the command.
    Errors,
    /// Pipe from descriptor 3 of a carrier.
    Notices,
    /// Pipe from the thread that transfers files.
    Files,
}

impl ConnectionPipe {
    /// All pipes, in the order of their keys.
    pub(crate) const ALL: [Self; 5] =
        [Self::Input, Self::Output, Self::Errors, Self::Notices, Self::Files];
    /// Number of keys that each connection reserves.
    pub(crate) const KEYS: u64 = 5;
}

/// This shell's ends of the pipes.
#[derive(Debug)]
pub(crate) struct Connection {
    first_key: u64,
    input: Option<io::PipeWriter>,
    output: Option<io::PipeReader>,
    errors: Option<io::PipeReader>,
    notices: Option<io::PipeReader>,
    /// Chunks that are not yet written completely.
    unwritten: VecDeque<Arc<[u8]>>,
    /// Number of bytes already written of the first chunk.
    written: usize,
    is_listening: bool,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Bytes from the pipe.
    Bytes(Vec<u8>),
    /// No bytes are available yet.
    Nothing,
    /// The pipe is closed.
    End,
}

impl Connection {
    /// Creates the pipes, one more for a carrier, and returns the connection and the ends for the
    /// command.
    pub(crate) fn open(
        driver: &mut ProcessDriver,
        first_key: u64,
        is_carrier: bool,
    ) -> io::Result<(Self, Vec<OwnedFd>)> {
        let (their_input, input) = io::pipe()?;
        let input = prepare_own_end(input.into())?;
        let mut theirs = vec![their_input.into()];
        let mut from = |pipe: ConnectionPipe| {
            let (reader, their_end) = io::pipe()?;
            let reader = prepare_own_end(reader.into())?;
            driver.add_fd(reader.as_fd(), first_key + pipe as u64, Readiness::ToRead)?;
            theirs.push(their_end.into());
            Ok::<_, io::Error>(io::PipeReader::from(reader))
        };
        let output = from(ConnectionPipe::Output)?;
        let errors = from(ConnectionPipe::Errors)?;
        let notices = is_carrier.then(|| from(ConnectionPipe::Notices)).transpose()?;
        let connection = Self {
            first_key,
            input: Some(input.into()),
            output: Some(output),
            errors: Some(errors),
            notices,
            unwritten: VecDeque::new(),
            written: 0,
            is_listening: false,
        };
        Ok((connection, theirs))
    }

    /// Reads the available bytes, at most one block.
    pub(crate) fn read(&mut self, driver: &mut ProcessDriver, pipe: ConnectionPipe) -> Received {
        let slot = match pipe {
            ConnectionPipe::Input | ConnectionPipe::Files => return Received::End,
            ConnectionPipe::Output => &mut self.output,
            ConnectionPipe::Errors => &mut self.errors,
            ConnectionPipe::Notices => &mut self.notices,
        };
        let Some(reader) = slot else { return Received::End };
        let mut bytes = vec![0; MAX_READ];
        match reader.read(&mut bytes) {
            Ok(read @ 1..) => {
                bytes.truncate(read);
                Received::Bytes(bytes)
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Received::Nothing
            }
            Ok(0) | Err(_) => {
                close_reader(driver, slot);
                Received::End
            }
        }
    }

    /// Queues a copy of the bytes, and writes as much as possible.
    pub(crate) fn write(&mut self, driver: &mut ProcessDriver, bytes: &[u8]) {
        self.send(driver, bytes.into());
    }

    /// Queues a shared chunk, and writes as much as possible.
    pub(crate) fn send(&mut self, driver: &mut ProcessDriver, bytes: Arc<[u8]>) {
        self.unwritten.push_back(bytes);
        self.flush(driver);
    }

    /// Writes queued bytes until the pipe is full.
    pub(crate) fn flush(&mut self, driver: &mut ProcessDriver) {
        let Some(input) = &mut self.input else { return };
        while let Some(first) = self.unwritten.front() {
            if self.written >= first.len() {
                (self.written, _) = (0, self.unwritten.pop_front());
                continue;
            }
            match input.write(&first[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The reader is gone. The ends of the other two pipes report the loss.
                Err(_) => {
                    self.written = 0;
                    self.unwritten.clear();
                }
            }
        }
        let is_needed = !self.unwritten.is_empty();
        if is_needed != self.is_listening {
            self.is_listening = is_needed;
            let (fd, key) = (input.as_fd(), self.first_key + ConnectionPipe::Input as u64);
            if !is_needed {
                driver.remove_fd(fd);
            } else if driver.add_fd(fd, key, Readiness::ToWrite).is_err() {
                // The node handles the end of its input as the end of this shell.
                self.close_input(driver);
            }
        }
    }

    /// Returns another end of the pipe to the standard input of the command. Nothing is queued.
    pub(crate) fn input(&self) -> io::Result<io::PipeWriter> {
        let input = self.input.as_ref().ok_or(ErrorKind::BrokenPipe)?.try_clone()?;
        Ok(ProcessDriver::move_above_script(input.into())?.into())
    }

    /// Removes the pipe from the standard output of the command.
    pub(crate) fn take_output(&mut self, driver: &mut ProcessDriver) -> io::Result<io::PipeReader> {
        let output = self.output.take().ok_or(ErrorKind::BrokenPipe)?;
        driver.remove_fd(output.as_fd());
        Ok(output)
    }

    /// Closes the pipe to the standard input of the command.
    pub(crate) fn close_input(&mut self, driver: &mut ProcessDriver) {
        if std::mem::take(&mut self.is_listening)
            && let Some(input) = &self.input
        {
            driver.remove_fd(input.as_fd());
        }
        self.input = None;
    }

    /// Closes all pipes.
    pub(crate) fn close(&mut self, driver: &mut ProcessDriver) {
        self.close_input(driver);
        close_reader(driver, &mut self.output);
        close_reader(driver, &mut self.errors);
        close_reader(driver, &mut self.notices);
    }
}

fn close_reader(driver: &mut ProcessDriver, slot: &mut Option<io::PipeReader>) {
    if let Some(reader) = slot.take() {
        let fd: BorrowedFd = reader.as_fd();
        driver.remove_fd(fd);
    }
}

/// Prepares an end of this shell: no command inherits the descriptor, and the descriptor never
/// blocks.
pub(crate) fn prepare_own_end(fd: OwnedFd) -> io::Result<OwnedFd> {
    let fd = ProcessDriver::move_above_script(fd)?;
    let flags = fcntl(&fd, FcntlArg::F_GETFL)?;
    fcntl(&fd, FcntlArg::F_SETFL(OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK))?;
    Ok(fd)
}
