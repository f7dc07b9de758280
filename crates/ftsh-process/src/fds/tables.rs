//! All that a run holds of descriptors: tables, variables used as files, and pipes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bstr::BString;
use nix::fcntl::OFlag;

use super::super::cleanup::Registry;
use super::buffer::Buffer;
use super::closings::Closings;
use super::draft::Draft;
use super::error::FdError;
use super::held::{Content, HeldOutput};
use super::lines::Lines;
use super::place::Place;
use super::plan::{Plan, Relayed, Replayed, Step};
use super::table::{Fd, FdTable};
use ftsh_machine::effect::{
    BufferId, Directory, DraftId, FdChange, FdSource, IoId, OperationId, PipeId, Umask,
};
use ftsh_machine::size::LONGEST;
use ftsh_sys as sys;

/// What is written to descriptors up to this one is held even where nobody would read it.
pub(super) const HIGHEST_STANDARD: u8 = 2;

/// All tables, buffers and pipes of a run.
pub struct FdTables {
    tables: HashMap<IoId, FdTable>,
    /// The places of tables that hold descriptors of their own.
    holders: BTreeSet<(Place, IoId)>,
    buffers: HashMap<BufferId, Buffer>,
    unmade: HashMap<BufferId, Unmade>,
    /// How far buffers were told of, and what their content was known by there.
    pub(super) told: HashMap<BufferId, (u64, u64)>,
    drafts: HashMap<DraftId, Arc<Draft>>,
    registry: Arc<Registry>,
    pipes: HashMap<PipeId, Ends>,
    null: Option<Fd>,
    gone: Option<Fd>,
    /// What is held of what commands write.
    pub held: HeldOutput,
    /// The pipes whose closings are watched.
    pub closings: Closings,
}

/// What a buffer holds that has no descriptor yet.
pub(super) enum Unmade {
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
    /// Only the descriptors that the shell was started with. What drafts hide is noted in the registry.
    pub fn new(registry: Arc<Registry>) -> Self {
        Self {
            tables: HashMap::from([(IoId::INHERITED, FdTable::inherited())]),
            holders: BTreeSet::new(),
            buffers: HashMap::new(),
            unmade: HashMap::new(),
            told: HashMap::new(),
            drafts: HashMap::new(),
            registry,
            pipes: HashMap::new(),
            null: None,
            gone: None,
            held: HeldOutput::default(),
            closings: Closings::default(),
        }
    }

    /// How many descriptors it may hold, roughly.
    pub fn size(&self) -> usize {
        self.tables.len() + self.buffers.len() + self.held.size() + 2 * self.pipes.len()
    }

    /// The end of a pipe that waits for somebody, if the other one has been taken.
    pub(super) fn waiting_end(&self, id: PipeId) -> Option<&OwnedFd> {
        let ends = self.pipes.get(&id)?;
        ends.reader.as_ref().or(ends.writer.as_ref())
    }

    /// What a buffer holds, if it has no descriptor.
    pub(super) fn unmade(&self, id: BufferId) -> Option<&Unmade> {
        self.unmade.get(&id)
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

    /// An input that somebody else could go on with, and how far it was read.
    pub fn position(&self, io: IoId, descriptor: u8) -> Option<(&Fd, u64)> {
        let fd = self.table(io)?.get(descriptor)?;
        let counts = match fd {
            // Others are different ones at each start.
            Fd::Inherited(fd) => fd.number() == 0,
            Fd::Owned(_) | Fd::Reader(_) => true,
            Fd::Memory(_) | Fd::Null(_) | Fd::Gone(_) => false,
        };
        if counts && fd.is_readable() { Some((fd, fd.position()?)) } else { None }
    }

    /// The place of the first table, in their order, that holds descriptors of its own.
    pub fn first_holder(&self) -> Option<&Place> {
        self.holders.first().map(|(place, _)| place)
    }

    /// Forgets all tables: the shell writes nowhere any more.
    pub fn close_tables(&mut self) {
        self.tables.clear();
        self.holders.clear();
        self.pipes.clear();
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
        let (unmade, before) = (&mut self.unmade, self.buffers.len());
        self.buffers.retain(|id, buffer| {
            let is_needed = !buffer.is_idle()
                || buffer.len() > LONGEST as u64
                || buffer.identity().is_none_or(|it| open.contains(&it));
            if !is_needed && let Ok(content) = buffer.content() {
                unmade.insert(*id, Unmade::Bytes(content));
                return false;
            }
            true
        });
        self.buffers.len() < before
    }

    /// Forgets a buffer; readers and writers that have it open keep it.
    pub fn drop_buffer(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer);
        self.unmade.remove(&buffer);
        self.told.remove(&buffer);
        self.held.drop(buffer);
    }

