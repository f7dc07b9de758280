//! All that a run holds of descriptors: tables, variables used as files, and pipes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bstr::BString;
use nix::fcntl::OFlag;

use super::super::sys;
use super::buffer::Buffer;
use super::error::FdError;
use super::lines::Lines;
use super::place::Place;
use super::plan::{Plan, Relayed, SMALL, Step};
use super::table::{Fd, FdTable};
use crate::machine::effect::{BufferId, Directory, FdChange, FdSource, IoId, PipeId, Umask};
use crate::machine::size::LONGEST;

/// All tables, buffers and pipes of a run.
pub struct FdTables {
    tables: HashMap<IoId, FdTable>,
    /// The places of tables that hold descriptors of their own.
    holders: BTreeSet<(Place, IoId)>,
    buffers: HashMap<BufferId, Buffer>,
    drafts: HashMap<BufferId, Draft>,
    pipes: HashMap<PipeId, Ends>,
    null: Option<Fd>,
}

/// What a buffer holds that has no descriptor yet.
pub(super) enum Draft {
    /// This.
    Bytes(BString),
    /// What another one holds.
    Copy(Buffer),
}

/// The ends of a pipe that nobody has taken yet.
struct Ends {
    reader: Option<OwnedFd>,
    writer: Option<OwnedFd>,
}

impl From<(io::PipeReader, io::PipeWriter)> for Ends {
    fn from((reader, writer): (io::PipeReader, io::PipeWriter)) -> Self {
        Self { reader: Some(reader.into()), writer: Some(writer.into()) }
    }
}

impl FdTables {
    /// Only the descriptors that the shell was started with.
    pub fn new() -> Self {
        Self {
            tables: HashMap::from([(IoId::INHERITED, FdTable::inherited())]),
            holders: BTreeSet::new(),
            buffers: HashMap::new(),
            drafts: HashMap::new(),
            pipes: HashMap::new(),
            null: None,
        }
    }

    /// How many descriptors it may hold, roughly.
    pub fn size(&self) -> usize {
        self.tables.len() + self.buffers.len() + 2 * self.pipes.len()
    }

    /// The end of a pipe that waits for somebody, if the other one has been taken.
    pub(super) fn waiting_end(&self, id: PipeId) -> Option<&OwnedFd> {
        let ends = self.pipes.get(&id)?;
        ends.reader.as_ref().or(ends.writer.as_ref())
    }

    /// What a buffer holds, if it has no descriptor.
    pub(super) fn draft_of(&self, id: BufferId) -> Option<&Draft> {
        self.drafts.get(&id)
    }

    /// Where a table is.
    pub fn place(&self, io: IoId) -> Place {
        self.table(io).map(|table| table.place.clone()).unwrap_or_default()
    }

    /// Forgets the end of a pipe that nobody will take any more.
    pub fn drop_pipe(&mut self, id: PipeId) {
        self.pipes.remove(&id);
    }

    /// A table.
    pub fn table(&self, io: IoId) -> Option<&FdTable> {
        self.tables.get(&io)
    }

    /// The place of the first table, in their order, that holds descriptors of its own.
    pub fn first_holder(&self) -> Option<&Place> {
        self.holders.first().map(|(place, _)| place)
    }

    /// Keeps a table.
    pub fn insert(&mut self, io: IoId, table: FdTable) {
        if table.holds {
            self.holders.insert((table.place.clone(), io));
        }
        self.tables.insert(io, table);
    }

    /// Forgets a table; what it held open is closed when no command uses it any more.
    pub fn close(&mut self, io: IoId) {
        if io != IoId::INHERITED
            && let Some(table) = self.tables.remove(&io)
        {
            self.holders.remove(&(table.place, io));
        }
    }

    /// Whether there are variables that hold a descriptor without need, as far as the shell knows.
    pub fn has_idle(&self) -> bool {
        self.buffers.values().any(Buffer::is_idle)
    }

    /// Keeps the content of variables without a descriptor where no command may write to them any
    /// more, unless the file is among those that others have `open`; false if that is none.
    pub fn put_away(&mut self, open: &HashSet<(u64, u64)>) -> bool {
        let (drafts, before) = (&mut self.drafts, self.buffers.len());
        self.buffers.retain(|id, buffer| {
            let is_needed = !buffer.is_idle()
                || buffer.len() > LONGEST as u64
                || buffer.identity().is_none_or(|it| open.contains(&it));
            if !is_needed && let Ok(content) = buffer.content() {
                drafts.insert(*id, Draft::Bytes(content));
                return false;
            }
            true
        });
        self.buffers.len() < before
    }

