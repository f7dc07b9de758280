//! Redirections: conversion of words to changes of descriptors.

use std::sync::Arc;

use bstr::BString;

use super::CommandRunner;
use crate::atomic::Committer;
use crate::core::{Flow, Step};
use crate::effect::{BufferId, FdChange, FdSource};
use crate::eval::{Expander, resolve_redirects};
use crate::frames::FrameKind;
use crate::invocation::{Opening, RedirectPhase, RedirectTarget, Resolved, WrittenVariable};
use crate::size;
use crate::tasks::{Task, TaskState};
use crate::transactions::Transaction;
use crate::values::{Suspend, Value};
use ftsh_syntax::ast::{Mode, Name, Redirect};

impl CommandRunner<'_> {
    /// Takes the next redirections of the current instruction, up to the next written variable.
    /// That variable changes when these redirections are set up. Later redirections may fail
    /// without reverting the change.
    pub(crate) fn next_phase(&mut self, task: &mut Task) -> RedirectPhase {
        let mut changes = Vec::with_capacity(task.redirects().map_or(0, |it| it.pending.len()));
        let mut written = None;
        while written.is_none()
            && let Some(Resolved { descriptor, with_errors, target }) =
                task.redirects().and_then(|redirects| redirects.pending.pop_front())
        {
            let source = match target {
                RedirectTarget::FdSource(source) => source,
                RedirectTarget::ReadVariable(name) => read_port(task, &name),
                RedirectTarget::WriteVariable(name, mode) => {
                    let opens = |done: &FdChange| matches!(done.source, FdSource::File { .. });
                    let waits = changes.iter().any(opens);
                    let (source, change) = self.write_port(task, name, mode, waits);
                    written = change;
                    source
                }
            };
            changes.push(FdChange { descriptor, source });
            if with_errors {
                changes.push(FdChange { descriptor: 2, source: FdSource::Descriptor(descriptor) });
            }
        }
        RedirectPhase { changes, written }
    }

    /// Returns the source for a written variable. Appending copies the buffer if the command also
    /// reads it, or another task shares it.
    fn write_port(
        &mut self,
        task: &mut Task,
        name: Name,
        mode: Mode,
        waits: bool,
    ) -> (FdSource, Option<WrittenVariable>) {
        if mode == Mode::Append
            && let Some(Value::Buffer(held)) = task.variables.own(&name)
            && held.is_unique()
        {
            let (id, same) = (held.id(), Value::Buffer(held.clone()));
            task.variables.set(&name, same); // invalidates a kept environment
            return (FdSource::BufferAppend(id), None);
        }
        let buffer = self.core.new_handle(BufferId);
        let before = task.variables.get(&name).map(|variable| &variable.value);
        let source = match before.filter(|_| mode == Mode::Append) {
            Some(Value::Buffer(of)) => FdSource::BufferCopy { buffer: buffer.id(), of: of.id() },
            value => {
                let text = value.and_then(Value::text).unwrap_or_default().into_owned();
                FdSource::BufferCreate(buffer.id(), text)
            }
        };
        (source, Some(WrittenVariable { name, buffer, waits }))
    }

    /// Requests a table of descriptors. The current instruction starts over when the table exists.
    pub(crate) fn open(&mut self, task: &Task, phase: RedirectPhase) -> Flow {
        let base = task.opened().unwrap_or(&task.io);
        let (operation, io) = self.core.open_io(base, task, phase.changes);
        Flow::Wait(TaskState::Opening(Opening { operation, io, written: phase.written }))
    }

    /// Replaces the buffer on top of the stack by its text.
    pub(crate) fn output_text(&self, task: &mut Task) -> Result<(), Suspend> {
        let text = match task.stack.last() {
            Some(value) => size::copy(&Expander::new(self.core, task).text(value)?)?,
            None => return Err(Suspend::Broken("the output of a command is missing")),
        };
        self.core.scheduler().handle(text.len());
        task.stack.pop();
        task.stack.push(Value::from(text));
        Ok(())
    }

    /// Begins a command whose standard output goes into a new buffer on the stack.
    pub(crate) fn begin_output(&mut self, task: &mut Task) -> Flow {
        if task.opened().is_none() {
            let buffer = self.core.new_handle(BufferId);
            let source = FdSource::BufferCreate(buffer.id(), BString::default());
            task.stack.push(Value::Buffer(buffer));
            let changes = vec![FdChange { descriptor: 1, source }];
            return self.open(task, RedirectPhase { changes, written: None });
        }
        enter_redirects(task, false);
        task.advance();
        Flow::Continue
    }

    /// Begins redirections around a block.
    pub(crate) fn redirect_block(&mut self, task: &mut Task, redirects: &Arc<[Redirect]>) -> Step {
        if task.opened().is_none() {
            task.progress().redirects = resolve_redirects(self.core, task, redirects)?;
            Committer::new(self.core).draft_files(task);
        }
        if task.opened().is_none() || task.is_to_redirect() {
            let phase = self.next_phase(task);
            return Ok(self.open(task, phase));
        }
        enter_redirects(task, false);
        task.advance();
        Ok(Flow::Continue)
    }
}

/// Switches to the descriptors opened for a block or a call.
pub(crate) fn enter_redirects(task: &mut Task, around_call: bool) {
    if let Some(io) = task.take_opened() {
        let before = std::mem::replace(&mut task.io, io);
        let drafts = task.redirects().map(|it| std::mem::take(&mut it.drafts)).unwrap_or_default();
        task.enter(if drafts.is_empty() {
            FrameKind::Redirected { before, around_call }
        } else {
            FrameKind::Transaction(Box::new(Transaction::redirected(before, around_call, drafts)))
        });
    }
}

fn read_port(task: &mut Task, name: &Name) -> FdSource {
    match task.variables.get(name).map(|variable| &variable.value) {
        Some(Value::Buffer(buffer)) => {
            let buffer = buffer.clone();
            let id = buffer.id();
            task.progress().redirects.read.push(buffer);
            FdSource::BufferRead(id)
        }
        Some(value) => FdSource::Bytes(value.text().unwrap_or_default().into_owned()),
        None => FdSource::Null,
    }
}
