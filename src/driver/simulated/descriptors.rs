//! Modelled files, buffers and pipes.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};
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
        Ok(())
    }

    /// Closes a table; whether that ended what goes into some pipe.
    pub fn close(&mut self, io: IoId) -> bool {
        self.consumed.remove(&io);
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
                FdSource::BufferAppend(buffer) => End::Buffer(*buffer),
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
            let sink = match table.get(&descriptor) {
                Some(End::Stdout) => &mut self.stdout,
                Some(End::Stderr) => &mut self.stderr,
                Some(End::File(path)) => self.files.entry(path.clone()).or_default(),
                Some(End::Buffer(buffer)) => self.buffers.entry(*buffer).or_default(),
                Some(End::PipeOut(pipe)) => self.pipes.entry(*pipe).or_default(),
                _ => continue,
            };
            sink.extend_from_slice(text.as_bytes());
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
