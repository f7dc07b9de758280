//! Descriptors of a run: tables, variables used as files, and pipes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bstr::BString;
use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::pipe_watches::PipeWatches;
use super::plan::{Plan, PlanStep, RelayPipe, ReplayedInput};
use crate::buffers::{Content, FileBuffer, HeldOutput, LineAssembler};
use crate::cleanup::Registry;
use crate::descriptors::{Fd, FdTable, TreePosition};
use crate::paths::{FdError, TaskDirectory};
use crate::staged::StagedFile;
use ftsh_machine::effect::{
    BufferId, FdChange, FdSource, IoId, OperationId, PipeId, StagedFileId, Umask,
};
use ftsh_machine::size::MAX_VALUE_LEN;
use ftsh_sys as sys;

/// Highest descriptor whose output is held even if it is not open.
pub(super) const HIGHEST_STANDARD: u8 = 2;

/// All tables, buffers and pipes of a run.
pub(crate) struct FdTables {
    tables: HashMap<IoId, FdTable>,
    /// Positions of tables that hold descriptors of their own.
    holders: BTreeSet<(TreePosition, IoId)>,
    buffers: HashMap<BufferId, FileBuffer>,
    unmade: HashMap<BufferId, PendingContent>,
    /// Reported length of buffers, with a hash of the content before.
    pub(super) reported: HashMap<BufferId, (u64, u64)>,
    staged_files: HashMap<StagedFileId, Arc<StagedFile>>,
    registry: Arc<Registry>,
    pipes: HashMap<PipeId, PipeEnds>,
    null: Option<Fd>,
    gone: Option<Fd>,
    /// Held output of commands.
    pub held: HeldOutput,
    /// Pipes whose closings are watched.
    pub pipe_watches: PipeWatches,
}

/// Content of a buffer that has no file yet.
pub(super) enum PendingContent {
    Bytes(BString),
    /// Copy of another buffer.
    Copy(FileBuffer),
}

/// Ends of a pipe that no table has taken yet.
struct PipeEnds {
    reader: Option<OwnedFd>,
    writer: Option<OwnedFd>,
    /// Error of the creation of the pipe, for the second of its ends.
    error: Option<Errno>,
}

impl From<(io::PipeReader, io::PipeWriter)> for PipeEnds {
    fn from((reader, writer): (io::PipeReader, io::PipeWriter)) -> Self {
        Self { reader: Some(reader.into()), writer: Some(writer.into()), error: None }
    }
}

