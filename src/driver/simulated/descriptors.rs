//! Modelled files, buffers and pipes.

use std::collections::BTreeMap;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use thiserror::Error;

use super::model::Model;
use crate::machine::effect::{Access, BufferId, FdChange, FdSource, IoId, PipeId, Run};

/// Everything descriptors can lead to.
#[derive(Default)]
pub struct Descriptors {
    pub files: BTreeMap<BString, BString>,
    pub stdout: BString,
    pub stderr: BString,
    /// Commands that wait for a pipe's content.
    pub waiting: Vec<Run>,
    buffers: BTreeMap<BufferId, BString>,
    pipes: BTreeMap<PipeId, BString>,
    writers: BTreeMap<PipeId, usize>,
    readers: BTreeMap<PipeId, usize>,
    tables: BTreeMap<IoId, Table>,
    consumed: BTreeMap<IoId, usize>,
    /// Pipes into relays, by their numbers.
    relayed: BTreeMap<usize, Relayed>,
    count: usize,
}

/// What comes through a pipe into a relay.
struct Relayed {
    tag: Arc<BString>,
    /// What it is written on to.
    to: End,
    /// A line that has no end yet.
    line: BString,
    /// The table it was made for.
    io: Option<IoId>,
}

type Table = BTreeMap<u8, End>;

#[derive(Clone)]
enum End {
    Stdout,
    Stderr,
    Null,
    Input(BString),
    BufferIn(BufferId),
    Buffer(BufferId),
    File(BString),
    PipeIn(PipeId),
    PipeOut(PipeId),
    Relay(usize),
}

/// What the modelled world lacks.
#[derive(Debug, Error)]
pub enum Missing {
    /// A file.
    #[error("{0}: no such file")]
    File(BString),
    /// A descriptor.
    #[error("descriptor {0} is not open")]
    Descriptor(u8),
}

impl Descriptors {
    fn table(&self, io: IoId) -> Table {
        let inherited = || BTreeMap::from([(0, End::Null), (1, End::Stdout), (2, End::Stderr)]);
        self.tables.get(&io).cloned().unwrap_or_else(inherited)
    }

    /// Makes a table from another one.
    pub fn open(&mut self, io: IoId, base: IoId, redirects: &[FdChange]) -> Result<(), Missing> {
        let table = self.plumb(self.table(base), redirects)?;
        for end in table.values() {
            match end {
                End::PipeOut(pipe) => *self.writers.entry(*pipe).or_default() += 1,
                End::PipeIn(pipe) => *self.readers.entry(*pipe).or_default() += 1,
                _ => {}
            }
        }
        self.tables.insert(io, table);
        for relayed in self.relayed.values_mut() {
            relayed.io.get_or_insert(io);
        }
        Ok(())
    }

    /// Closes a table; whether that ended what goes into some pipe.
    pub fn close(&mut self, io: IoId) -> bool {
        self.consumed.remove(&io);
        let relayed = std::mem::take(&mut self.relayed).into_iter();
        let (over, rest) = relayed.partition(|(_, relayed)| relayed.io == Some(io));
        self.relayed = rest;
        let over: BTreeMap<usize, Relayed> = over;
        for Relayed { tag, to, line, .. } in over.into_values() {
            if !line.is_empty() {
                self.write(&to, bstr::concat([&tag[..], b"\t", &line[..], b"\n"]).as_bstr());
            }
        }
        let mut ended = false;
        for end in self.tables.remove(&io).unwrap_or_default().values() {
            match end {
                End::PipeOut(pipe) if is_last(&mut self.writers, *pipe) => ended = true,
                End::PipeIn(pipe) if is_last(&mut self.readers, *pipe) => {
                    self.pipes.remove(pipe);
                }
                _ => {}
            }
        }
        ended
    }

