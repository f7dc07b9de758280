//! Redirections: from words to plumbing.

use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::Machine;
use super::effect::{Access, BufferId, Effect, IoId, Plumbing, Port};
use super::expand::Halt;
use super::frame::{Frame, FrameKind};
use super::outcome::FailureKind;
use super::step::{Flow, Step};
use super::task::{State, Task};
use super::value::{Handle, Value};
use crate::syntax::ast::{Mode, Name, Redirect, Target};

/// A redirection whose words are expanded.
pub enum Resolved {
    /// To a port that is known by now.
    Port(Port),
    /// From a variable.
    ReadVariable(Name),
    /// To a variable, emptied first or not.
    WriteVariable(Name, Mode),
}

impl Resolved {
    fn read(&self) -> Option<&Name> {
        match self {
            Self::ReadVariable(name) => Some(name),
            _ => None,
        }
    }
}

impl Machine {
    /// Expands the words of redirections; nothing is changed yet.
    pub(super) fn resolve(
        &self,
        task: &Task,
        redirects: &[Redirect],
    ) -> Result<Vec<Resolved>, Halt> {
        let expander = self.expander(task);
        let mut resolved = Vec::with_capacity(redirects.len());
        for redirect in redirects {
            resolved.push(match &redirect.target {
                Target::File(word) => {
                    let access = match redirect.mode {
                        Mode::Read => Access::Read,
                        Mode::Write => Access::Write,
                        Mode::Append => Access::Append,
                    };
                    Resolved::Port(Port::File { path: expander.file(word)?, access })
                }
                Target::Variable(word) => {
                    let name = variable_name(&expander.single(word)?)?;
                    let held = task.variables.get(&name).map(|variable| &variable.value);
                    if redirect.mode != Mode::Write
                        && let Some(error) = held.and_then(Value::too_long)
                    {
                        return Err(Halt::Fail(FailureKind::Redirect, error));
                    }
                    match redirect.mode {
                        Mode::Read => Resolved::ReadVariable(name),
                        mode => Resolved::WriteVariable(name, mode),
                    }
                }
                Target::Descriptor(descriptor) => Resolved::Port(Port::Descriptor(*descriptor)),
                Target::HereDocument { body, .. } => {
                    Resolved::Port(Port::Bytes(expander.joined(body)?))
                }
                Target::HereString(word) => {
                    let mut line = expander.joined(word)?;
                    line.push(b'\n');
                    Resolved::Port(Port::Bytes(line))
                }
            });
        }
        for target in &resolved {
            if let Resolved::ReadVariable(name) = target
                && task.variables.get(name).is_none()
            {
                return Err(Halt::Fail(
                    FailureKind::Redirect,
                    format!("the variable `{name}` is not set, so it can't be read"),
                ));
            }
        }
        Ok(resolved)
    }

    /// Makes plumbing; variables that are written become buffers.
    pub(super) fn plumb(
        &mut self,
        task: &mut Task,
        redirects: &[Redirect],
        resolved: Vec<Resolved>,
    ) -> Vec<Plumbing> {
        let mut plumbing = Vec::with_capacity(resolved.len());
        let read: Vec<Name> = resolved.iter().filter_map(Resolved::read).cloned().collect();
        for (redirect, target) in redirects.iter().zip(resolved) {
            let port = match target {
                Resolved::Port(port) => port,
                Resolved::ReadVariable(name) => read_port(task, &name),
                Resolved::WriteVariable(name, mode) => {
                    self.write_port(task, &name, mode, read.contains(&name))
                }
            };
            plumbing.push(Plumbing { descriptor: redirect.descriptor, port });
            if redirect.with_errors {
                plumbing
                    .push(Plumbing { descriptor: 2, port: Port::Descriptor(redirect.descriptor) });
            }
        }
        plumbing
    }

