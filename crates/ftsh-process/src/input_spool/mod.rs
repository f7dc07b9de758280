//! Standard input that each attempt reads from its beginning.
//!
//! For a file, the offset is reset. Bytes from a pipe or socket are recorded in a [`Spool`] while
//! they are read. Each reader has a position in the spool, and a pipe fed from there. Descriptor
//! tables hold the input itself; a command that starts from a table receives the pipe instead. The
//! input is thus read only on demand of a command. Once all recorded bytes are consumed, commands
//! read the input directly.

mod feeder;
mod source;
mod spool;

use std::collections::HashMap;
use std::io;

use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{Whence, lseek};

use self::source::SpoolSource;
use self::spool::{RemainingInput, Spool};
use crate::descriptors::{Fd, FdTable};
use crate::events::{Poller, Token};
use crate::fds::{Plan, ReplayedInput};
use crate::paths::FdError;
use ftsh_machine::effect::SpoolId;

/// Base of the poller tokens of inputs and pipes.
pub(crate) const SPOOLS: Token = 1 << 36;

/// Descriptor on which a feeder process finds the recorded bytes.
const AHEAD: u8 = 3;
/// Script of a feeder process.
pub(crate) const FEED: &str = "cat <&3 && exec cat";

/// Bytes read or written at once.
const BLOCK: usize = 64 * 1024;

/// All inputs that attempts read, or that still have recorded bytes.
#[derive(Default)]
pub(crate) struct InputSpools {
    spools: Vec<Spool>,
    attempts: HashMap<SpoolId, AttemptInput>,
    count: Token,
    block: Vec<u8>,
    feeders: Vec<FdTable>,
}

enum AttemptInput {
    /// No input that could be read again.
    Nothing,
    /// A file, read from this offset.
    File { fd: Fd, start: i64, is_kept: bool },
    /// A recorded pipe or socket.
    Spool,
}

impl InputSpools {
    /// Returns an estimate of the number of descriptors in use.
    pub(crate) fn size(&self) -> usize {
        3 * self.spools.len()
    }

    /// True if commands may need pipes.
    pub(crate) fn has_spools(&self) -> bool {
        !self.spools.is_empty()
    }

    fn token(&mut self) -> Token {
        self.count += 1;
        SPOOLS + self.count
    }

    /// Begins an attempt that uses a table. Its input is reset to the position at the first of
    /// these attempts.
    pub(crate) fn begin(&mut self, plan: &mut Plan, poller: &mut Poller) -> Result<(), FdError> {
        for ReplayedInput { replay, input } in std::mem::take(&mut plan.replayed) {
            match self.attempts.get_mut(&replay) {
                Some(AttemptInput::Nothing) => continue,
                Some(AttemptInput::File { fd, start, is_kept }) => {
                    *is_kept = false;
                    lseek(fd, *start, Whence::SeekSet).map_err(|it| FdError::Input(it.into()))?;
                    continue;
                }
                Some(AttemptInput::Spool) => {
                    self.spools.iter_mut().for_each(|spool| spool.rewind(replay, poller));
                }
                None => {
                    let kind = self.classify(replay, input, &plan.table.replays, poller);
                    let is_spooled = matches!(kind, AttemptInput::Spool);
                    self.attempts.insert(replay, kind);
                    if !is_spooled {
                        continue;
                    }
                }
            }
            plan.table.replays.push(replay);
        }
        Ok(())
    }

    fn classify(
        &mut self,
        replay: SpoolId,
        input: Option<Fd>,
        around: &[SpoolId],
        poller: &mut Poller,
    ) -> AttemptInput {
        let Some(fd) = input.filter(Fd::is_readable) else { return AttemptInput::Nothing };
        let Ok(data) = fstat(&fd) else { return AttemptInput::Nothing };
        match SFlag::from_bits_truncate(data.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG | SFlag::S_IFBLK => match lseek(&fd, 0, Whence::SeekCur) {
                Ok(start) => AttemptInput::File { fd, start, is_kept: false },
                Err(_) => AttemptInput::Nothing,
            },
            SFlag::S_IFIFO | SFlag::S_IFSOCK => {
                let Some(source) = SpoolSource::of(&fd) else { return AttemptInput::Nothing };
                let known = |spool: &Spool| spool.source.identity == source.identity;
                let at = self.spools.iter().position(known).unwrap_or_else(|| {
                    self.count += 1;
                    self.spools.push(Spool::new(SPOOLS + self.count, source));
                    self.spools.len() - 1
                });
                self.spools[at].begin(replay, around, poller);
                AttemptInput::Spool
            }
            _ => AttemptInput::Nothing,
        }
    }

    /// Commits the bytes read by an attempt: no later attempt reads them again.
    pub(crate) fn keep(&mut self, replay: SpoolId, poller: &mut Poller) {
        match self.attempts.get_mut(&replay) {
            Some(AttemptInput::File { is_kept, .. }) => *is_kept = true,
            Some(AttemptInput::Spool) => {
                self.spools.iter_mut().for_each(|it| it.keep(replay, poller));
            }
            Some(AttemptInput::Nothing) | None => {}
        }
    }

