//! Modelled files, buffers and pipes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use thiserror::Error;

use super::drafts::{Drafts, Files};
use super::inputs::{InputSource, Of, SpooledInputs};
use super::model::Model;
use ftsh_machine::TORN;
use ftsh_machine::effect::{
    Access, BufferId, FdChange, FdSource, IoId, PipeId, Run, Sink, StagedFileId, WordFile,
};
use ftsh_machine::event::Refusal;

/// Targets of all descriptors.
#[derive(Default)]
pub(crate) struct Descriptors {
    pub files: Files,
    pub drafts: Drafts,
    pub replays: SpooledInputs,
    pub stdout: BString,
    pub stderr: BString,
    /// Set when the shell's standard output has no reader.
    pub nobody_reads: bool,
    /// Commands that wait for the content of a pipe.
    pub waiting: Vec<Run>,
    pub(super) buffers: BTreeMap<BufferId, BString>,
    pub(super) pipes: BTreeMap<PipeId, BString>,
    pub(super) writers: BTreeMap<PipeId, usize>,
    pub(super) readers: BTreeMap<PipeId, usize>,
    pub(super) tables: BTreeMap<IoId, Table>,
    /// Dropped buffers that descriptors still lead to.
    dropped: BTreeSet<BufferId>,
    /// Buffers whose content is lost with the shell: outputs of attempts, and copies of a standard
    /// error.
    pub(super) fleeting: BTreeSet<BufferId>,
    pub(super) stdin: Option<Arc<InputSource>>,
    /// Pipes into relays, by their numbers.
    pub(super) relayed: BTreeMap<usize, RelayedPipe>,
    pub(super) count: usize,
}

/// Output through a pipe into a relay.
pub(crate) struct RelayedPipe {
    tag: Arc<BString>,
    /// Target of the relay.
    to: DescriptorTarget,
    /// Incomplete line.
    pub(super) line: BString,
    /// Table that the relay was made for.
    io: Option<IoId>,
}

pub(crate) type Table = BTreeMap<u8, DescriptorTarget>;

/// Target of a descriptor.
#[derive(Clone)]
pub(crate) enum DescriptorTarget {
    Stdout,
    Stderr,
    Null,
    /// No target: a command that uses the descriptor fails.
    Gone(usize),
    Input(Arc<InputSource>),
    Buffer(BufferId),
    File(BString),
    StagedFile(StagedFileId),
    PipeOut(PipeId),
    Relay(usize),
    /// The target, and also a buffer.
    Tee(Box<DescriptorTarget>, BufferId),
}

impl DescriptorTarget {
    /// True if two ends lead to the same target.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Stdout, Self::Stdout)
            | (Self::Stderr, Self::Stderr)
            | (Self::Null, Self::Null) => true,
            (Self::Buffer(a), Self::Buffer(b)) | (Self::Tee(_, a), Self::Tee(_, b)) => a == b,
            (Self::File(a), Self::File(b)) => a == b,
            (Self::StagedFile(a), Self::StagedFile(b)) => a == b,
            (Self::PipeOut(a), Self::PipeOut(b)) => a == b,
            (Self::Relay(a), Self::Relay(b)) | (Self::Gone(a), Self::Gone(b)) => a == b,
            _ => false,
        }
    }

    pub(crate) fn reads(&self) -> Option<PipeId> {
        match self {
            Self::Input(source) => match source.of {
                Of::Pipe(pipe) => Some(pipe),
                Of::Bytes(_) | Of::File(_) | Of::Stdin(_) | Of::Buffer(_) => None,
            },
            _ => None,
        }
    }

    /// Returns the buffer that the end leads to.
    fn buffer(&self) -> Option<BufferId> {
        match self {
            Self::Buffer(buffer) | Self::Tee(_, buffer) => Some(*buffer),
            Self::Input(source) => match source.of {
                Of::Buffer(buffer) => Some(buffer),
                Of::Bytes(_) | Of::File(_) | Of::Stdin(_) | Of::Pipe(_) => None,
            },
            _ => None,
        }
    }
}

