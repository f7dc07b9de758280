//! State of the world of a run: tables, relays, buffers, positions of inputs.
//!
//! Another process has to restore this state to continue the run. The state is derived from effects
//! and events alone; nothing is performed here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bstr::BString;

use super::fd_graph::{FdGraph, SharedInput};
use super::read::NoMemory;
use ftsh_machine::effect::{
    BufferId, Directory, FdChange, FdSource, IoId, OperationId, ProcessId, ScopeId, SpoolId, Umask,
    ViewId,
};
use ftsh_machine::event::Reply;
use ftsh_machine::{Effect, Event, Time};

/// Everything that exists in the world of a run.
#[derive(Default)]
pub(crate) struct LiveState {
    pub(super) fd_graph: FdGraph,
    pub(super) tables: BTreeMap<IoId, LiveTable>,
    pub(super) relays: BTreeMap<OperationId, LiveRelay>,
    pub(super) buffers: BTreeMap<BufferId, LiveBuffer>,
    pub(super) positions: BTreeMap<SharedInput, u64>,
    /// Directories of each view.
    views: BTreeMap<ViewId, Vec<BString>>,
    /// Views dropped since the last event. The process may have ended before dropping them.
    dropped_views: BTreeMap<ViewId, Vec<BString>>,
    replays: BTreeMap<SpoolId, LiveReplay>,
    /// Requests to the driver without an answer, in order.
    in_flight: BTreeMap<u64, Effect>,
    by_operation: BTreeMap<OperationId, u64>,
    by_scope: BTreeMap<ScopeId, u64>,
    count: u64,
    /// Time that remote branches may continue after the end of the process that sent them.
    outlived: Duration,
    /// Scopes of the remote branches that earlier processes sent, and the end of their leases.
    orphans: BTreeMap<ScopeId, Time>,
}

/// Recipe of a table of descriptors.
pub(super) struct LiveTable {
    pub base: IoId,
    pub directory: Directory,
    pub umask: Umask,
    pub changes: Vec<FdChange>,
    /// Set when the table is closed; other tables derive from the closed table.
    pub is_closed: bool,
    /// Number of tables and relays that derive from the table.
    uses: usize,
}

/// Relay that forwards the output of branches.
pub(super) struct LiveRelay {
    pub io: IoId,
    /// Set when no task waits for the relay.
    pub is_abandoned: bool,
    /// Number of tables with a descriptor that leads to the relay.
    uses: usize,
}

/// Recorded content of a buffer.
#[derive(Default)]
pub(super) struct LiveBuffer {
    pub content: BString,
    /// Set when the buffer is dropped; tables still refer to the buffer.
    pub is_dropped: bool,
    uses: usize,
}

/// Input that the next attempt reads again.
struct LiveReplay {
    input: SharedInput,
    start: Option<u64>,
    is_kept: bool,
}

impl LiveState {
    /// Updates the state for an effect that the machine requests.
    pub(crate) fn on_effect(&mut self, effect: Effect) {
        self.fd_graph.on_effect(&effect);
        match effect {
            Effect::Run(run) | Effect::Exec(run) => self.make_buffers(&run.redirects),
            Effect::Open { operation, base, ref redirects, .. } => {
                self.make_buffers(redirects);
                self.begin_replays(redirects);
                self.use_all(redirects, 1);
                self.use_table(base, 1);
                self.start(operation, effect);
            }
            Effect::Query { operation, .. }
            | Effect::Commit { operation, .. }
            | Effect::CommitView { operation, .. }
            | Effect::FinishRelay(operation) => self.start(operation, effect),
            Effect::BeginView(ref begin) => self.start(begin.operation, effect),
            Effect::Enter(ref entry) => self.start(entry.operation, effect),
            Effect::Terminate(scope) => {
                if let Some(before) = self.by_scope.insert(scope, self.count) {
                    self.in_flight.remove(&before);
                }
                self.in_flight.insert(self.count, effect);
                self.count += 1;
            }
            Effect::Abandon(operation) => self.abandon(operation),
            Effect::Relay { operation, io } => {
                self.use_table(io, 1);
                self.relays.insert(operation, LiveRelay { io, is_abandoned: false, uses: 0 });
            }
            Effect::CloseIo(io) => {
                if let Some(table) = self.tables.get_mut(&io) {
                    table.is_closed = true;
                    self.forget_table(io);
                }
            }
            Effect::DropBuffer(id) => {
                if let Some(buffer) = self.buffers.get_mut(&id) {
                    buffer.is_dropped = true;
                    self.forget_buffer(id);
                }
            }
            Effect::Fill(id, content) => {
                let buffer = self.buffers.entry(id).or_default();
                buffer.content.extend_from_slice(&content);
            }
            Effect::KeepInput(id) => {
                if let Some(replay) = self.replays.get_mut(&id) {
                    replay.is_kept = true;
                }
            }
            Effect::DropSpool(id) => {
                if let Some(replay) = self.replays.remove(&id) {
                    self.rewind(&replay);
                }
            }
            Effect::DropView(view) => self.dropped_views.extend(self.views.remove_entry(&view)),
            Effect::HandOver { scope, into } => {
                if let Some(until) = self.orphans.remove(&scope) {
                    self.add_orphan(into, until);
                }
            }
            Effect::Dispatch(_)
            | Effect::SetSignal(..)
            | Effect::Escalate(_)
            | Effect::ForgetOutput(_)
            | Effect::Kill { .. }
            | Effect::OpenScope { .. }
            | Effect::Watch { .. }
            | Effect::DropStagedFile(_)
            | Effect::DropScratch(_)
            | Effect::Leave(..)
            | Effect::RecordDurations(..)
            | Effect::Log(_) => {}
        }
    }

