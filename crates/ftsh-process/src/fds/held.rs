//! Output that is held: it goes through a pipe, which the loop empties into memory and then a file without
//! a name.
//!
//! So what is said stays in order, and a command that opens `/dev/stderr` anew can't cut off what was said
//! before, as it could with a file.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::read;

use super::super::os::poll::{Poller, Token};
pub use super::log::Content;
use super::log::Log;
use ftsh_machine::effect::BufferId;
use ftsh_sys as sys;

/// What the poller knows a pipe by is its number plus this.
pub const HELD: Token = 1 << 37;

/// So much is read at once.
const BLOCK: usize = 64 * 1024;
/// No pipe holds more, unless a privileged process asked for it.
const LARGEST_PIPE: usize = 1 << 20;

/// All that is held.
#[derive(Default)]
pub struct HeldOutput {
    pipes: HashMap<Token, Pipe>,
    logs: HashMap<BufferId, (Token, Log)>,
    count: Token,
    /// Pipes that the poller doesn't know yet.
    new: Vec<Token>,
    block: Vec<u8>,
}

/// A pipe that somebody may still write to.
struct Pipe {
    reader: OwnedFd,
    /// Whose it is; what comes when it is nobody's is lost.
    buffer: Option<BufferId>,
}

impl HeldOutput {
    /// How many descriptors it may hold.
    pub fn size(&self) -> usize {
        2 * self.pipes.len() + self.logs.len()
    }

    /// Begins to hold; the result is where to write.
    pub fn begin(&mut self, id: BufferId) -> io::Result<OwnedFd> {
        let (reader, writer) = io::pipe()?;
        let reader = sys::move_up(reader.into())?;
        sys::add_flags(reader.as_fd(), OFlag::O_NONBLOCK)?;
        self.count += 1;
        let token = HELD + self.count;
        self.pipes.insert(token, Pipe { reader, buffer: Some(id) });
        self.logs.insert(id, (token, Log::default()));
        self.new.push(token);
        Ok(writer.into())
    }

    /// Has the poller tell of what comes.
    pub fn listen(&mut self, poller: &mut Poller) -> io::Result<()> {
        for token in self.new.drain(..) {
            if let Some(pipe) = self.pipes.get(&token) {
                poller.add(pipe.reader.as_fd(), token)?;
            }
        }
        Ok(())
    }

    /// Something has come.
    pub fn take_in(&mut self, token: Token, poller: &mut Poller) {
        let Some(pipe) = self.pipes.get(&token) else { return };
        self.block.resize(BLOCK, 0);
        match read(&pipe.reader, &mut self.block) {
            Ok(count) if count > 0 => {
                let log = pipe.buffer.and_then(|id| self.logs.get_mut(&id));
                if let Some((_, log)) = log {
                    log.append(&self.block[..count]);
                }
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            _ => {
                poller.remove(pipe.reader.as_fd());
                self.pipes.remove(&token);
            }
        }
    }

    /// Takes in what has come until now.
    fn take_in_all(&mut self, id: BufferId) {
        let Some((token, log)) = self.logs.get_mut(&id) else { return };
        let Some(pipe) = self.pipes.get(token) else { return };
        self.block.resize(BLOCK, 0);
        let mut amount = 0;
        while amount < LARGEST_PIPE {
            match read(&pipe.reader, &mut self.block) {
                Ok(0) | Err(Errno::EAGAIN) => return,
                Ok(count) => {
                    amount += count;
                    log.append(&self.block[..count]);
                }
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Whether it is held.
    pub fn is_known(&self, id: BufferId) -> bool {
        self.logs.contains_key(&id)
    }

    /// How much there is; none if it isn't held.
    pub fn len(&mut self, id: BufferId) -> Option<u64> {
        self.take_in_all(id);
        self.logs.get(&id).map(|(_, log)| log.end())
    }

    /// Adds something to what has come until now; false if it isn't held.
    pub fn fill(&mut self, id: BufferId, bytes: &[u8]) -> bool {
        self.take_in_all(id);
        let Some((_, log)) = self.logs.get_mut(&id) else { return false };
        log.append(bytes);
        true
    }

    /// All from a place on.
    pub fn content_from(&self, id: BufferId, start: u64) -> io::Result<Vec<u8>> {
        let Some((_, log)) = self.logs.get(&id) else { return Ok(Vec::new()) };
        let mut content = vec![0; log.end().saturating_sub(start) as usize];
        let mut filled = 0;
        while filled < content.len() {
            match log.read(start + filled as u64, &mut content[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(content)
    }

    /// All of it, which isn't held any more; none if it wasn't.
    pub fn end(&mut self, id: BufferId) -> io::Result<Option<Content>> {
        self.take_in_all(id);
        let Some((token, log)) = self.logs.remove(&id) else { return Ok(None) };
        self.leave(token);
        log.finish().map(Some)
    }

    /// Forgets it. Who still writes to the pipe writes to nobody.
    pub fn drop(&mut self, id: BufferId) {
        if let Some((token, _)) = self.logs.remove(&id) {
            self.leave(token);
        }
    }

    /// Returns the pipes that somebody may still write to.
    pub fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pipes.values().map(|pipe| pipe.reader.as_fd())
    }

    /// Nobody wants what comes through a pipe from now on.
    fn leave(&mut self, token: Token) {
        if self.new.contains(&token) {
            self.pipes.remove(&token);
        } else if let Some(pipe) = self.pipes.get_mut(&token) {
            pipe.buffer = None;
        }
    }
}