    /// Takes note of buffers that are to be created later, or never: they have a content now.
    pub fn put_off(&mut self, redirects: &[FdChange]) {
        for FdChange { source, .. } in redirects {
            let (id, content) = match source {
                FdSource::BufferCreate(id, content) => (*id, Unmade::Bytes(content.clone())),
                FdSource::Hold(id) => (*id, Unmade::Bytes(BString::default())),
                FdSource::BufferCopy { buffer, of } => match self.buffers.get(of) {
                    Some(of) => (*buffer, Unmade::Copy(of.clone())),
                    None => continue,
                },
                _ => continue,
            };
            self.unmade.insert(id, content);
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
        for FdChange { source, .. } in &redirects {
            if let FdSource::BufferRead(id)
            | FdSource::BufferAppend(id)
            | FdSource::BufferCopy { of: id, .. } = source
            {
                self.end_hold(*id)?;
            }
        }
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
        let mut plan = Plan {
            table,
            directory: directory.clone(),
            umask,
            steps: Vec::new(),
            relayed: Vec::new(),
            replayed: Vec::new(),
        };
        let mut held = Vec::new();
        for FdChange { descriptor: to, source } in redirects {
            let step = match source {
                FdSource::File { path, access } => Step::Open { to, path, access },
                FdSource::Descriptor(from) => Step::Copy { to, from },
                FdSource::Null => Step::Set(to, self.null()?),
                FdSource::Gone => Step::Set(to, self.gone()?),
                FdSource::Position(position) => Step::Seek(to, position),
                FdSource::BufferRead(id) => match self.text(id) {
                    Some(content) => Step::ReadBytes(to, content.clone()),
                    None => Step::Read(to, self.existing(id)?),
                },
                FdSource::Relay { relay, tag } => {
                    match relayed(&mut plan, relay, to, Some(tag), None)? {
                        Some(writer) => Step::Set(to, writer),
                        None => continue,
                    }
                }
                FdSource::Tee { relay, buffer } => {
                    match relayed(&mut plan, relay, to, None, Some(buffer))? {
                        Some(writer) => Step::Set(to, writer),
                        None => continue,
                    }
                }
                FdSource::BufferAppend(id) => Step::Set(to, self.existing(id)?.writer()),
                FdSource::Draft { draft, path, mode } => {
                    let draft = self.drafts.entry(draft).or_default().clone();
                    Step::Draft { to, path, mode, draft, registry: self.registry.clone() }
                }
                FdSource::Replay(replay) => {
                    let input = plan.known().get(usize::from(to)).copied().flatten().cloned();
                    plan.replayed.push(Replayed { replay, input });
                    continue;
                }
                FdSource::BufferCreate(id, content) => {
                    let buffer = self.create(id)?;
                    plan.write(&buffer, content);
                    Step::Set(to, buffer.writer())
                }
                FdSource::Hold(id) => match self.hold(&plan, to, id, &mut held)? {
                    Some(writer) => Step::Set(to, writer),
                    None => continue,
                },
                FdSource::BufferCopy { buffer, of } => {
                    let to_copy = match self.text(of) {
                        Some(content) => Err(content.clone()),
                        None => Ok(self.existing(of)?),
                    };
                    let buffer = self.create(buffer)?;
                    match to_copy {
                        Err(content) => plan.write(&buffer, content),
                        Ok(from) => {
                            plan.steps.push(Step::CopyBuffer { to: buffer.clone(), from });
                        }
                    }
                    Step::Set(to, buffer.writer())
                }
                FdSource::Bytes(content) => Step::ReadBytes(to, content),
                FdSource::PipeReader(_) | FdSource::PipeWriter(_) => {
                    let end = taken.next().ok_or(FdError::Gone("a pipe's end"))?;
                    Step::Set(to, end?)
                }
            };
            plan.steps.push(step);
        }
        Ok(plan)
    }

    /// What a descriptor that is held writes to, a new pipe or that of another one which leads to the
    /// same file; none if it stays as it is.
    fn hold(
        &mut self,
        plan: &Plan,
        number: u8,
        id: BufferId,
        held: &mut Vec<((u64, u64), Fd)>,
    ) -> Result<Option<Fd>, FdError> {
        // It is read even if it can't be had for writing, or nothing is written to it.
        self.unmade.insert(id, Unmade::Bytes(BString::default()));
        let fd = plan.known().get(usize::from(number)).copied().flatten();
        if number > HIGHEST_STANDARD && !fd.is_some_and(Fd::is_writable) {
            return Ok(None);
        }
        let leads_to = fd.and_then(Fd::identity);
        if let Some((_, writer)) = held.iter().find(|(known, _)| Some(*known) == leads_to) {
            return Ok(Some(writer.clone()));
        }
        let writer = self.held.begin(id).and_then(Fd::new).map_err(FdError::Pipe)?;
        self.unmade.remove(&id);
        held.extend(leads_to.map(|it| (it, writer.clone())));
        Ok(Some(writer))
    }

    /// What is held is a buffer from now on. Nothing that is written later counts.
    pub fn end_hold(&mut self, id: BufferId) -> Result<(), FdError> {
        match self.held.end(id).map_err(FdError::Variable)? {
            None => {}
            Some(Content::Bytes(bytes)) => drop(self.unmade.insert(id, Unmade::Bytes(bytes))),
            Some(Content::File(file)) => {
                let buffer = Buffer::of(file.into()).map_err(FdError::Variable)?;
                self.buffers.insert(id, buffer);
            }
        }
        Ok(())
    }

    /// Drafts, to be settled.
    pub fn drafts(&self, ids: &[DraftId]) -> Vec<Arc<Draft>> {
        ids.iter().filter_map(|id| self.drafts.get(id).cloned()).collect()
    }

    /// A draft that was begun.
    pub(super) fn draft(&self, id: DraftId) -> Option<&Draft> {
        self.drafts.get(&id).map(AsRef::as_ref)
    }

    /// Forgets a draft.
    pub fn drop_draft(&mut self, id: DraftId) {
        self.drafts.remove(&id);
    }

    /// A buffer, if it has come into being.
    pub(super) fn made(&self, id: BufferId) -> Option<&Buffer> {
        self.buffers.get(&id)
    }

    /// The content of a buffer without a descriptor.
    pub fn text(&self, id: BufferId) -> Option<&BString> {
        match self.unmade.get(&id)? {
            Unmade::Bytes(content) => Some(content),
            Unmade::Copy(_) => None,
        }
    }

    /// A buffer.
    pub fn existing(&mut self, id: BufferId) -> Result<Buffer, FdError> {
        if let Some(buffer) = self.buffers.get(&id) {
            return Ok(buffer.clone());
        }
        let unmade = self.unmade.get(&id).ok_or(FdError::Gone("the variable's file"))?;
        let filled = Buffer::of_variable().and_then(|buffer| {
            match unmade {
                Unmade::Bytes(content) => buffer.append(content)?,
                Unmade::Copy(of) => buffer.append_from(of)?,
            }
            Ok(buffer)
        });
        let buffer = filled.map_err(FdError::Variable)?;
        self.unmade.remove(&id);
        self.buffers.insert(id, buffer.clone());
        Ok(buffer)
    }

    /// Adds to a buffer, or makes it.
    pub fn fill(&mut self, id: BufferId, bytes: BString) {
        if self.held.fill(id, &bytes) {
            return;
        }
        if let Some(Unmade::Copy(_)) = self.unmade.get(&id) {
            let _ = self.existing(id);
        }
        if let Some(buffer) = self.buffers.get(&id) {
            if buffer.append(&bytes).is_err() {
                self.drop_buffer(id); // nobody is to take a part of it for all
            }
            return;
        }
        let length = match self.unmade.entry(id).or_insert_with(|| Unmade::Bytes("".into())) {
            Unmade::Bytes(text) if text.is_empty() => {
                *text = bytes;
                text.len()
            }
            Unmade::Bytes(text) => {
                text.extend_from_slice(&bytes);
                text.len()
            }
            Unmade::Copy(_) => return self.drop_buffer(id),
        };
        if length > LONGEST {
            let _ = self.existing(id); // tried again by who wants it
        }
    }

    fn create(&mut self, id: BufferId) -> Result<Buffer, FdError> {
        let buffer = Buffer::of_variable().map_err(FdError::Variable)?;
        self.buffers.insert(id, buffer.clone());
        self.unmade.remove(&id);
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

    fn gone(&mut self) -> Result<Fd, FdError> {
        if let Some(gone) = &self.gone {
            return Ok(gone.clone());
        }
        let gone = Fd::gone().map_err(FdError::NoLonger)?;
        self.gone = Some(gone.clone());
        Ok(gone)
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

/// Makes a pipe into a relay, and returns where to write; none if the descriptor is closed and stays so.
fn relayed(
    plan: &mut Plan,
    relay: OperationId,
    descriptor: u8,
    tag: Option<Arc<BString>>,
    keeps: Option<BufferId>,
) -> Result<Option<Fd>, FdError> {
    if plan.table.get(descriptor).is_none() {
        return Ok(None);
    }
    let (reader, writer) = io::pipe().map_err(FdError::Pipe)?;
    let reader = sys::move_up(reader.into()).map_err(FdError::Pipe)?;
    sys::add_flags(reader.as_fd(), OFlag::O_NONBLOCK).map_err(FdError::Pipe)?;
    plan.relayed.push(Relayed { relay, descriptor, reader, lines: Lines::new(tag), keeps });
    Fd::new(writer.into()).map(Some).map_err(FdError::Pipe)
}