/// Part that the modelled world lacks.
#[derive(Debug, Error)]
pub(crate) enum Missing {
    /// A file.
    #[error("{0}: no such file")]
    File(BString),
    /// A directory, in whose place is a file.
    #[error("{0}: not a directory")]
    Directory(BString),
    /// A descriptor.
    #[error("descriptor {0} is not open")]
    Descriptor(u8),
}

impl From<Missing> for Refusal {
    fn from(missing: Missing) -> Self {
        let errno = match &missing {
            Missing::File(_) => Some("ENOENT"),
            Missing::Directory(_) => Some("ENOTDIR"),
            Missing::Descriptor(_) => None,
        };
        Self { message: missing.to_string(), errno: errno.map(Into::into) }
    }
}

impl Descriptors {
    /// Returns the targets of the descriptors of a table; none after the table was closed.
    pub(crate) fn table(&self, io: IoId) -> Table {
        if io == IoId::INHERITED {
            let stdin = self.stdin.clone().map_or(DescriptorTarget::Null, DescriptorTarget::Input);
            return BTreeMap::from([
                (0, stdin),
                (1, DescriptorTarget::Stdout),
                (2, DescriptorTarget::Stderr),
            ]);
        }
        self.tables.get(&io).cloned().unwrap_or_default()
    }

    pub(crate) fn set_stdin(&mut self, content: BString) {
        self.stdin = Some(InputSource::new(Of::Stdin(content)));
    }

    /// Makes a table from another table.
    pub(crate) fn open(
        &mut self,
        io: IoId,
        base: IoId,
        redirects: &[FdChange],
    ) -> Result<(), Missing> {
        let table = self.plumb(self.table(base), redirects)?;
        for end in table.values() {
            if let DescriptorTarget::PipeOut(pipe) = end {
                *self.writers.entry(*pipe).or_default() += 1;
            }
            if let Some(pipe) = end.reads() {
                *self.readers.entry(pipe).or_default() += 1;
            }
        }
        self.tables.insert(io, table);
        for relayed in self.relayed.values_mut() {
            relayed.io.get_or_insert(io);
        }
        Ok(())
    }

    /// Closes a table. Returns true if a pipe lost its last writer.
    pub(crate) fn close(&mut self, io: IoId) -> bool {
        let relayed = std::mem::take(&mut self.relayed).into_iter();
        let (over, rest) = relayed.partition(|(_, relayed)| relayed.io == Some(io));
        self.relayed = rest;
        let over: BTreeMap<usize, RelayedPipe> = over;
        for RelayedPipe { tag, to, line, .. } in over.into_values() {
            if !line.is_empty() {
                self.write(&to, bstr::concat([&tag[..], b"\t", &line[..], b"\n"]).as_bstr());
            }
        }
        let mut ended = false;
        for end in self.tables.remove(&io).unwrap_or_default().values() {
            if let DescriptorTarget::PipeOut(pipe) = end {
                ended |= is_last(&mut self.writers, *pipe);
            }
            if let Some(pipe) = end.reads().filter(|pipe| is_last(&mut self.readers, *pipe)) {
                self.pipes.remove(&pipe);
            }
        }
        if !self.dropped.is_empty() {
            self.forget_dropped();
        }
        ended
    }

    pub(crate) fn drop_buffer(&mut self, buffer: BufferId) {
        self.dropped.insert(buffer);
        self.forget_dropped();
    }

    /// Removes dropped buffers that no descriptor leads to.
    fn forget_dropped(&mut self) {
        let ends = self.tables.values().flat_map(BTreeMap::values);
        let used: BTreeSet<BufferId> = ends.filter_map(DescriptorTarget::buffer).collect();
        let Self { dropped, buffers, fleeting, .. } = self;
        dropped.retain(|buffer| {
            let is_used = used.contains(buffer);
            if !is_used {
                buffers.remove(buffer);
                fleeting.remove(buffer);
            }
            is_used
        });
    }