impl FdTables {
    /// Creates the table of inherited descriptors. Staged files are noted in the registry.
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self {
            tables: HashMap::from([(IoId::INHERITED, FdTable::inherited())]),
            holders: BTreeSet::new(),
            buffers: HashMap::new(),
            unmade: HashMap::new(),
            reported: HashMap::new(),
            staged_files: HashMap::new(),
            registry,
            pipes: HashMap::new(),
            null: None,
            gone: None,
            held: HeldOutput::default(),
            pipe_watches: PipeWatches::default(),
        }
    }

    /// Returns an estimate of the number of descriptors in use.
    pub(crate) fn size(&self) -> usize {
        self.tables.len() + self.buffers.len() + self.held.size() + 2 * self.pipes.len()
    }

    /// Returns the waiting end of a pipe whose other end was taken.
    pub(super) fn waiting_end(&self, id: PipeId) -> Option<&OwnedFd> {
        let ends = self.pipes.get(&id)?;
        ends.reader.as_ref().or(ends.writer.as_ref())
    }

    /// Returns the content of a buffer without a file.
    pub(super) fn unmade(&self, id: BufferId) -> Option<&PendingContent> {
        self.unmade.get(&id)
    }

    /// Returns the position of a table in the tree of structures.
    pub(crate) fn place(&self, io: IoId) -> TreePosition {
        self.table(io).map(|table| table.place.clone()).unwrap_or_default()
    }

    /// Drops the waiting end of a pipe.
    pub(crate) fn drop_pipe(&mut self, id: PipeId) {
        self.pipes.remove(&id);
    }

    pub(crate) fn table(&self, io: IoId) -> Option<&FdTable> {
        self.tables.get(&io)
    }

    /// Returns an input that another process could continue to read, with its offset.
    pub(crate) fn position(&self, io: IoId, descriptor: u8) -> Option<(&Fd, u64)> {
        let fd = self.table(io)?.get(descriptor)?;
        let counts = match fd {
            // Other inherited descriptors may differ at each start.
            Fd::Inherited(fd) => fd.number() == 0,
            Fd::Owned(_) | Fd::Reader(_) => true,
            Fd::Memory(_) | Fd::Null(_) | Fd::Gone(_) => false,
        };
        if counts && fd.is_readable() { Some((fd, fd.position()?)) } else { None }
    }

    /// Returns the position of the first table that holds descriptors of its own.
    pub(crate) fn first_holder(&self) -> Option<&TreePosition> {
        self.holders.first().map(|(place, _)| place)
    }

    /// Drops all tables at the end of the run.
    pub(crate) fn close_tables(&mut self) {
        self.tables.clear();
        self.holders.clear();
        self.pipes.clear();
    }

    pub(crate) fn insert(&mut self, io: IoId, table: FdTable) {
        if table.holds {
            self.holders.insert((table.place.clone(), io));
        }
        self.tables.insert(io, table);
    }

    /// Removes a table. Descriptors are closed when no command uses them.
    pub(crate) fn close(&mut self, io: IoId) {
        if io != IoId::INHERITED
            && let Some(table) = self.tables.remove(&io)
        {
            self.holders.remove(&(table.place, io));
        }
    }

    /// True if a buffer has a file that no command uses.
    pub(crate) fn has_idle(&self) -> bool {
        self.buffers.values().any(FileBuffer::is_idle)
    }

    /// Moves the content of unused buffers into memory and closes their files, except files in
    /// `open`. Returns false if none was closed.
    pub(crate) fn close_unused(&mut self, open: &HashSet<(u64, u64)>) -> bool {
        let (unmade, before) = (&mut self.unmade, self.buffers.len());
        self.buffers.retain(|id, buffer| {
            let is_needed = !buffer.is_idle()
                || buffer.len() > MAX_VALUE_LEN as u64
                || buffer.identity().is_none_or(|it| open.contains(&it));
            if !is_needed && let Ok(content) = buffer.content() {
                unmade.insert(*id, PendingContent::Bytes(content));
                return false;
            }
            true
        });
        self.buffers.len() < before
    }

    /// Removes a buffer. Readers and writers keep its file.
    pub(crate) fn drop_buffer(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer);
        self.unmade.remove(&buffer);
        self.reported.remove(&buffer);
        self.held.drop(buffer);
    }

    /// Records the content of buffers whose redirections are delayed or canceled.
    pub(crate) fn record_contents(&mut self, redirects: &[FdChange]) {
        for FdChange { source, .. } in redirects {
            let (id, content) = match source {
                FdSource::BufferCreate(id, content) => {
                    (*id, PendingContent::Bytes(content.clone()))
                }
                FdSource::Hold(id) => (*id, PendingContent::Bytes(BString::default())),
                FdSource::BufferCopy { buffer, of } => match self.buffers.get(of) {
                    Some(of) => (*buffer, PendingContent::Copy(of.clone())),
                    None => continue,
                },
                _ => continue,
            };
            self.unmade.insert(id, content);
        }
    }

    /// Prepares changes to a table. Creates buffers and pipes now, and files when the plan is
    /// executed.
    pub(crate) fn plan(
        &mut self,
        base: IoId,
        directory: &TaskDirectory,
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
        // Takes the ends of pipes first: after an error they must not stay behind. Held output has a
        // content even if another redirection fails.
        let mut taken = Vec::new();
        for changes in &redirects {
            match changes.source {
                FdSource::Hold(id) => {
                    self.unmade.insert(id, PendingContent::Bytes(BString::default()));
                }
                FdSource::PipeReader(id) => taken.push(self.take_end(id, |ends| &mut ends.reader)),
                FdSource::PipeWriter(id) => taken.push(self.take_end(id, |ends| &mut ends.writer)),
                _ => {}
            }
        }
        let mut taken = taken.into_iter();
        self.held.keep_order();
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
                FdSource::File { path, access } => PlanStep::Open { to, path, access },
                FdSource::Descriptor(from) => PlanStep::Copy { to, from },
                FdSource::Null => PlanStep::Set(to, self.null()?),
                FdSource::Gone => PlanStep::Set(to, self.gone()?),
                FdSource::Position(position) => PlanStep::Seek(to, position),
                FdSource::BufferRead(id) => match self.text(id) {
                    Some(content) => PlanStep::ReadBytes(to, content.clone()),
                    None => PlanStep::Read(to, self.existing(id)?),
                },
                FdSource::Relay { relay, tag } => {
                    match relayed(&mut plan, relay, to, Some(tag), None)? {
                        Some(writer) => PlanStep::Set(to, writer),
                        None => continue,
                    }
                }
                FdSource::Tee { relay, buffer } => {
                    match relayed(&mut plan, relay, to, None, Some(buffer))? {
                        Some(writer) => PlanStep::Set(to, writer),
                        None => continue,
                    }
                }
                FdSource::BufferAppend(id) => PlanStep::Set(to, self.existing(id)?.writer()),
                FdSource::StagedFile { file: draft, path, mode } => {
                    let staged_file = self.staged_files.entry(draft).or_default().clone();
                    PlanStep::StageFile {
                        to,
                        path,
                        mode,
                        staged_file,
                        registry: self.registry.clone(),
                    }
                }
                FdSource::Spool(replay) => {
                    let input = plan.known().get(usize::from(to)).copied().flatten().cloned();
                    plan.replayed.push(ReplayedInput { replay, input });
                    continue;
                }
                FdSource::BufferCreate(id, content) => {
                    let buffer = self.create(id)?;
                    plan.write(&buffer, content);
                    PlanStep::Set(to, buffer.writer())
                }
                FdSource::Hold(id) => match self.hold(&plan, to, id, &mut held)? {
                    Some(writer) => PlanStep::Set(to, writer),
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
                            plan.steps.push(PlanStep::CopyBuffer { to: buffer.clone(), from });
                        }
                    }
                    PlanStep::Set(to, buffer.writer())
                }
                FdSource::Bytes(content) => PlanStep::ReadBytes(to, content),
                FdSource::PipeReader(_) | FdSource::PipeWriter(_) => {
                    let end = taken.next().ok_or(FdError::Gone("a pipe's end"))?;
                    PlanStep::Set(to, end?)
                }
            };
            plan.steps.push(step);
        }
        Ok(plan)
    }

    /// Returns the writer of held output; none if the descriptor stays unchanged. Descriptors with the
    /// same target share a buffer, and also a pipe, except for standard output and standard error.
    fn hold(
        &mut self,
        plan: &Plan,
        number: u8,
        id: BufferId,
        held: &mut Vec<((u64, u64), u8, BufferId, Fd)>,
    ) -> Result<Option<Fd>, FdError> {
        let fd = plan.known().get(usize::from(number)).copied().flatten();
        if number > HIGHEST_STANDARD && !fd.is_some_and(Fd::is_writable) {
            return Ok(None);
        }
        let leads_to = fd.and_then(Fd::identity).map(|it| self.held.target(it));
        let same = held.iter().find(|(known, ..)| Some(*known) == leads_to);
        let writer = match same {
            Some((_, 2, errors, _)) if number == 1 => self.held.begin_beside(*errors, id),
            Some((.., writer)) => return Ok(Some(writer.clone())),
            None => self.held.begin(id),
        };
        let writer = writer.and_then(Fd::new).map_err(FdError::Pipe)?;
        if same.is_none() {
            self.unmade.remove(&id);
            held.extend(leads_to.map(|it| (it, number, id, writer.clone())));
        }
        Ok(Some(writer))
    }

    /// Ends the holding of output and turns its content into a buffer. Later output is discarded.
    pub(crate) fn end_hold(&mut self, id: BufferId) -> Result<(), FdError> {
        match self.held.end(id).map_err(FdError::Variable)? {
            None => {}
            Some(Content::Bytes(bytes)) => {
                drop(self.unmade.insert(id, PendingContent::Bytes(bytes)));
            }
            Some(Content::File(file)) => {
                let buffer = FileBuffer::of(file.into()).map_err(FdError::Variable)?;
                self.buffers.insert(id, buffer);
            }
        }
        Ok(())
    }

    /// Returns the staged files with these ids.
    pub(crate) fn staged_files(&self, ids: &[StagedFileId]) -> Vec<Arc<StagedFile>> {
        ids.iter().filter_map(|id| self.staged_files.get(id).cloned()).collect()
    }

    /// Returns a staged file, if begun.
    pub(super) fn staged_file(&self, id: StagedFileId) -> Option<&StagedFile> {
        self.staged_files.get(&id).map(AsRef::as_ref)
    }

    pub(crate) fn drop_staged_file(&mut self, id: StagedFileId) {
        self.staged_files.remove(&id);
    }

    pub(super) fn made(&self, id: BufferId) -> Option<&FileBuffer> {
        self.buffers.get(&id)
    }

    /// Returns the content of a buffer without a file.
    pub(crate) fn text(&self, id: BufferId) -> Option<&BString> {
        match self.unmade.get(&id)? {
            PendingContent::Bytes(content) => Some(content),
            PendingContent::Copy(_) => None,
        }
    }

    /// Returns a buffer, and creates its file if necessary.
    pub(crate) fn existing(&mut self, id: BufferId) -> Result<FileBuffer, FdError> {
        if let Some(buffer) = self.buffers.get(&id) {
            return Ok(buffer.clone());
        }
        let unmade = self.unmade.get(&id).ok_or(FdError::Gone("the variable's file"))?;
        let filled = FileBuffer::of_variable().and_then(|buffer| {
            match unmade {
                PendingContent::Bytes(content) => buffer.append(content)?,
                PendingContent::Copy(of) => buffer.append_from(of)?,
            }
            Ok(buffer)
        });
        let buffer = filled.map_err(FdError::Variable)?;
        self.unmade.remove(&id);
        self.buffers.insert(id, buffer.clone());
        Ok(buffer)
    }

    /// Appends to a buffer, created if missing.
    pub(crate) fn fill(&mut self, id: BufferId, bytes: BString) {
        if self.held.fill(id, &bytes) {
            return;
        }
        if let Some(PendingContent::Copy(_)) = self.unmade.get(&id) {
            let _ = self.existing(id);
        }
        if let Some(buffer) = self.buffers.get(&id) {
            if buffer.append(&bytes).is_err() {
                self.drop_buffer(id); // a partial content must not look complete
            }
            return;
        }
        let length = match self.unmade.entry(id).or_insert_with(|| PendingContent::Bytes("".into()))
        {
            PendingContent::Bytes(text) if text.is_empty() => {
                *text = bytes;
                text.len()
            }
            PendingContent::Bytes(text) => {
                text.extend_from_slice(&bytes);
                text.len()
            }
            PendingContent::Copy(_) => return self.drop_buffer(id),
        };
        if length > MAX_VALUE_LEN {
            let _ = self.existing(id); // repeated by the reader if it fails
        }
    }

    fn create(&mut self, id: BufferId) -> Result<FileBuffer, FdError> {
        let buffer = FileBuffer::of_variable().map_err(FdError::Variable)?;
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
        which: impl Fn(&mut PipeEnds) -> &mut Option<OwnedFd>,
    ) -> Result<Fd, FdError> {
        let mut ends = match self.pipes.remove(&id) {
            Some(PipeEnds { error: Some(errno), .. }) => return Err(FdError::Pipe(errno.into())),
            Some(ends) => ends,
            None => match io::pipe() {
                Ok(ends) => ends.into(),
                Err(error) => {
                    // A second pipe would have no process at its other end.
                    let errno = Some(Errno::from_raw(error.raw_os_error().unwrap_or_default()));
                    self.pipes.insert(id, PipeEnds { reader: None, writer: None, error: errno });
                    return Err(FdError::Pipe(error));
                }
            },
        };
        let end = which(&mut ends).take();
        if ends.reader.is_some() || ends.writer.is_some() {
            self.pipes.insert(id, ends);
        }
        Fd::new(end.ok_or(FdError::Gone("a pipe's end"))?).map_err(FdError::Pipe)
    }
}

/// Creates a pipe into a relay and returns its writer; none if the descriptor is closed.
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
    plan.relayed.push(RelayPipe {
        relay,
        descriptor,
        reader,
        lines: LineAssembler::new(tag),
        keeps,
    });
    Fd::new(writer.into()).map(Some).map_err(FdError::Pipe)
}
