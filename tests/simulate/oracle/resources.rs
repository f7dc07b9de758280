//! Names used by the machine exist: none is used before its creation, after its end, or twice. All
//! are gone at the end.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::effect::{
    BufferId, FdChange, FdSource, IoId, OperationId, PipeId, ProcessId, Query, Run, ScopeId,
};
use ftsh_machine::{Effect, Event, Time};

use super::{Oracle, Verdict};

#[derive(Default)]
pub(super) struct Resources {
    ios: BTreeSet<IoId>,
    buffers: BTreeSet<BufferId>,
    dropped: BTreeSet<BufferId>,
    operations: BTreeSet<OperationId>,
    asked: BTreeSet<OperationId>,
    processes: BTreeSet<ProcessId>,
    /// Open scopes, each with the enclosing one.
    scopes: BTreeMap<ScopeId, ScopeId>,
    ending: BTreeSet<ScopeId>,
    /// Scopes that were terminated.
    terminated: BTreeSet<ScopeId>,
    readers: BTreeSet<PipeId>,
    writers: BTreeSet<PipeId>,
}

fn demand(truth: bool, what: impl FnOnce() -> String) -> Verdict {
    if truth { Ok(()) } else { Err(what()) }
}

impl Resources {
    fn changes(&mut self, redirects: &[FdChange]) -> Verdict {
        for FdChange { source, .. } in redirects {
            match source {
                FdSource::BufferRead(buffer) | FdSource::BufferAppend(buffer) => {
                    self.buffer(*buffer)?;
                }
                FdSource::BufferCopy { buffer, of } => {
                    self.buffer(*of)?;
                    demand(self.buffers.insert(*buffer), || format!("{buffer:?} is made twice"))?;
                }
                FdSource::BufferCreate(buffer, _) | FdSource::Hold(buffer) => {
                    demand(self.buffers.insert(*buffer), || format!("{buffer:?} is made twice"))?;
                }
                FdSource::PipeReader(pipe) => {
                    demand(self.readers.insert(*pipe), || format!("{pipe:?} is read twice"))?;
                }
                FdSource::PipeWriter(pipe) => {
                    demand(self.writers.insert(*pipe), || format!("{pipe:?} is written twice"))?;
                }
                FdSource::Tee { relay, buffer } => {
                    demand(self.operations.contains(relay), || format!("{relay:?} isn't there"))?;
                    demand(self.buffers.insert(*buffer), || format!("{buffer:?} is made twice"))?;
                }
                FdSource::Relay { relay, .. } => {
                    demand(self.operations.contains(relay), || format!("{relay:?} isn't there"))?;
                }
                FdSource::StagedFile { .. }
                | FdSource::Spool(_)
                | FdSource::File { .. }
                | FdSource::Descriptor(_)
                | FdSource::Null
                | FdSource::Gone
                | FdSource::Position(_)
                | FdSource::Bytes(_) => {}
            }
        }
        Ok(())
    }

    fn buffer(&self, buffer: BufferId) -> Verdict {
        demand(self.buffers.contains(&buffer), || format!("{buffer:?} isn't there"))
    }

    fn io(&self, io: IoId) -> Verdict {
        demand(io == IoId::INHERITED || self.ios.contains(&io), || format!("{io:?} isn't there"))
    }

    /// Returns a scope that processes may start in.
    fn scope(&self, scope: ScopeId) -> Verdict {
        let known = scope == ScopeId::SCRIPT || self.scopes.contains_key(&scope);
        demand(known, || format!("{scope:?} isn't there"))?;
        let up = |scope: &ScopeId| self.scopes.get(scope).copied();
        let mut around = std::iter::successors(Some(scope), up);
        demand(!around.any(|outer| self.ending.contains(&outer)), || {
            format!("{scope:?} is being ended")
        })
    }

    fn run(&mut self, run: &Run) -> Verdict {
        demand(self.processes.insert(run.process), || format!("{:?} twice", run.process))?;
        self.scope(run.scope)?;
        self.io(run.io)?;
        self.changes(&run.redirects)
    }

    fn operation(&mut self, operation: OperationId) -> Verdict {
        self.operations.insert(operation);
        demand(self.asked.insert(operation), || format!("{operation:?} twice"))
    }