    /// Updates the state for an event that the machine receives.
    pub(crate) fn on_event(&mut self, event: &Event) {
        let emptied = match event {
            Event::Emptied { scope } if !self.orphans.is_empty() => {
                self.fd_graph.scopes.nesting().within(*scope)
            }
            _ => Vec::new(),
        };
        self.fd_graph.on_event(event);
        self.dropped_views.clear();
        match event {
            Event::Done { operation, result } => {
                let effect = self.finish(*operation);
                self.end_relay(*operation);
                if let (Some(Effect::BeginView(begin)), Ok(Reply::Words(directories))) =
                    (&effect, result)
                {
                    self.views.insert(begin.view, directories.clone());
                }
                if let Some(Effect::Open { io, base, directory, umask, redirects, .. }) = effect {
                    let (changes, uses) = (redirects, 0);
                    let table =
                        LiveTable { base, directory, umask, changes, is_closed: false, uses };
                    if result.is_ok() {
                        self.tables.insert(io, table);
                    } else {
                        self.release(&table);
                    }
                }
            }
            Event::Emptied { scope } => {
                for inner in emptied {
                    self.orphans.remove(&inner);
                }
                if let Some(number) = self.by_scope.remove(scope) {
                    self.in_flight.remove(&number);
                }
            }
            _ => {}
        }
    }

    /// Replaces the content of a buffer from byte `from` on.
    pub(crate) fn written(
        &mut self,
        buffer: BufferId,
        from: u64,
        bytes: &[u8],
    ) -> Result<(), NoMemory> {
        if let Some(buffer) = self.buffers.get_mut(&buffer) {
            buffer.content.truncate(from.try_into().unwrap_or(usize::MAX));
            buffer.content.try_reserve(bytes.len()).map_err(|_| NoMemory)?;
            buffer.content.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Stores the position of an input, in bytes from its beginning.
    pub(crate) fn position(&mut self, input: SharedInput, at: u64) {
        self.positions.insert(input, at);
    }

    /// Rewinds the inputs of lost attempts, because another process continues the run.
    pub(crate) fn restart(&mut self) {
        // Attempts are rewound from the innermost to the outermost: the outermost began first.
        for replay in std::mem::take(&mut self.replays).into_values().rev() {
            self.rewind(&replay);
        }
    }

    /// Sets the time that remote branches may continue after the end of the present process.
    pub(crate) fn outlived_by(&mut self, by: Duration) {
        self.outlived = by;
    }

    /// Marks the remote branches of a process that had ended by `then` as orphans.
    pub(crate) fn orphan_remote_branches(&mut self, then: Time) {
        let until = then + std::mem::take(&mut self.outlived);
        for scope in self.fd_graph.scopes_away().collect::<Vec<_>>() {
            self.add_orphan(scope, until);
        }
        self.orphans.retain(|_, until| *until > then);
    }

    fn add_orphan(&mut self, scope: ScopeId, until: Time) {
        let known = self.orphans.entry(scope).or_insert(until);
        *known = until.max(*known);
    }

    /// Returns the scopes in which remote branches may still run, and until when.
    ///
    /// The present process is taken to have ended at `now`. The flag is true if that process sent
    /// the branch.
    pub(crate) fn orphans(&self, now: Time) -> impl Iterator<Item = (ScopeId, Time, bool)> {
        let until = now + self.outlived;
        let new = self.fd_graph.scopes_away().map(move |scope| (scope, until, true));
        new.chain(self.orphans.iter().map(|(scope, until)| (*scope, *until, false)))
    }

    /// Returns the content of a buffer.
    pub(crate) fn content(&self, buffer: BufferId) -> Option<&BString> {
        self.buffers.get(&buffer).map(|buffer| &buffer.content)
    }

    /// Returns the buffers that are not dropped, with their contents.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = (BufferId, &[u8])> {
        let current = self.buffers.iter().filter(|(_, buffer)| !buffer.is_dropped);
        current.map(|(id, buffer)| (*id, &buffer.content[..]))
    }

    /// Returns the commands without a recorded end.
    pub(crate) fn lost(&self) -> Vec<ProcessId> {
        self.fd_graph.commands().collect()
    }

    /// Returns the views whose commits may have left records, with their directories.
    pub(crate) fn views(&self) -> impl Iterator<Item = (ViewId, &[BString])> {
        let all = self.views.iter().chain(&self.dropped_views);
        all.map(|(view, directories)| (*view, &directories[..]))
    }

    /// Returns the views that the machine has dropped, and that may still exist.
    pub(crate) fn dropped_views(&self) -> impl Iterator<Item = ViewId> {
        self.dropped_views.keys().copied()
    }

    /// Returns the requests to the driver without an answer, in order.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Effect> {
        self.in_flight.values()
    }