    /// Appends a line to a file of words if there is one, and returns the whole lines from an offset on.
    pub(crate) fn record(&mut self, path: BString, words: &WordFile) -> BString {
        let content = self.files.entry(path).or_default();
        if let Some(line) = &words.line {
            if content.last().is_some_and(|last| *last != b'\n') {
                content.extend_from_slice(TORN);
                content.push(b'\n');
            }
            content.extend_from_slice(line);
            content.push(b'\n');
        }
        let end = content.rfind_byte(b'\n').map_or(0, |end| end + 1);
        content.get(words.from as usize..end).unwrap_or_default().into()
    }

    /// Appends to a buffer.
    pub(crate) fn fill(&mut self, buffer: BufferId, content: &BStr) {
        self.buffers.entry(buffer).or_default().extend_from_slice(content);
    }

    /// Creates the buffers of redirections that are never set up, with their initial content.
    pub(crate) fn put_off(&mut self, redirects: &[FdChange]) {
        for FdChange { source, .. } in redirects {
            let (buffer, content) = match source {
                FdSource::BufferCreate(buffer, content) => (*buffer, content.clone()),
                FdSource::Hold(buffer) => (*buffer, BString::default()),
                FdSource::BufferCopy { buffer, of } => (*buffer, self.buffer(*of)),
                _ => continue,
            };
            self.buffers.insert(buffer, content);
        }
    }

    /// True if a buffer has content.
    pub(crate) fn is_filled(&self, buffer: BufferId) -> bool {
        self.buffers.get(&buffer).is_some_and(|content| !content.is_empty())
    }

    /// Returns the ends of outputs, in whole lines if possible and at most `most` bytes.
    pub(crate) fn tail(&self, sinks: &[Sink], most: usize) -> BString {
        let mut tail = BString::default();
        let content = |sink: &Sink| match sink {
            Sink::Buffer(buffer) => self.buffers.get(buffer),
            Sink::StagedFile(draft) => self.drafts.held(*draft),
        };
        for content in sinks.iter().filter_map(content) {
            let from = content.len().saturating_sub(most - tail.len());
            let line = content[from..].find_byte(b'\n').filter(|_| from > 0);
            tail.extend_from_slice(&content[from + line.map_or(0, |line| line + 1)..]);
        }
        tail
    }

    /// True if descriptor 0 of a table has no more input.
    pub(crate) fn input_ended(&self, io: IoId) -> bool {
        let Some(DescriptorTarget::Input(source)) = self.table(io).remove(&0) else { return false };
        match &source.of {
            Of::Stdin(content) => source.at() >= content.len(),
            Of::Pipe(pipe) => {
                let length = self.pipes.get(pipe).map_or(0, |content| content.len());
                self.writers.get(pipe).is_none_or(|writers| *writers == 0) && source.at() >= length
            }
            Of::Bytes(_) | Of::File(_) | Of::Buffer(_) => false,
        }
    }

    /// Empties a buffer that is read only by `tail`.
    pub(crate) fn empty_buffer(&mut self, buffer: BufferId) {
        if let Some(content) = self.buffers.get_mut(&buffer) {
            content.clear();
        }
    }

    /// Returns the content of a buffer, if the buffer exists.
    pub(crate) fn content(&self, buffer: BufferId) -> Option<&BString> {
        self.buffers.get(&buffer)
    }

    pub(crate) fn buffer(&self, buffer: BufferId) -> BString {
        self.buffers.get(&buffer).cloned().unwrap_or_default()
    }

