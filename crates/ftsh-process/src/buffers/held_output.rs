//! Held output: the event loop reads it from a pipe and keeps it in memory, then in an unnamed
//! file.
//!
//! The pipe keeps the order of the output. With a file, a command that opens `/dev/stderr` could
//! overwrite earlier output.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::read;

pub(crate) use super::spilling_log::Content;
use super::spilling_log::SpillingLog;
use crate::events::{Poller, Token};
use ftsh_machine::effect::BufferId;
use ftsh_sys as sys;

/// Base of the poller tokens of pipes.
pub(crate) const HELD: Token = 1 << 37;

/// Bytes read at once.
const BLOCK: usize = 64 * 1024;
/// Largest size of a pipe, unless a privileged process has raised it.
const LARGEST_PIPE: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct HeldOutput {
    pipes: HashMap<Token, HeldPipe>,
    logs: HashMap<BufferId, (Token, SpillingLog)>,
    count: Token,
    /// Pipes not yet added to the poller.
    new: Vec<Token>,
    block: Vec<u8>,
}

/// Pipe that processes may still write to.
struct HeldPipe {
    reader: OwnedFd,
    /// Buffer of the output; none if the output is discarded.
    buffer: Option<BufferId>,
}

impl HeldOutput {
    /// Returns the maximum number of descriptors in use.
    pub(crate) fn size(&self) -> usize {
        2 * self.pipes.len() + self.logs.len()
    }

    /// Begins to hold output. Returns the descriptor for its writers.
    pub(crate) fn begin(&mut self, id: BufferId) -> io::Result<OwnedFd> {
        let (reader, writer) = io::pipe()?;
        let reader = sys::move_up(reader.into())?;
        sys::add_flags(reader.as_fd(), OFlag::O_NONBLOCK)?;
        self.count += 1;
        let token = HELD + self.count;
        self.pipes.insert(token, HeldPipe { reader, buffer: Some(id) });
        self.logs.insert(id, (token, SpillingLog::default()));
        self.new.push(token);
        Ok(writer.into())
    }

    /// Adds new pipes to the poller.
    pub(crate) fn listen(&mut self, poller: &mut Poller) -> io::Result<()> {
        for token in self.new.drain(..) {
            if let Some(pipe) = self.pipes.get(&token) {
                poller.add(pipe.reader.as_fd(), token)?;
            }
        }
        Ok(())
    }

    /// Reads available output.
    pub(crate) fn take_in(&mut self, token: Token, poller: &mut Poller) {
        let Some(pipe) = self.pipes.get(&token) else { return };
        self.block.resize(BLOCK, 0);
        match read(&pipe.reader, &mut self.block) {
            Ok(count) if count > 0 => {
                let spilling_log = pipe.buffer.and_then(|id| self.logs.get_mut(&id));
                if let Some((_, spilling_log)) = spilling_log {
                    spilling_log.append(&self.block[..count]);
                }
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            _ => {
                poller.remove(pipe.reader.as_fd());
                self.pipes.remove(&token);
            }
        }
    }

    /// Reads all output written up to now.
    fn take_in_all(&mut self, id: BufferId) {
        let Some((token, spilling_log)) = self.logs.get_mut(&id) else { return };
        let Some(pipe) = self.pipes.get(token) else { return };
        self.block.resize(BLOCK, 0);
        let mut amount = 0;
        while amount < LARGEST_PIPE {
            match read(&pipe.reader, &mut self.block) {
                Ok(0) | Err(Errno::EAGAIN) => return,
                Ok(count) => {
                    amount += count;
                    spilling_log.append(&self.block[..count]);
                }
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    /// True if the output of a buffer is held.
    pub(crate) fn is_known(&self, id: BufferId) -> bool {
        self.logs.contains_key(&id)
    }

    /// Returns the length of the held output; none if the buffer is unknown.
    pub(crate) fn len(&mut self, id: BufferId) -> Option<u64> {
        self.take_in_all(id);
        self.logs.get(&id).map(|(_, spilling_log)| spilling_log.end())
    }

    /// Appends bytes to the held output. Returns false if the buffer is unknown.
    pub(crate) fn fill(&mut self, id: BufferId, bytes: &[u8]) -> bool {
        self.take_in_all(id);
        let Some((_, spilling_log)) = self.logs.get_mut(&id) else { return false };
        spilling_log.append(bytes);
        true
    }

    /// Returns the content from an offset on.
    pub(crate) fn content_from(&self, id: BufferId, start: u64) -> io::Result<Vec<u8>> {
        let Some((_, spilling_log)) = self.logs.get(&id) else { return Ok(Vec::new()) };
        let mut content = vec![0; spilling_log.end().saturating_sub(start) as usize];
        let mut filled = 0;
        while filled < content.len() {
            match spilling_log.read(start + filled as u64, &mut content[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(content)
    }

    /// Ends the holding of a buffer and returns its content; none if the buffer is unknown.
    pub(crate) fn end(&mut self, id: BufferId) -> io::Result<Option<Content>> {
        self.take_in_all(id);
        let Some((token, spilling_log)) = self.logs.remove(&id) else { return Ok(None) };
        self.leave(token);
        spilling_log.finish().map(Some)
    }

    /// Discards the held output of a buffer, including all later output.
    pub(crate) fn drop(&mut self, id: BufferId) {
        if let Some((token, _)) = self.logs.remove(&id) {
            self.leave(token);
        }
    }

    /// Returns the pipes that processes may still write to.
    pub(crate) fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pipes.values().map(|pipe| pipe.reader.as_fd())
    }

    /// Discards output of a pipe from now on.
    fn leave(&mut self, token: Token) {
        if self.new.contains(&token) {
            self.pipes.remove(&token);
        } else if let Some(pipe) = self.pipes.get_mut(&token) {
            pipe.buffer = None;
        }
    }
}
