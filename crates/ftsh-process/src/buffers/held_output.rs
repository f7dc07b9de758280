//! Held output: the event loop reads it from a pipe and keeps it in memory, then in an unnamed
//! file.
//!
//! With a file, a command that opens `/dev/stderr` could overwrite earlier output.
//!
//! Standard output and standard error that lead to one file have a pipe each and one content, in
//! the order of arrival. The last bytes of each are also kept alone, so that a long output cannot
//! hide the reason of a failure.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::fstat;
use nix::unistd::read;

pub(crate) use super::spilling_log::Content;
use super::spilling_log::SpillingLog;
use crate::events::{Poller, Token};
use ftsh_machine::effect::BufferId;
use ftsh_machine::size::MAX_REPORTED_OUTPUT;
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
    logs: HashMap<BufferId, HeldLog>,
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
    /// Device and inode.
    identity: Option<(u64, u64)>,
}

/// Output of a buffer.
struct HeldLog {
    log: SpillingLog,
    /// Pipe of standard error, or of all output.
    pipe: Token,
    /// Standard output with the same target.
    beside: Option<JoinedOutput>,
}

/// Standard output whose content is in the buffer of standard error.
struct JoinedOutput {
    /// Buffer of standard output, which stays empty.
    buffer: BufferId,
    pipe: Token,
    /// Last bytes of standard output and of standard error.
    output: SpillingLog,
    errors: SpillingLog,
}

impl HeldLog {
    /// Appends bytes from a pipe.
    fn append(&mut self, token: Token, bytes: &[u8]) {
        self.log.append(bytes);
        if let Some(JoinedOutput { pipe, output, errors, .. }) = &mut self.beside {
            let end = if token == *pipe { output } else { errors };
            end.append(bytes);
            // The byte before shows whether a line begins there.
            end.forget_before(end.end().saturating_sub(MAX_REPORTED_OUTPUT as u64 + 1));
        }
    }

    /// Returns the pipes; standard output first, because reasons come last.
    fn pipes(&self) -> impl Iterator<Item = Token> + use<> {
        self.beside.as_ref().map(|beside| beside.pipe).into_iter().chain([self.pipe])
    }
}

impl HeldOutput {
    /// Returns the maximum number of descriptors in use.
    pub(crate) fn size(&self) -> usize {
        2 * self.pipes.len() + self.logs.len()
    }

    /// Begins to hold output. Returns the descriptor for its writers.
    pub(crate) fn begin(&mut self, id: BufferId) -> io::Result<OwnedFd> {
        let (pipe, writer) = self.new_pipe(id)?;
        self.logs.insert(id, HeldLog { log: SpillingLog::default(), pipe, beside: None });
        Ok(writer)
    }

    /// Begins to hold standard output together with the standard error held in a buffer. Returns the
    /// descriptor for its writers.
    pub(crate) fn begin_beside(&mut self, errors: BufferId, id: BufferId) -> io::Result<OwnedFd> {
        let (pipe, writer) = self.new_pipe(errors)?;
        if let Some(held) = self.logs.get_mut(&errors) {
            let (output, errors) = Default::default();
            held.beside = Some(JoinedOutput { buffer: id, pipe, output, errors });
        }
        Ok(writer)
    }

    fn new_pipe(&mut self, id: BufferId) -> io::Result<(Token, OwnedFd)> {
        let (reader, writer) = io::pipe()?;
        let reader = sys::move_up(reader.into())?;
        sys::add_flags(reader.as_fd(), OFlag::O_NONBLOCK)?;
        let identity = fstat(&reader).ok().map(|data| (data.st_dev, data.st_ino));
        self.count += 1;
        let token = HELD + self.count;
        self.pipes.insert(token, HeldPipe { reader, buffer: Some(id), identity });
        self.new.push(token);
        Ok((token, writer.into()))
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
                if let Some(held) = pipe.buffer.and_then(|id| self.logs.get_mut(&id)) {
                    held.append(token, &self.block[..count]);
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
        let Some(held) = self.logs.get_mut(&id) else { return };
        self.block.resize(BLOCK, 0);
        for token in held.pipes() {
            let Some(pipe) = self.pipes.get(&token) else { continue };
            let mut amount = 0;
            while amount < LARGEST_PIPE {
                match read(&pipe.reader, &mut self.block) {
                    Ok(count) if count > 0 => {
                        amount += count;
                        held.append(token, &self.block[..count]);
                    }
                    Err(Errno::EINTR) => {}
                    _ => break,
                }
            }
        }
    }

    /// Reads output from pairs of pipes, so that output of an earlier command comes before output of
    /// the next one.
    pub(crate) fn keep_order(&mut self) {
        let pairs = self.logs.iter().filter(|(_, held)| held.beside.is_some());
        for id in pairs.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.take_in_all(id);
        }
    }

    /// True if the output of a buffer is held.
    pub(crate) fn is_known(&self, id: BufferId) -> bool {
        self.logs.contains_key(&id)
    }

    /// Returns the length of the held output; none if the buffer is unknown.
    pub(crate) fn len(&mut self, id: BufferId) -> Option<u64> {
        self.take_in_all(id);
        self.logs.get(&id).map(|held| held.log.end())
    }

    /// Returns the last bytes of standard error or standard output if both have one content.
    pub(crate) fn end_of_stream(&mut self, id: BufferId) -> Option<&SpillingLog> {
        let beside = |held: &HeldLog| held.beside.as_ref().map(|it| it.buffer);
        let of_output = self.logs.iter().find(|(_, held)| beside(held) == Some(id));
        let errors = of_output.map_or(id, |(errors, _)| *errors);
        self.take_in_all(errors);
        let beside = self.logs.get(&errors)?.beside.as_ref()?;
        Some(if id == errors { &beside.errors } else { &beside.output })
    }

    /// Returns the same identity for pipes whose output comes into one buffer.
    pub(crate) fn target(&self, identity: (u64, u64)) -> (u64, u64) {
        let pair = |held: &HeldLog| held.beside.as_ref().map(|it| [it.pipe, held.pipe]);
        let of = |token: &Token| self.pipes.get(token)?.identity;
        let mut pairs = self.logs.values().filter_map(pair);
        let same = pairs.find(|pair| pair.iter().any(|it| of(it) == Some(identity)));
        same.and_then(|[_, errors]| of(&errors)).unwrap_or(identity)
    }

    /// Appends bytes to the held output. Returns false if the buffer is unknown.
    pub(crate) fn fill(&mut self, id: BufferId, bytes: &[u8]) -> bool {
        self.take_in_all(id);
        let Some(held) = self.logs.get_mut(&id) else { return false };
        held.log.append(bytes);
        true
    }

    /// Returns the content from an offset on.
    pub(crate) fn content_from(&self, id: BufferId, start: u64) -> io::Result<Vec<u8>> {
        self.logs.get(&id).map_or(Ok(Vec::new()), |held| held.log.content_from(start))
    }

    /// Ends the holding of a buffer and returns its content; none if the buffer is unknown.
    pub(crate) fn end(&mut self, id: BufferId) -> io::Result<Option<Content>> {
        self.take_in_all(id);
        self.remove(id).map(SpillingLog::finish).transpose()
    }

    /// Discards the held output of a buffer, including all later output.
    pub(crate) fn drop(&mut self, id: BufferId) {
        self.remove(id);
    }

    fn remove(&mut self, id: BufferId) -> Option<SpillingLog> {
        let held = self.logs.remove(&id)?;
        for token in held.pipes() {
            self.leave(token);
        }
        Some(held.log)
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