    fn plumb(&mut self, mut table: Table, redirects: &[FdChange]) -> Result<Table, Missing> {
        let mut held: Vec<(DescriptorTarget, BufferId)> = Vec::new();
        let is_attempt = redirects.iter().any(|it| matches!(it.source, FdSource::Spool(_)));
        for FdChange { descriptor, source } in redirects {
            let end = match source {
                FdSource::File { path, access: Access::Read } if self.files.contains_key(path) => {
                    DescriptorTarget::Input(InputSource::new(Of::File(path.clone())))
                }
                FdSource::File { path, access: Access::Read } => {
                    return Err(Missing::File(path.clone()));
                }
                FdSource::File { path, access } => {
                    let content = self.files.entry(path.clone()).or_default();
                    if *access == Access::Write {
                        content.clear();
                    }
                    DescriptorTarget::File(path.clone())
                }
                FdSource::BufferRead(buffer) => {
                    DescriptorTarget::Input(InputSource::new(Of::Buffer(*buffer)))
                }
                FdSource::BufferCreate(buffer, content) => {
                    self.buffers.insert(*buffer, content.clone());
                    DescriptorTarget::Buffer(*buffer)
                }
                FdSource::Hold(buffer) => {
                    let before = match table.get(descriptor) {
                        None | Some(DescriptorTarget::Input(_)) if *descriptor > 2 => continue,
                        before => before.cloned().unwrap_or(DescriptorTarget::Null),
                    };
                    let same = held.iter().find(|(end, _)| end.is_same(&before));
                    let into = same.map_or(*buffer, |(_, first)| *first);
                    held.push((before, into));
                    self.buffers.entry(into).or_default();
                    if is_attempt {
                        self.fleeting.insert(into);
                    }
                    DescriptorTarget::Buffer(into)
                }
                FdSource::BufferCopy { buffer, of } => {
                    let content = self.buffer(*of);
                    self.buffers.insert(*buffer, content);
                    DescriptorTarget::Buffer(*buffer)
                }
                FdSource::Relay { tag, .. } => {
                    let Some(to) = table.get(descriptor).cloned() else { continue };
                    let (tag, number) = (Arc::clone(tag), self.count);
                    let relayed = RelayedPipe { tag, to, line: BString::default(), io: None };
                    self.relayed.insert(number, relayed);
                    self.count += 1;
                    DescriptorTarget::Relay(number)
                }
                FdSource::Tee { buffer, .. } => {
                    let Some(to) = table.get(descriptor).cloned() else { continue };
                    self.buffers.entry(*buffer).or_default();
                    self.fleeting.insert(*buffer);
                    DescriptorTarget::Tee(Box::new(to), *buffer)
                }
                FdSource::BufferAppend(buffer) => DescriptorTarget::Buffer(*buffer),
                FdSource::StagedFile { path, .. } if path.starts_with(b"/dev/") => {
                    DescriptorTarget::Null
                }
                FdSource::StagedFile { file: draft, path, mode } => {
                    self.drafts.open(*draft, path, *mode);
                    DescriptorTarget::StagedFile(*draft)
                }
                FdSource::Spool(replay) => {
                    if let Some(DescriptorTarget::Input(source)) = table.get(descriptor) {
                        self.replays.begin(*replay, source);
                    }
                    continue;
                }
                FdSource::Descriptor(other) => match table.get(other) {
                    Some(end) => end.clone(),
                    None => return Err(Missing::Descriptor(*other)),
                },
                FdSource::Null => DescriptorTarget::Null,
                FdSource::Gone => {
                    self.count += 1;
                    DescriptorTarget::Gone(self.count)
                }
                FdSource::Position(at) => {
                    if let Some(DescriptorTarget::Input(source)) = table.get(descriptor) {
                        source.go_to(*at as usize);
                    }
                    continue;
                }
                FdSource::Bytes(bytes) => {
                    DescriptorTarget::Input(InputSource::new(Of::Bytes(bytes.clone())))
                }
                FdSource::PipeReader(pipe) => {
                    DescriptorTarget::Input(InputSource::new(Of::Pipe(*pipe)))
                }
                FdSource::PipeWriter(pipe) => {
                    self.pipes.entry(*pipe).or_default();
                    DescriptorTarget::PipeOut(*pipe)
                }
            };
            table.insert(*descriptor, end);
        }
        Ok(table)
    }