    /// Handles the end of a scope with its inner scopes.
    fn close_scope(&mut self, scope: ScopeId) {
        let mut gone = vec![scope];
        while let Some(scope) = gone.pop() {
            self.scopes.remove(&scope);
            self.ending.remove(&scope);
            gone.extend(self.scopes.iter().filter(|it| *it.1 == scope).map(|(inner, _)| *inner));
        }
    }
}

impl Oracle for Resources {
    fn name(&self) -> &'static str {
        "resources"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::Run(run) | Effect::Exec(run) => self.run(run),
            Effect::Open { operation, io, base, redirects, .. } => {
                self.operation(*operation)?;
                self.io(*base)?;
                demand(self.ios.insert(*io), || format!("{io:?} is made twice"))?;
                self.changes(redirects)
            }
            Effect::Query { operation, query, .. } => {
                self.operation(*operation)?;
                match query {
                    Query::Buffer(buffer) => self.buffer(*buffer),
                    _ => Ok(()),
                }
            }
            Effect::BeginView(begin) => self.operation(begin.operation),
            Effect::Relay { operation, io } => {
                self.operation(*operation)?;
                self.io(*io)
            }
            Effect::FinishRelay(operation) => {
                demand(self.operations.contains(operation), || format!("{operation:?} isn't there"))
            }
            // The answer may be late.
            Effect::Abandon(operation) => {
                self.operations.remove(operation);
                demand(self.asked.contains(operation), || format!("{operation:?} isn't there"))
            }
            Effect::OpenScope { scope, parent, .. } => {
                self.scope(*parent)?;
                let new = self.scopes.insert(*scope, *parent).is_none();
                demand(new, || format!("{scope:?} is opened twice"))
            }
            Effect::SetSignal(scope, _) | Effect::Escalate(scope) => {
                let known = *scope == ScopeId::SCRIPT || self.scopes.contains_key(scope);
                // The end of a scope may be noticed late.
                let known = known || self.terminated.contains(scope);
                demand(known, || format!("{scope:?} gets a signal, but isn't there"))
            }
            Effect::Terminate(scope) => {
                let known = *scope == ScopeId::SCRIPT || self.scopes.contains_key(scope);
                self.ending.insert(*scope);
                self.terminated.insert(*scope);
                demand(known, || format!("{scope:?} is ended, but isn't there"))
            }
            // The end of a scope may be noticed late.
            Effect::Kill { scope, .. } => demand(self.terminated.contains(scope), || {
                format!("{scope:?} is killed, but was not terminated")
            }),
            Effect::HandOver { scope, into } => {
                self.scope(*scope)?;
                self.scope(*into)?;
                self.close_scope(*scope);
                Ok(())
            }
            Effect::CloseIo(io) => {
                demand(self.ios.remove(io), || format!("{io:?} is closed, but isn't there"))
            }
            Effect::ForgetOutput(buffer) => self.buffer(*buffer),
            // Its creation may have failed before.
            Effect::DropBuffer(buffer) => {
                self.buffers.remove(buffer);
                demand(self.dropped.insert(*buffer), || format!("{buffer:?} is dropped twice"))
            }
            Effect::Commit { operation, .. } | Effect::CommitView { operation, .. } => {
                self.operation(*operation)
            }
            Effect::Enter(entry) => self.operation(entry.operation),
            Effect::Dispatch(branch) => {
                self.scope(branch.scope)?;
                self.io(branch.io)
            }
            Effect::DropStagedFile(_)
            | Effect::KeepInput(_)
            | Effect::DropSpool(_)
            | Effect::DropScratch(_)
            | Effect::DropView(_)
            | Effect::Leave(..)
            | Effect::Fill(..)
            | Effect::RecordDurations(..)
            | Effect::Watch { .. }
            | Effect::Log(_) => Ok(()),
        }
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        match event {
            Event::Done { operation, .. } => {
                self.operations.remove(operation);
            }
            Event::Emptied { scope } => self.close_scope(*scope),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Verdict {
        for (left, what) in [
            (!self.ios.is_empty(), format!("{:?}", self.ios)),
            (!self.buffers.is_empty(), format!("{:?}", self.buffers)),
            (!self.operations.is_empty(), format!("{:?}", self.operations)),
            (!self.scopes.is_empty(), format!("{:?}", self.scopes)),
        ] {
            demand(!left, || format!("{what} at the end"))?;
        }
        demand(self.readers == self.writers, || "a pipe with one end".into())
    }
}