    /// Forgets a buffer; readers and writers that have it open keep it.
    pub fn drop_buffer(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer);
        self.drafts.remove(&buffer);
    }

    /// Takes note of buffers that are to be created later, or never: they have a content now.
    pub fn draft(&mut self, redirects: &[FdChange]) {
        for FdChange { source, .. } in redirects {
            let (id, draft) = match source {
                FdSource::BufferCreate(id, content) => (*id, Draft::Bytes(content.clone())),
                FdSource::Hold(id) => (*id, Draft::Bytes(BString::default())),
                FdSource::BufferCopy { buffer, of } => match self.buffers.get(of) {
                    Some(of) => (*buffer, Draft::Copy(of.clone())),
                    None => continue,
                },
                _ => continue,
            };
            self.drafts.insert(id, draft);
        }
    }

    /// Prepares changes to a table. Buffers and pipes come into being here, files when the plan
    /// is carried out.
    pub fn plan(
        &mut self,
        base: IoId,
        directory: &Directory,
        umask: Umask,
        redirects: Vec<FdChange>,
    ) -> Result<Plan, FdError> {
        // Ends of pipes first: they must not stay behind when something else fails.
        let mut taken = Vec::new();
        for changes in &redirects {
            match changes.source {
                FdSource::PipeReader(id) => taken.push(self.take_end(id, |ends| &mut ends.reader)),
                FdSource::PipeWriter(id) => taken.push(self.take_end(id, |ends| &mut ends.writer)),
                _ => {}
            }
        }
        let mut taken = taken.into_iter();
        let table = self.tables.get(&base).ok_or(FdError::Gone("a table of descriptors"))?.clone();
        let (directory, steps, relayed) = (directory.clone(), Vec::new(), Vec::new());
        let mut plan = Plan { table, directory, umask, steps, blocking: false, relayed };
        for FdChange { descriptor: to, source } in redirects {
            let step = match source {
                FdSource::File { path, access } => {
                    plan.blocking = true;
                    Step::Open { to, path, access }
                }
                FdSource::Descriptor(from) => Step::Copy { to, from },
                FdSource::Null => Step::Set(to, self.null()?),
                FdSource::BufferRead(id) => match self.text(id) {
                    Some(content) => plan.bytes(to, content.clone()),
                    None => Step::Read(to, self.existing(id)?),
                },
                FdSource::Relay { relay, tag } => {
                    if plan.table.get(to).is_none() {
                        continue; // it stays closed
                    }
                    let (reader, writer) = io::pipe().map_err(FdError::Pipe)?;
                    let reader = sys::move_up(reader.into()).map_err(FdError::Pipe)?;
                    sys::add_flags(reader.as_fd(), OFlag::O_NONBLOCK).map_err(FdError::Pipe)?;
                    let lines = Lines::new(tag);
                    plan.relayed.push(Relayed { relay, descriptor: to, reader, lines });
                    Step::Set(to, Fd::new(writer.into()).map_err(FdError::Pipe)?)
                }
                FdSource::BufferAppend(id) => Step::Set(to, self.existing(id)?.writer()),
                FdSource::Draft { .. } => return Err(FdError::Gone("a draft")),
                FdSource::Replay(_) => continue,
                FdSource::BufferCreate(id, content) => {
                    let buffer = self.create(id)?;
                    plan.write(&buffer, content);
                    Step::Set(to, buffer.writer())
                }
                FdSource::Hold(id) => {
                    // It is read even if it can't be had for writing.
                    self.drafts.insert(id, Draft::Bytes(BString::default()));
                    let buffer = Buffer::large().map_err(FdError::Variable)?;
                    self.drafts.remove(&id);
                    let writer = buffer.writer();
                    self.buffers.insert(id, buffer);
                    Step::Set(to, writer)
                }
                FdSource::BufferCopy { buffer, of } => {
                    let to_copy = match self.text(of) {
                        Some(content) => Err(content.clone()),
                        None => Ok(self.existing(of)?),
                    };
                    let buffer = self.create(buffer)?;
                    match to_copy {
                        Err(content) => plan.write(&buffer, content),
                        Ok(from) => {
                            plan.blocking |= from.len() > SMALL as u64;
                            plan.steps.push(Step::CopyBuffer { to: buffer.clone(), from });
                        }
                    }
                    Step::Set(to, buffer.writer())
                }
                FdSource::Bytes(content) => plan.bytes(to, content),
                FdSource::PipeReader(_) | FdSource::PipeWriter(_) => {
                    let end = taken.next().ok_or(FdError::Gone("a pipe's end"))?;
                    Step::Set(to, end?)
                }
            };
            plan.steps.push(step);
        }
        Ok(plan)
    }

    /// The content of a buffer without a descriptor.
    pub fn text(&self, id: BufferId) -> Option<&BString> {
        match self.drafts.get(&id)? {
            Draft::Bytes(content) => Some(content),
            Draft::Copy(_) => None,
        }
    }

    /// A buffer.
    pub fn existing(&mut self, id: BufferId) -> Result<Buffer, FdError> {
        if let Some(buffer) = self.buffers.get(&id) {
            return Ok(buffer.clone());
        }
        let draft = self.drafts.get(&id).ok_or(FdError::Gone("the variable's file"))?;
        let filled = Buffer::new().and_then(|buffer| {
            match draft {
                Draft::Bytes(content) => buffer.append(content)?,
                Draft::Copy(of) => buffer.append_from(of)?,
            }
            Ok(buffer)
        });
        let buffer = filled.map_err(FdError::Variable)?;
        self.drafts.remove(&id);
        self.buffers.insert(id, buffer.clone());
        Ok(buffer)
    }

    fn create(&mut self, id: BufferId) -> Result<Buffer, FdError> {
        let buffer = Buffer::new().map_err(FdError::Variable)?;
        self.buffers.insert(id, buffer.clone());
        self.drafts.remove(&id);
        Ok(buffer)
    }

    fn null(&mut self) -> Result<Fd, FdError> {
        if let Some(null) = &self.null {
            return Ok(null.clone());
        }
        let null = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .and_then(|file| sys::move_up(file.into()))
            .map(|fd| Fd::Null(Arc::new(fd)))
            .map_err(FdError::Null)?;
        self.null = Some(null.clone());
        Ok(null)
    }

    fn take_end(
        &mut self,
        id: PipeId,
        which: impl Fn(&mut Ends) -> &mut Option<OwnedFd>,
    ) -> Result<Fd, FdError> {
        let mut ends = match self.pipes.remove(&id) {
            Some(ends) => ends,
            None => io::pipe().map(Ends::from).map_err(FdError::Pipe)?,
        };
        let end = which(&mut ends).take();
        if ends.reader.is_some() || ends.writer.is_some() {
            self.pipes.insert(id, ends);
        }
        Fd::new(end.ok_or(FdError::Gone("a pipe's end"))?).map_err(FdError::Pipe)
    }
}