    /// Returns the descriptors of a command, with its redirections set up.
    pub(crate) fn of(&mut self, run: &Run) -> Result<Table, Missing> {
        self.plumb(self.table(run.io), &run.redirects)
    }

    /// True if a descriptor of a command has no target, and its use fails.
    pub(crate) fn is_gone(&mut self, run: &Run, descriptor: u8) -> bool {
        let redirects: Vec<FdChange> = run.redirects.iter().cloned().map(reopened).collect();
        let table = self.plumb(self.table(run.io), &redirects);
        table.is_ok_and(|table| matches!(table.get(&descriptor), Some(DescriptorTarget::Gone(_))))
    }

    /// True if a command writes to an output without a reader. Such an output is a later stage, for
    /// a command that dies of SIGPIPE, or the shell's output in a world without a reader.
    pub(crate) fn is_unread(&mut self, run: &Run) -> bool {
        let table = self.of(run).unwrap_or_default();
        let mut ends = table.iter().filter(|(number, _)| run.feeds & 1 << **number != 0);
        ends.any(|(_, end)| self.is_dead_end(end))
    }

    fn is_dead_end(&self, end: &DescriptorTarget) -> bool {
        match end {
            DescriptorTarget::PipeOut(_) => true,
            DescriptorTarget::Stdout => self.nobody_reads,
            DescriptorTarget::Tee(to, _) => self.is_dead_end(to),
            DescriptorTarget::Relay(number) => {
                self.relayed.get(number).is_some_and(|relayed| self.is_dead_end(&relayed.to))
            }
            _ => false,
        }
    }

    /// Returns the input of a command; none while its pipe has a writer.
    pub(crate) fn input(&mut self, run: &Run) -> Result<Option<BString>, Missing> {
        if run.redirects.is_empty() && run.io == IoId::INHERITED && self.stdin.is_none() {
            return Ok(Some(BString::default()));
        }
        let Some(DescriptorTarget::Input(source)) = self.of(run)?.remove(&0) else {
            return Ok(Some(BString::default()));
        };
        Ok(self.rest(&source))
    }

    /// Reads the remaining input of a descriptor.
    pub(crate) fn read_all(&mut self, io: IoId, number: u8) -> Result<BString, Missing> {
        let end = self.table(io).remove(&number).ok_or(Missing::Descriptor(number))?;
        let DescriptorTarget::Input(source) = end else { return Ok(BString::default()) };
        let rest = self.rest(&source).unwrap_or_default();
        source.go_to(source.at() + rest.len());
        Ok(rest)
    }

    /// Reads the input of descriptor 0 up to a text.
    pub(crate) fn read_word(&mut self, io: IoId, end: &BString) -> Result<BString, Missing> {
        let target = self.table(io).remove(&0).ok_or(Missing::Descriptor(0))?;
        let DescriptorTarget::Input(source) = target else { return Ok(BString::default()) };
        let mut rest = self.rest(&source).unwrap_or_default();
        if let Some(at) = rest.find(&**end) {
            rest.truncate(at + end.len());
        }
        source.go_to(source.at() + rest.len());
        Ok(rest)
    }

    /// Returns the remaining input of a source; none while its pipe has a writer.
    fn rest(&self, source: &InputSource) -> Option<BString> {
        let input = match &source.of {
            Of::Bytes(bytes) | Of::Stdin(bytes) => bytes.clone(),
            Of::File(path) => self.files.get(path).cloned().unwrap_or_default(),
            Of::Buffer(buffer) => self.buffer(*buffer),
            Of::Pipe(pipe) => {
                if self.writers.get(pipe).is_some_and(|writers| *writers > 0) {
                    return None;
                }
                self.pipes.get(pipe).cloned().unwrap_or_default()
            }
        };
        Some(input[source.at().min(input.len())..].into())
    }