    /// A command that appends to what it `reads` gets a copy: it would never come to the end.
    fn write_port(&mut self, task: &mut Task, name: &Name, mode: Mode, reads: bool) -> Port {
        let before = task.variables.get(name).map(|variable| variable.value.clone());
        if mode == Mode::Append
            && let Some(Value::Buffer(held)) = task.variables.take(name)
        {
            let id = held.id();
            drop(before);
            if held.is_sole() && !reads {
                task.variables.set(name, Value::Buffer(held));
                return Port::BufferAppend(id);
            }
            return self.new_buffer(task, name, |buffer| Port::BufferCopy { buffer, of: id });
        }
        let before = if mode == Mode::Append { before } else { None };
        match before {
            Some(Value::Buffer(of)) => {
                let of = of.id();
                self.new_buffer(task, name, |buffer| Port::BufferCopy { buffer, of })
            }
            value => {
                let text = value.as_ref().and_then(Value::text).unwrap_or_default().into_owned();
                self.new_buffer(task, name, |buffer| Port::BufferCreate(buffer, text))
            }
        }
    }

    fn new_buffer(
        &mut self,
        task: &mut Task,
        name: &Name,
        port: impl FnOnce(BufferId) -> Port,
    ) -> Port {
        let buffer = BufferId(self.next_id());
        task.variables.set(name, Value::Buffer(Handle::new(buffer, &self.released)));
        port(buffer)
    }

    /// Asks for a table of descriptors; the present instruction starts over when it is there.
    pub(super) fn open(&mut self, task: &Task, redirects: Vec<Plumbing>) -> Flow {
        let operation = self.new_operation(task);
        let handle = self.open_io(task.io.id(), task, operation, redirects);
        Flow::Wait(State::Opening(operation, handle))
    }

    pub(super) fn open_io(
        &mut self,
        base: IoId,
        task: &Task,
        operation: super::effect::OperationId,
        redirects: Vec<Plumbing>,
    ) -> Handle<IoId> {
        let io = IoId(self.next_id());
        let directory = task.directory.clone();
        self.effects.push_back(Effect::Open { operation, io, base, directory, redirects });
        Handle::new(io, &self.released)
    }

    /// Redirections around a block.
    pub(super) fn redirect_block(&mut self, task: &mut Task, redirects: &Arc<[Redirect]>) -> Step {
        match task.opened.take() {
            Some(io) => {
                enter_redirects(task, io);
                task.advance();
                Ok(Flow::Continue)
            }
            None => {
                let resolved = self.resolve(task, redirects)?;
                let plumbing = self.plumb(task, redirects, resolved);
                Ok(self.open(task, plumbing))
            }
        }
    }

    /// Leaves a block's redirections.
    pub(super) fn leave(&mut self, task: &mut Task) {
        if let Some(frame) = task.frames.pop() {
            task.stack.truncate(frame.height);
            self.abandon_frame(task, frame.kind, true);
        }
    }

    /// Leaves the redirections that a command put around its call.
    pub(super) fn leave_redirects_of_call(&mut self, task: &mut Task) {
        if let Some(Frame { kind: FrameKind::Redirected { around_call: true, .. }, .. }) =
            task.frames.last()
        {
            self.leave(task);
        }
    }
}

/// Uses other descriptors for a block.
pub fn enter_redirects(task: &mut Task, io: Handle<IoId>) {
    let before = std::mem::replace(&mut task.io, io);
    task.enter(FrameKind::Redirected { before, around_call: false });
}

fn read_port(task: &Task, name: &Name) -> Port {
    match task.variables.get(name).map(|variable| &variable.value) {
        Some(Value::Buffer(buffer)) => Port::BufferRead(buffer.id()),
        Some(value) => Port::Bytes(value.text().unwrap_or_default().into_owned()),
        None => Port::Null,
    }
}

/// Checks that a word may name a variable.
pub fn variable_name(word: &BString) -> Result<Name, Halt> {
    let valid = word.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    match word.to_str() {
        Ok(name) if valid => Ok(name.into()),
        _ => Err(Halt::expression(format!("`{word}` can't be a variable's name"))),
    }
}
