//! Input that attempts read anew.
//!
//! A file is sought back. What a pipe or a socket brings is kept as it is read, on a [`Tape`]: whoever reads
//! has a place there, and a pipe of its own that is fed from that place on. What tables hold is the input
//! itself; a command that starts from one gets the pipe in its stead. So it is read only while a command
//! wants it, and when all that was read ahead is used up, by no detour.

mod feed;
mod source;
mod tape;

use std::collections::HashMap;
use std::io;

use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{Whence, lseek};

use self::source::Source;
use self::tape::{Rest, Tape};
use super::fds::{Fd, FdError, FdTable, Plan, Replayed};
use super::os::poll::{Poller, Token};
use ftsh_machine::effect::ReplayId;

/// What the poller knows inputs and pipes by is a number plus this.
pub const REPLAYS: Token = 1 << 36;

/// Where who feeds a program finds what was read ahead.
const AHEAD: u8 = 3;
/// What it does.
pub const FEED: &str = "cat <&3 && exec cat";

/// So much is read and written at once.
const BLOCK: usize = 64 * 1024;

/// All inputs that are replayed, or of which something is left.
#[derive(Default)]
pub struct Replays {
    tapes: Vec<Tape>,
    attempts: HashMap<ReplayId, Replay>,
    count: Token,
    block: Vec<u8>,
    feeders: Vec<FdTable>,
}

/// What an attempt reads.
enum Replay {
    /// Nothing that could be read anew.
    Nothing,
    /// A file, from this place.
    File { fd: Fd, start: i64, is_kept: bool },
    /// A tape.
    Tape,
}

impl Replays {
    /// How many descriptors they may hold, roughly.
    pub fn size(&self) -> usize {
        3 * self.tapes.len()
    }

    /// Whether commands may have to be given pipes.
    pub fn has_tapes(&self) -> bool {
        !self.tapes.is_empty()
    }

    fn token(&mut self) -> Token {
        self.count += 1;
        REPLAYS + self.count
    }