    /// Advances a shared input by the bytes that a command has read.
    pub(crate) fn consumed(&mut self, run: &Run, bytes: usize) {
        if run.redirects.iter().all(|changes| changes.descriptor != 0)
            && let Some(DescriptorTarget::Input(source)) = self.table(run.io).get(&0)
        {
            source.go_to(source.at() + bytes);
        }
    }

    /// Writes the output of a command to the targets of its descriptors.
    pub(crate) fn output(&mut self, run: &Run, model: &Model) {
        if model.output.is_empty() && model.errors.is_empty() {
            return;
        }
        // The files were truncated at the start of the command.
        let redirects: Vec<FdChange> = run.redirects.iter().cloned().map(reopened).collect();
        let Ok(table) = self.plumb(self.table(run.io), &redirects) else { return };
        for (descriptor, text) in [(1, &model.output), (2, &model.errors)] {
            if let Some(end) = table.get(&descriptor) {
                self.write(end, text.as_bstr());
            }
        }
    }

    /// Writes to a descriptor of a table, if the descriptor is open.
    pub(crate) fn print(&mut self, io: IoId, descriptor: u8, text: &BStr) {
        if let Some(end) = self.table(io).remove(&descriptor) {
            self.write(&end, text);
        }
    }

    fn write(&mut self, end: &DescriptorTarget, text: &BStr) {
        let sink = match end {
            DescriptorTarget::Stdout => &mut self.stdout,
            DescriptorTarget::Stderr => &mut self.stderr,
            DescriptorTarget::File(path) => self.files.entry(path.clone()).or_default(),
            DescriptorTarget::Buffer(buffer) => self.buffers.entry(*buffer).or_default(),
            DescriptorTarget::PipeOut(pipe) => self.pipes.entry(*pipe).or_default(),
            DescriptorTarget::Relay(number) => return self.relay(*number, text),
            DescriptorTarget::Tee(to, buffer) => {
                self.write(to, text);
                self.buffers.entry(*buffer).or_default()
            }
            DescriptorTarget::StagedFile(draft) => match self.drafts.content(*draft) {
                Some(content) => content,
                None => return,
            },
            DescriptorTarget::Null | DescriptorTarget::Gone(_) | DescriptorTarget::Input(_) => {
                return;
            }
        };
        sink.extend_from_slice(text.as_bytes());
    }

    /// Writes the lines that are complete, each with its tag.
    fn relay(&mut self, number: usize, text: &BStr) {
        let Some(relayed) = self.relayed.get_mut(&number) else { return };
        relayed.line.extend_from_slice(text);
        let whole = relayed.line.rfind_byte(b'\n').map_or(0, |end| end + 1);
        let rest = relayed.line.split_off(whole);
        let lines = std::mem::replace(&mut relayed.line, rest.into());
        let (tag, to) = (Arc::clone(&relayed.tag), relayed.to.clone());
        for line in lines.lines_with_terminator() {
            self.write(&to, bstr::concat([&tag[..], b"\t", line]).as_bstr());
        }
    }
}

/// Removes an owner of a pipe end. Returns true if the owner was the last.
fn is_last(owners: &mut BTreeMap<PipeId, usize>, pipe: PipeId) -> bool {
    let count = owners.get(&pipe).copied().unwrap_or(0);
    if count > 1 {
        owners.insert(pipe, count - 1);
        false
    } else {
        owners.remove(&pipe);
        count == 1
    }
}

fn reopened(changes: FdChange) -> FdChange {
    let source = match changes.source {
        FdSource::File { path, access: Access::Write } => {
            FdSource::File { path, access: Access::Append }
        }
        FdSource::BufferCreate(buffer, _) | FdSource::BufferCopy { buffer, .. } => {
            FdSource::BufferAppend(buffer)
        }
        source => source,
    };
    FdChange { source, ..changes }
}