    /// Returns the offset at which a file is read again if all current attempts fail; none if no
    /// attempt reads the file.
    pub(crate) fn start_of(&self, fd: &Fd) -> Option<u64> {
        let starts = self.attempts.iter().filter_map(|(id, replay)| match replay {
            AttemptInput::File { fd: file, start, is_kept: false } if file.is_same(fd) => {
                Some((*id, start.cast_unsigned()))
            }
            _ => None,
        });
        // The first of these attempts is outside the others.
        starts.min().map(|(_, start)| start)
    }

    /// Ends the attempts of an input.
    pub(crate) fn drop(&mut self, replay: SpoolId, poller: &mut Poller) {
        match self.attempts.remove(&replay) {
            Some(AttemptInput::File { fd, start, is_kept: false }) => {
                let _ = lseek(&fd, start, Whence::SeekSet); // the same call worked before
            }
            Some(AttemptInput::Spool) => {
                self.spools.iter_mut().for_each(|spool| spool.drop(replay, poller));
                self.reconsider(poller);
            }
            Some(AttemptInput::File { .. } | AttemptInput::Nothing) | None => {}
        }
    }

    /// Replaces recorded inputs of a command by pipes. Returns descriptors that the command must
    /// keep to its end.
    pub(crate) fn connect(&mut self, plan: &mut Plan, poller: &mut Poller) -> io::Result<Vec<Fd>> {
        let mut held = Vec::new();
        if self.spools.is_empty() {
            return Ok(held);
        }
        let known = plan.known().map(Option::<&Fd>::cloned);
        for (number, fd) in known.into_iter().enumerate() {
            let Some(fd) = fd else { continue };
            let Some(at) = self.spool_of(&fd) else { continue };
            let token = self.token();
            if let Some(pipe) = self.spools[at].connect(&plan.table.replays, token, poller)? {
                plan.set(number as u8, pipe.clone());
                held.extend([pipe, fd]);
            }
        }
        if !held.is_empty() {
            self.reconsider(poller);
        }
        Ok(held)
    }

    fn spool_of(&self, fd: &Fd) -> Option<usize> {
        let identity = fd.identity()?;
        let at = self.spools.iter().position(|spool| spool.source.identity == identity)?;
        fd.is_readable().then_some(at) // the write end of a pipe is the same file
    }

    /// True if a builtin that uses this table would find the end of its input; none if the input is
    /// not recorded.
    pub(crate) fn has_ended(&mut self, table: &FdTable) -> Option<bool> {
        let at = self.spool_of(table.get(0)?)?;
        self.spools[at].has_ended(&table.replays)
    }

    /// Gives the recorded bytes to a program that replaces the shell. If more may follow, prepares
    /// a feeder process.
    pub(crate) fn hand_over(&mut self, plan: &mut Plan) -> Result<(), FdError> {
        self.feeders.clear();
        self.block.resize(BLOCK, 0);
        let mut given: HashMap<usize, Fd> = HashMap::new();
        let known = plan.known().map(Option::<&Fd>::cloned);
        for (number, fd) in known.into_iter().enumerate() {
            let Some(at) = fd.and_then(|fd| self.spool_of(&fd)) else { continue };
            if let Some(fd) = given.get(&at) {
                plan.set(number as u8, fd.clone());
                continue;
            }
            let rest = self.spools[at].rest(&plan.table.replays, &mut self.block);
            let input = match rest.map_err(FdError::Input)? {
                None => continue,
                Some(RemainingInput { ahead, source: None }) => ahead,
                Some(RemainingInput { ahead, source: Some(source) }) => {
                    let (reader, writer) = io::pipe().map_err(FdError::Pipe)?;
                    let mut feeder = FdTable::default();
                    feeder.set(0, source)?;
                    feeder.set(1, Fd::new(writer.into()).map_err(FdError::Pipe)?)?;
                    feeder.set(AHEAD, ahead)?;
                    self.feeders.push(feeder);
                    Fd::new(reader.into()).map_err(FdError::Pipe)?
                }
            };
            plan.set(number as u8, input.clone());
            given.insert(at, input);
        }
        Ok(())
    }

    /// Returns the tables of feeder processes for the program that replaces the shell.
    pub(crate) fn take_feeders(&mut self) -> Vec<FdTable> {
        std::mem::take(&mut self.feeders)
    }

    /// Handles an event of the poller. Fails if an input ends early.
    pub(crate) fn handle_event(&mut self, token: Token, poller: &mut Poller) -> io::Result<()> {
        self.block.resize(BLOCK, 0);
        match self.spools.iter_mut().find(|spool| spool.has_token(token)) {
            Some(spool) => spool.handle_event(token, &mut self.block, poller),
            None => Ok(()),
        }
    }

    /// Updates all pipes after commands began or ended, or tables were closed.
    pub(crate) fn reconsider(&mut self, poller: &mut Poller) {
        if self.spools.is_empty() {
            return;
        }
        self.block.resize(BLOCK, 0);
        for spool in &mut self.spools {
            spool.feeder(&mut self.block, poller);
        }
        for mut spool in self.spools.extract_if(.., Spool::is_over) {
            spool.end(poller);
        }
        if self.spools.is_empty() {
            self.block = Vec::new();
        }
    }
}
