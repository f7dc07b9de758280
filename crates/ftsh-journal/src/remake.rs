//! Effects that restore the world of a run, each after the effects on which they depend.

use std::collections::BTreeSet;

use super::fd_graph::SharedInput;
use super::live_state::{LiveBuffer, LiveState, LiveTable};
use ftsh_machine::Effect;
use ftsh_machine::effect::{Access, BufferId, Directory, FdChange, FdSource, IoId, OperationId};

/// Ids of a temporary table that sets the position of standard input.
const SEEK: (OperationId, IoId) = (OperationId(u64::MAX), IoId(u64::MAX));

impl LiveState {
    /// Returns the effects that restore this state.
    pub(crate) fn remade(&self) -> Vec<Effect> {
        let holding = self.holding();
        let mut effects = self.fills(|id, _| !holding.contains(id));
        effects.extend(self.fd_graph.scopes.nesting().iter().map(|(scope, parent)| {
            // Attempts that hold a pass of a channel are lost.
            Effect::OpenScope { scope, parent, pass: None }
        }));
        effects.extend(self.seek());
        self.open(&mut effects);
        effects.extend(self.fills(|id, buffer| holding.contains(id) && !buffer.content.is_empty()));
        let closed = self.tables.iter().filter(|(_, table)| table.is_closed);
        effects.extend(closed.map(|(io, _)| Effect::CloseIo(*io)));
        let dropped = self.buffers.iter().filter(|(_, buffer)| buffer.is_dropped);
        effects.extend(dropped.map(|(id, _)| Effect::DropBuffer(*id)));
        let abandoned = self.relays.iter().filter(|(_, relay)| relay.is_abandoned);
        effects.extend(abandoned.map(|(operation, _)| Effect::Abandon(*operation)));
        effects
    }

    fn fills(&self, which: impl Fn(&BufferId, &LiveBuffer) -> bool) -> Vec<Effect> {
        let filled = self.buffers.iter().filter(|(id, buffer)| which(id, buffer));
        filled.map(|(id, buffer)| Effect::Fill(*id, buffer.content.clone())).collect()
    }

    /// Returns the effects that set the position of the shell's standard input.
    fn seek(&self) -> Vec<Effect> {
        let Some(at) = self.positions.get(&SharedInput::STANDARD) else { return Vec::new() };
        let (operation, io) = SEEK;
        let redirects = vec![FdChange { descriptor: 0, source: FdSource::Position(*at) }];
        let (base, directory, umask) = (IoId::INHERITED, Directory::default(), None);
        let open = Effect::Open { operation, io, base, directory, umask, redirects };
        vec![open, Effect::CloseIo(io)]
    }

    /// Appends the effects that open tables and relays.
    ///
    /// Each needs only older tables, but tables may lead into younger relays.
    fn open(&self, effects: &mut Vec<Effect>) {
        let mut begun = BTreeSet::new();
        for (number, (io, table)) in self.tables.iter().enumerate() {
            for (operation, relay) in &self.relays {
                let leads_there = |it: &FdChange| matches!(&it.source, FdSource::Relay { relay, .. } | FdSource::Tee { relay, .. } if relay == operation);
                if table.changes.iter().any(leads_there) && begun.insert(*operation) {
                    effects.push(Effect::Relay { operation: *operation, io: relay.io });
                }
            }
            effects.push(Effect::Open {
                // Only the recorder waits for the answer.
                operation: OperationId(SEEK.0.0 - 1 - number as u64),
                io: *io,
                base: table.base,
                directory: table.directory.clone(),
                umask: table.umask,
                redirects: self.changes(*io, table),
            });
        }
        for (operation, relay) in self.relays.iter().filter(|(id, _)| !begun.contains(id)) {
            effects.push(Effect::Relay { operation: *operation, io: relay.io });
        }
    }

    fn changes(&self, io: IoId, table: &LiveTable) -> Vec<FdChange> {
        let mut changes = Vec::with_capacity(table.changes.len() + 1);
        for (change, FdChange { descriptor, source }) in table.changes.iter().enumerate() {
            let descriptor = *descriptor;
            let source = match source {
                FdSource::File { path, access: Access::Write } => {
                    FdSource::File { path: path.clone(), access: Access::Append }
                }
                FdSource::BufferCreate(buffer, _) | FdSource::BufferCopy { buffer, .. } => {
                    FdSource::BufferAppend(*buffer)
                }
                FdSource::PipeReader(_) | FdSource::PipeWriter(_) => FdSource::Gone,
                FdSource::Relay { relay, .. } | FdSource::Tee { relay, .. }
                    if !self.relays.contains_key(relay) =>
                {
                    FdSource::Gone
                }
                // Output of a lost attempt is dropped, and its input is read again.
                FdSource::StagedFile { .. } => FdSource::Null,
                FdSource::Spool(_) => continue,
                source => source.clone(),
            };
            changes.push(FdChange { descriptor, source });
            let input = SharedInput { io, change: change as u32 };
            if let Some(at) = self.positions.get(&input).filter(|at| **at > 0) {
                changes.push(FdChange { descriptor, source: FdSource::Position(*at) });
            }
        }
        changes
    }
}

/// Returns the changes with all files replaced by closed descriptors.
pub(crate) fn without_files(redirects: &[FdChange]) -> Vec<FdChange> {
    let gone = |change: &FdChange| match change.source {
        FdSource::File { .. } => FdChange { descriptor: change.descriptor, source: FdSource::Gone },
        _ => change.clone(),
    };
    redirects.iter().map(gone).collect()
}