    /// An attempt is to begin with a table: its input stands where the first of these attempts found it.
    pub fn begin(&mut self, plan: &mut Plan, poller: &mut Poller) -> Result<(), FdError> {
        for Replayed { replay, input } in std::mem::take(&mut plan.replayed) {
            match self.attempts.get_mut(&replay) {
                Some(Replay::Nothing) => continue,
                Some(Replay::File { fd, start, is_kept }) => {
                    *is_kept = false;
                    lseek(fd, *start, Whence::SeekSet).map_err(|it| FdError::Input(it.into()))?;
                    continue;
                }
                Some(Replay::Tape) => {
                    self.tapes.iter_mut().for_each(|tape| tape.rewind(replay, poller));
                }
                None => {
                    let kind = self.classify(replay, input, &plan.table.replays, poller);
                    let is_tape = matches!(kind, Replay::Tape);
                    self.attempts.insert(replay, kind);
                    if !is_tape {
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
        replay: ReplayId,
        input: Option<Fd>,
        around: &[ReplayId],
        poller: &mut Poller,
    ) -> Replay {
        let Some(fd) = input.filter(Fd::is_readable) else { return Replay::Nothing };
        let Ok(data) = fstat(&fd) else { return Replay::Nothing };
        match SFlag::from_bits_truncate(data.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG | SFlag::S_IFBLK => match lseek(&fd, 0, Whence::SeekCur) {
                Ok(start) => Replay::File { fd, start, is_kept: false },
                Err(_) => Replay::Nothing,
            },
            SFlag::S_IFIFO | SFlag::S_IFSOCK => {
                let Some(source) = Source::of(&fd) else { return Replay::Nothing };
                let known = |tape: &Tape| tape.source.identity == source.identity;
                let at = self.tapes.iter().position(known).unwrap_or_else(|| {
                    self.count += 1;
                    self.tapes.push(Tape::new(REPLAYS + self.count, source));
                    self.tapes.len() - 1
                });
                self.tapes[at].begin(replay, around, poller);
                Replay::Tape
            }
            _ => Replay::Nothing,
        }
    }

    /// What an attempt read is read for good.
    pub fn keep(&mut self, replay: ReplayId, poller: &mut Poller) {
        match self.attempts.get_mut(&replay) {
            Some(Replay::File { is_kept, .. }) => *is_kept = true,
            Some(Replay::Tape) => self.tapes.iter_mut().for_each(|it| it.keep(replay, poller)),
            Some(Replay::Nothing) | None => {}
        }
    }

    /// Where who reads from a file begins anew if all attempts that read from it now come to nothing; none
    /// if there are none.
    pub fn start_of(&self, fd: &Fd) -> Option<u64> {
        let starts = self.attempts.iter().filter_map(|(id, replay)| match replay {
            Replay::File { fd: file, start, is_kept: false } if file.is_same(fd) => {
                Some((*id, start.cast_unsigned()))
            }
            _ => None,
        });
        // The first of them is around the others.
        starts.min().map(|(_, start)| start)
    }

    /// No further attempt comes.
    pub fn drop(&mut self, replay: ReplayId, poller: &mut Poller) {
        match self.attempts.remove(&replay) {
            Some(Replay::File { fd, start, is_kept: false }) => {
                let _ = lseek(&fd, start, Whence::SeekSet); // it worked before
            }
            Some(Replay::Tape) => {
                self.tapes.iter_mut().for_each(|tape| tape.drop(replay, poller));
                self.reconsider(poller);
            }
            Some(Replay::File { .. } | Replay::Nothing) | None => {}
        }
    }

    /// Gives a command pipes for what it would read past its turn. The result is for it to keep to its end.
    pub fn connect(&mut self, plan: &mut Plan, poller: &mut Poller) -> io::Result<Vec<Fd>> {
        let mut held = Vec::new();
        if self.tapes.is_empty() {
            return Ok(held);
        }
        let known = plan.known().map(Option::<&Fd>::cloned);
        for (number, fd) in known.into_iter().enumerate() {
            let Some(fd) = fd else { continue };
            let Some(at) = self.tape_of(&fd) else { continue };
            let token = self.token();
            if let Some(pipe) = self.tapes[at].connect(&plan.table.replays, token, poller)? {
                plan.set(number as u8, pipe.clone());
                held.extend([pipe, fd]);
            }
        }
        if !held.is_empty() {
            self.reconsider(poller);
        }
        Ok(held)
    }

    fn tape_of(&self, fd: &Fd) -> Option<usize> {
        let identity = fd.identity()?;
        let at = self.tapes.iter().position(|tape| tape.source.identity == identity)?;
        fd.is_readable().then_some(at) // the other end of a pipe is the same file
    }

    /// Whether what starts from a table finds the end of its input; none if it isn't known here.
    pub fn has_ended(&mut self, table: &FdTable) -> Option<bool> {
        let at = self.tape_of(table.get(0)?)?;
        self.tapes[at].has_ended(&table.replays)
    }

    /// Gives a program that takes the shell's place what was read past its turn. Where more may come, somebody
    /// has to feed it.
    pub fn hand_over(&mut self, plan: &mut Plan) -> Result<(), FdError> {
        self.feeders.clear();
        self.block.resize(BLOCK, 0);
        let mut given: HashMap<usize, Fd> = HashMap::new();
        let known = plan.known().map(Option::<&Fd>::cloned);
        for (number, fd) in known.into_iter().enumerate() {
            let Some(at) = fd.and_then(|fd| self.tape_of(&fd)) else { continue };
            if let Some(fd) = given.get(&at) {
                plan.set(number as u8, fd.clone());
                continue;
            }
            let rest = self.tapes[at].rest(&plan.table.replays, &mut self.block);
            let input = match rest.map_err(FdError::Input)? {
                None => continue,
                Some(Rest { ahead, source: None }) => ahead,
                Some(Rest { ahead, source: Some(source) }) => {
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

    /// What those have to begin with who feed the program that takes the shell's place.
    pub fn take_feeders(&mut self) -> Vec<FdTable> {
        std::mem::take(&mut self.feeders)
    }

    /// The poller tells of something. An error says why an input ends before its end.
    pub fn go_on(&mut self, token: Token, poller: &mut Poller) -> io::Result<()> {
        self.block.resize(BLOCK, 0);
        match self.tapes.iter_mut().find(|tape| tape.is_meant(token)) {
            Some(tape) => tape.go_on(token, &mut self.block, poller),
            None => Ok(()),
        }
    }

    /// Commands began or ended, or tables were closed.
    pub fn reconsider(&mut self, poller: &mut Poller) {
        if self.tapes.is_empty() {
            return;
        }
        self.block.resize(BLOCK, 0);
        for tape in &mut self.tapes {
            tape.feed(&mut self.block, poller);
        }
        for mut tape in self.tapes.extract_if(.., Tape::is_over) {
            tape.end(poller);
        }
        if self.tapes.is_empty() {
            self.block = Vec::new();
        }
    }
}