    fn start(&mut self, operation: OperationId, effect: Effect) {
        self.by_operation.insert(operation, self.count);
        self.in_flight.insert(self.count, effect);
        self.count += 1;
    }

    fn finish(&mut self, operation: OperationId) -> Option<Effect> {
        self.in_flight.remove(&self.by_operation.remove(&operation)?)
    }

    fn abandon(&mut self, operation: OperationId) {
        if let Some(Effect::Open { base, directory, umask, redirects, .. }) = self.finish(operation)
        {
            let (changes, is_closed, uses) = (redirects, true, 0);
            self.release(&LiveTable { base, directory, umask, changes, is_closed, uses });
        }
        if let Some(relay) = self.relays.get_mut(&operation) {
            relay.is_abandoned = true;
            self.forget_relay(operation);
        }
    }

    fn make_buffers(&mut self, changes: &[FdChange]) {
        for FdChange { source, .. } in changes {
            let (id, content) = match source {
                FdSource::BufferCreate(buffer, content) => (*buffer, content.clone()),
                FdSource::BufferCopy { buffer, of } => {
                    (*buffer, self.content(*of).cloned().unwrap_or_default())
                }
                FdSource::Hold(buffer) => (*buffer, BString::default()),
                _ => continue,
            };
            self.buffers.insert(id, LiveBuffer { content, is_dropped: false, uses: 0 });
        }
    }

    fn begin_replays(&mut self, changes: &[FdChange]) {
        for FdChange { source, .. } in changes {
            let FdSource::Spool(id) = source else { continue };
            let Some(input) = self.fd_graph.replayed(*id) else { continue };
            let start = self.positions.get(&input).copied();
            let new = LiveReplay { input, start, is_kept: false };
            let start = self.replays.entry(*id).or_insert(new).start;
            self.set_position(input, start);
        }
    }

    fn rewind(&mut self, replay: &LiveReplay) {
        if !replay.is_kept {
            self.set_position(replay.input, replay.start);
        }
    }

    fn set_position(&mut self, input: SharedInput, at: Option<u64>) {
        match at {
            Some(at) => self.positions.insert(input, at),
            None => self.positions.remove(&input),
        };
    }

    /// Adds `more` to the use counts of the buffers and relays of a table.
    fn use_all(&mut self, changes: &[FdChange], more: isize) {
        for FdChange { source, .. } in changes {
            match source {
                FdSource::BufferRead(id)
                | FdSource::BufferAppend(id)
                | FdSource::BufferCreate(id, _)
                | FdSource::BufferCopy { buffer: id, .. }
                | FdSource::Hold(id) => {
                    if let Some(buffer) = self.buffers.get_mut(id) {
                        buffer.uses = buffer.uses.saturating_add_signed(more);
                        self.forget_buffer(*id);
                    }
                }
                FdSource::Relay { relay: id, .. } | FdSource::Tee { relay: id, .. } => {
                    if let Some(relay) = self.relays.get_mut(id) {
                        relay.uses = relay.uses.saturating_add_signed(more);
                        self.forget_relay(*id);
                    }
                }
                _ => {}
            }
        }
    }

    fn use_table(&mut self, io: IoId, more: isize) {
        if let Some(table) = self.tables.get_mut(&io) {
            table.uses = table.uses.saturating_add_signed(more);
            self.forget_table(io);
        }
    }

    /// Releases the buffers, relays and tables that a removed table used.
    fn release(&mut self, table: &LiveTable) {
        self.use_all(&table.changes, -1);
        self.use_table(table.base, -1);
    }

    fn forget_table(&mut self, io: IoId) {
        if self.tables.get(&io).is_some_and(|table| table.is_closed && table.uses == 0)
            && let Some(table) = self.tables.remove(&io)
        {
            for change in 0..table.changes.len() {
                self.positions.remove(&SharedInput { io, change: change as u32 });
            }
            self.release(&table);
        }
    }

    fn forget_buffer(&mut self, id: BufferId) {
        if self.buffers.get(&id).is_some_and(|buffer| buffer.is_dropped && buffer.uses == 0) {
            self.buffers.remove(&id);
        }
    }

    fn forget_relay(&mut self, operation: OperationId) {
        if self.relays.get(&operation).is_some_and(|relay| relay.is_abandoned && relay.uses == 0) {
            self.end_relay(operation);
        }
    }

    fn end_relay(&mut self, operation: OperationId) {
        if let Some(relay) = self.relays.remove(&operation) {
            self.use_table(relay.io, -1);
        }
    }

    /// Returns the buffers in which existing tables hold output.
    pub(super) fn holding(&self) -> BTreeSet<BufferId> {
        let changes = self.tables.values().flat_map(|table| &table.changes);
        let held = changes.filter_map(|change| match change.source {
            FdSource::Hold(buffer) => Some(buffer),
            _ => None,
        });
        held.collect()
    }
}