    pub fn drop_buffer(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer);
    }

    pub fn buffer(&self, buffer: BufferId) -> BString {
        self.buffers.get(&buffer).cloned().unwrap_or_default()
    }

    fn plumb(&mut self, mut table: Table, redirects: &[FdChange]) -> Result<Table, Missing> {
        for FdChange { descriptor, source } in redirects {
            let end = match source {
                FdSource::File { path, access: Access::Read } => match self.files.get(path) {
                    Some(content) => End::Input(content.clone()),
                    None => return Err(Missing::File(path.clone())),
                },
                FdSource::File { path, access } => {
                    let content = self.files.entry(path.clone()).or_default();
                    if *access == Access::Write {
                        content.clear();
                    }
                    End::File(path.clone())
                }
                FdSource::BufferRead(buffer) => End::BufferIn(*buffer),
                FdSource::BufferCreate(buffer, content) => {
                    self.buffers.insert(*buffer, content.clone());
                    End::Buffer(*buffer)
                }
                FdSource::Hold(buffer) => {
                    self.buffers.entry(*buffer).or_default();
                    End::Buffer(*buffer)
                }
                FdSource::BufferCopy { buffer, of } => {
                    let content = self.buffer(*of);
                    self.buffers.insert(*buffer, content);
                    End::Buffer(*buffer)
                }
                FdSource::Relay { tag, .. } => {
                    let Some(to) = table.get(descriptor).cloned() else { continue };
                    let (tag, number) = (Arc::clone(tag), self.count);
                    let relayed = Relayed { tag, to, line: BString::default(), io: None };
                    self.relayed.insert(number, relayed);
                    self.count += 1;
                    End::Relay(number)
                }
                FdSource::BufferAppend(buffer) => End::Buffer(*buffer),
                FdSource::Draft { path, .. } => return Err(Missing::File(path.clone())),
                FdSource::Replay(_) => continue,
                FdSource::Descriptor(other) => match table.get(other) {
                    Some(end) => end.clone(),
                    None => return Err(Missing::Descriptor(*other)),
                },
                FdSource::Null => End::Null,
                FdSource::Bytes(bytes) => End::Input(bytes.clone()),
                FdSource::PipeReader(pipe) => End::PipeIn(*pipe),
                FdSource::PipeWriter(pipe) => {
                    self.pipes.entry(*pipe).or_default();
                    End::PipeOut(*pipe)
                }
            };
            table.insert(*descriptor, end);
        }
        Ok(table)
    }

    /// The table of a command; its redirections are set up the first time.
    fn of(&mut self, run: &Run) -> Result<Table, Missing> {
        self.plumb(self.table(run.io), &run.redirects)
    }

    /// What a command reads; none while the pipe it reads is still written to.
    pub fn input(&mut self, run: &Run) -> Result<Option<BString>, Missing> {
        if run.redirects.is_empty() && run.io == IoId::INHERITED {
            return Ok(Some(BString::default()));
        }
        let table = self.of(run)?;
        let input = match table.get(&0) {
            Some(End::Input(bytes)) => bytes.clone(),
            Some(End::BufferIn(buffer)) => self.buffer(*buffer),
            Some(End::PipeIn(pipe)) => {
                if self.writers.get(pipe).is_some_and(|writers| *writers > 0) {
                    return Ok(None);
                }
                self.pipes.get(pipe).cloned().unwrap_or_default()
            }
            _ => BString::default(),
        };
        let consumed = self.consumed.get(&run.io).copied().unwrap_or(0);
        Ok(Some(input[consumed.min(input.len())..].into()))
    }

    /// A command has read this much of what it shares with others.
    pub fn consumed(&mut self, run: &Run, bytes: usize) {
        if run.redirects.iter().all(|changes| changes.descriptor != 0) {
            *self.consumed.entry(run.io).or_default() += bytes;
        }
    }

    /// Writes what a command wrote to where its descriptors lead.
    pub fn output(&mut self, run: &Run, model: &Model) {
        if model.output.is_empty() && model.errors.is_empty() {
            return;
        }
        // Its files were emptied when it started.
        let redirects: Vec<FdChange> = run.redirects.iter().cloned().map(reopened).collect();
        let Ok(table) = self.plumb(self.table(run.io), &redirects) else { return };
        for (descriptor, text) in [(1, &model.output), (2, &model.errors)] {
            if let Some(end) = table.get(&descriptor) {
                self.write(end, text.as_bstr());
            }
        }
    }

    fn write(&mut self, end: &End, text: &BStr) {
        let sink = match end {
            End::Stdout => &mut self.stdout,
            End::Stderr => &mut self.stderr,
            End::File(path) => self.files.entry(path.clone()).or_default(),
            End::Buffer(buffer) => self.buffers.entry(*buffer).or_default(),
            End::PipeOut(pipe) => self.pipes.entry(*pipe).or_default(),
            End::Relay(number) => return self.relay(*number, text),
            End::Null | End::Input(_) | End::BufferIn(_) | End::PipeIn(_) => return,
        };
        sink.extend_from_slice(text.as_bytes());
    }

    /// Writes on what are whole lines by now.
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

/// Takes away one of an end's owners; whether it was the last.
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
