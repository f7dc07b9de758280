//! State that a shell leaves at the end of a process, and the initial state of the next process.

use std::collections::BTreeMap;
use std::io;

use super::Simulated;
use super::descriptors::{DescriptorTarget, Descriptors};
use super::inputs::Of;
use super::shell::Shell;
use bstr::BString;
use ftsh_machine::driver::{BufferPart, Durable};
use ftsh_machine::effect::{BufferId, IoId, ProcessId, Run, ViewId};

impl Shell {
    /// True if a command runs.
    pub fn runs(&self, process: ProcessId) -> bool {
        let is_it = |run: &Run| run.process == process;
        self.processes.get(&process).is_some_and(|it| it.run.as_ref().is_some_and(is_it))
            || self.descriptors.waiting.iter().any(is_it)
    }

    /// True if a running command has consumed shared input.
    pub fn is_reading(&self) -> bool {
        self.processes.values().any(|it| it.run.is_some() && it.model.consumes)
    }

    /// Returns the position of a descriptor.
    pub fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        if io != IoId::INHERITED && !self.descriptors.tables.contains_key(&io) {
            return None;
        }
        match self.descriptors.table(io).get(&descriptor)? {
            DescriptorTarget::Input(source) if !matches!(source.of, Of::Pipe(_)) => {
                Some(source.at() as u64)
            }
            _ => None,
        }
    }

    /// Returns the content of a buffer from an offset on.
    pub fn written(&self, buffer: BufferId, from: u64) -> Option<BufferPart> {
        let content = self.descriptors.content(buffer)?;
        let is_known = |from: &usize| *from <= content.len();
        let from = usize::try_from(from).ok().filter(is_known).unwrap_or(0);
        Some(BufferPart { from: from as u64, bytes: content[from..].into() })
    }

    /// True if a view was committed.
    pub fn take_over_view(&self, view: ViewId) -> bool {
        self.committed_views.contains(&view)
    }

    /// Kills all processes of the shell, and drops their state: pipes, uncommitted output of
    /// attempts, and consumed input.
    pub fn end_processes(&mut self) {
        self.processes.clear();
        self.terminating.clear();
        self.events.clear();
        self.descriptors.lose();
    }

    /// Creates the next shell, with the same files, the same standard input and the same outputs.
    #[must_use]
    pub fn successor(&mut self) -> Self {
        self.end_processes();
        let Descriptors { files, stdin, stdout, stderr, .. } =
            std::mem::take(&mut self.descriptors);
        let mut successor = Self::default();
        successor.durations = std::mem::take(&mut self.durations);
        successor.committed_views = std::mem::take(&mut self.committed_views);
        let there = &mut successor.descriptors;
        (there.files, there.stdin, there.stdout, there.stderr) = (files, stdin, stdout, stderr);
        successor
    }
}

impl Descriptors {
    /// Drops the state of processes and attempts.
    fn lose(&mut self) {
        self.waiting.clear();
        self.replays.end_all();
        self.drafts.forget_all(&mut self.files);
        for buffer in &self.fleeting {
            self.buffers.entry(*buffer).and_modify(|content| content.clear());
        }
        for relayed in self.relayed.values_mut() {
            relayed.line.clear();
        }
        // Descriptors that shared the end of a pipe still share an end.
        let mut gone = BTreeMap::new();
        for end in self.tables.values_mut().flat_map(BTreeMap::values_mut) {
            let pipe = match (&*end, end.reads()) {
                (DescriptorTarget::PipeOut(pipe), _) => (*pipe, true),
                (DescriptorTarget::Tee(to, _), _) => match **to {
                    DescriptorTarget::PipeOut(pipe) => (pipe, true),
                    _ => continue,
                },
                (_, Some(pipe)) => (pipe, false),
                (DescriptorTarget::StagedFile(_), _) => {
                    *end = DescriptorTarget::Null;
                    continue;
                }
                _ => continue,
            };
            let count = &mut self.count;
            let number = gone.entry(pipe).or_insert_with(|| {
                *count += 1;
                *count
            });
            *end = DescriptorTarget::Gone(*number);
        }
        self.pipes.clear();
        self.writers.clear();
        self.readers.clear();
    }
}

impl Durable for Simulated {
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        self.shell.position(io, descriptor)
    }

    fn written(&mut self, buffer: BufferId, from: u64) -> io::Result<Option<BufferPart>> {
        Ok(self.shell.written(buffer, from))
    }

    fn take_over_view(&mut self, view: ViewId, _directories: &[BString]) -> io::Result<bool> {
        Ok(self.shell.take_over_view(view))
    }
}
