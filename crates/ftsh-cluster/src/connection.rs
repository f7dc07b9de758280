//! The pipes to what an engine runs for us: to its standard input, and from its output and its errors.
//! Nothing here waits.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use ftsh_process::{ProcessDriver, Ready};

/// So much is read at once.
const BLOCK: usize = 64 * 1024;

/// Which pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipe {
    /// To its standard input.
    Input,
    /// From its standard output.
    Output,
    /// From its standard error.
    Errors,
}

impl Pipe {
    /// All, each at its place in the keys that descriptors are known by.
    pub const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Errors];
    /// How many keys a connection takes.
    pub const KEYS: u64 = 4;
}

/// Our ends of the pipes.
#[derive(Debug)]
pub struct Connection {
    first_key: u64,
    input: Option<io::PipeWriter>,
    output: Option<io::PipeReader>,
    errors: Option<io::PipeReader>,
    /// What is still to be written.
    unwritten: VecDeque<Arc<[u8]>>,
    /// How much of the first of it is written.
    written: usize,
    is_listening: bool,
}

/// What reading has brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// This.
    Bytes(Vec<u8>),
    /// Nothing for now.
    Nothing,
    /// Nothing more ever.
    End,
}

impl Connection {
    /// New pipes, and their other ends.
    pub fn open(driver: &mut ProcessDriver, first_key: u64) -> io::Result<(Self, [OwnedFd; 3])> {
        let (their_input, input) = io::pipe()?;
        let (output, their_output) = io::pipe()?;
        let (errors, their_errors) = io::pipe()?;
        let (input, output, errors) =
            (ours(input.into())?, ours(output.into())?, ours(errors.into())?);
        driver.listen_to(output.as_fd(), first_key + Pipe::Output as u64, Ready::ToRead)?;
        driver.listen_to(errors.as_fd(), first_key + Pipe::Errors as u64, Ready::ToRead)?;
        let connection = Self {
            first_key,
            input: Some(input.into()),
            output: Some(output.into()),
            errors: Some(errors.into()),
            unwritten: VecDeque::new(),
            written: 0,
            is_listening: false,
        };
        Ok((connection, [their_input.into(), their_output.into(), their_errors.into()]))
    }

    /// Reads what there is, up to some size.
    pub fn read(&mut self, driver: &mut ProcessDriver, pipe: Pipe) -> Heard {
        let slot = match pipe {
            Pipe::Input => return Heard::End,
            Pipe::Output => &mut self.output,
            Pipe::Errors => &mut self.errors,
        };
        let Some(reader) = slot else { return Heard::End };
        let mut bytes = vec![0; BLOCK];
        match reader.read(&mut bytes) {
            Ok(read @ 1..) => {
                bytes.truncate(read);
                Heard::Bytes(bytes)
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Heard::Nothing
            }
            Ok(0) | Err(_) => {
                leave(driver, slot);
                Heard::End
            }
        }
    }

    /// Writes this after what is still to be written.
    pub fn write(&mut self, driver: &mut ProcessDriver, bytes: &[u8]) {
        self.send(driver, bytes.into());
    }

    /// The same, for what others are sent as well.
    pub fn send(&mut self, driver: &mut ProcessDriver, bytes: Arc<[u8]>) {
        self.unwritten.push_back(bytes);
        self.go_on(driver);
    }

    /// Writes what can be written.
    pub fn go_on(&mut self, driver: &mut ProcessDriver) {
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
                // Nobody is there: that will be heard.
                Err(_) => {
                    self.written = 0;
                    self.unwritten.clear();
                }
            }
        }
        let is_needed = !self.unwritten.is_empty();
        if is_needed != self.is_listening {
            self.is_listening = is_needed;
            let (fd, key) = (input.as_fd(), self.first_key + Pipe::Input as u64);
            if !is_needed {
                driver.listen_no_more(fd);
            } else if driver.listen_to(fd, key, Ready::ToWrite).is_err() {
                // The node takes that for the end of this shell.
                self.hang_up(driver);
            }
        }
    }

    /// Ends what it is told.
    pub fn hang_up(&mut self, driver: &mut ProcessDriver) {
        if std::mem::take(&mut self.is_listening)
            && let Some(input) = &self.input
        {
            driver.listen_no_more(input.as_fd());
        }
        self.input = None;
    }

    /// Ends it.
    pub fn close(&mut self, driver: &mut ProcessDriver) {
        self.hang_up(driver);
        leave(driver, &mut self.output);
        leave(driver, &mut self.errors);
    }
}

fn leave(driver: &mut ProcessDriver, slot: &mut Option<io::PipeReader>) {
    if let Some(reader) = slot.take() {
        let fd: BorrowedFd = reader.as_fd();
        driver.listen_no_more(fd);
    }
}

/// One of our own ends: no command gets it, and it never blocks.
fn ours(fd: OwnedFd) -> io::Result<OwnedFd> {
    let fd = ProcessDriver::keep(fd)?;
    let flags = fcntl(&fd, FcntlArg::F_GETFL)?;
    fcntl(&fd, FcntlArg::F_SETFL(OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK))?;
    Ok(fd)
}
