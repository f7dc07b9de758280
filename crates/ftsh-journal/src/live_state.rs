//! What there is in the world of a run by now: all that has to be made again when it goes on in another
//! process. Nothing is done here; effects and events tell of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bstr::BString;

use super::fd_graph::{Input, Plumbing};
use super::read::NoMemory;
use ftsh_machine::effect::{
    BufferId, Directory, FdChange, FdSource, IoId, OperationId, ProcessId, ReplayId, ScopeId, Umask,
};
use ftsh_machine::{Effect, Event, Time};

/// The world of a run.
#[derive(Default)]
pub struct Alive {
    pub(super) plumbing: Plumbing,
    pub(super) tables: BTreeMap<IoId, Table>,
    pub(super) relays: BTreeMap<OperationId, Relay>,
    pub(super) buffers: BTreeMap<BufferId, Buffer>,
    pub(super) positions: BTreeMap<Input, u64>,
    replays: BTreeMap<ReplayId, Replay>,
    /// What was asked for and isn't answered, in order.
    flights: BTreeMap<u64, Effect>,
    by_operation: BTreeMap<OperationId, u64>,
    by_scope: BTreeMap<ScopeId, u64>,
    count: u64,
    /// How long branches elsewhere may go on after the process that has them.
    outlived: Duration,
    /// The scopes of those that processes before that had, and when they are gone.
    orphans: BTreeMap<ScopeId, Time>,
}

/// How a table of descriptors was made.
pub(super) struct Table {
    pub base: IoId,
    pub directory: Directory,
    pub umask: Umask,
    pub changes: Vec<FdChange>,
    /// The table is closed; others were made from it.
    pub is_closed: bool,
    /// How many were, and relays.
    uses: usize,
}

/// What writes on what branches print.
pub(super) struct Relay {
    pub io: IoId,
    /// Nobody waits for it.
    pub is_abandoned: bool,
    /// How many tables lead there.
    uses: usize,
}

/// What is recorded of a buffer.
#[derive(Default)]
pub(super) struct Buffer {
    pub content: BString,
    /// It was dropped; tables lead there.
    pub is_dropped: bool,
    uses: usize,
}

/// Input that is read anew.
struct Replay {
    input: Input,
    start: Option<u64>,
    is_kept: bool,
}

impl Alive {
    /// Something is asked of the driver.
    pub fn asked(&mut self, effect: Effect) {
        self.plumbing.asked(&effect);
        match effect {
            Effect::Run(run) | Effect::Exec(run) => self.make_buffers(&run.redirects),
            Effect::Open { operation, base, ref redirects, .. } => {
                self.make_buffers(redirects);
                self.begin_replays(redirects);
                self.use_all(redirects, 1);
                self.use_table(base, 1);
                self.fly(operation, effect);
            }
            Effect::Query { operation, .. } | Effect::Settle { operation, .. } => {
                self.fly(operation, effect);
            }
            Effect::FinishRelay(operation) => self.fly(operation, effect),
            Effect::Enter(ref entry) => self.fly(entry.operation, effect),
            Effect::Terminate(scope) => {
                if let Some(before) = self.by_scope.insert(scope, self.count) {
                    self.flights.remove(&before);
                }
                self.flights.insert(self.count, effect);
                self.count += 1;
            }
            Effect::Abandon(operation) => self.abandon(operation),
            Effect::Relay { operation, io } => {
                self.use_table(io, 1);
                self.relays.insert(operation, Relay { io, is_abandoned: false, uses: 0 });
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
            Effect::DropReplay(id) => {
                if let Some(replay) = self.replays.remove(&id) {
                    self.rewind(&replay);
                }
            }
            Effect::HandOver { scope, into } => {
                if let Some(until) = self.orphans.remove(&scope) {
                    self.add_orphan(into, until);
                }
            }
            Effect::Dispatch(_)
            | Effect::Kill { .. }
            | Effect::OpenScope { .. }
            | Effect::DropDraft(_)
            | Effect::DropScratch(_)
            | Effect::Leave(..)
            | Effect::Log(_) => {}
        }
    }

    /// The machine is told something.
    pub fn told(&mut self, event: &Event) {
        let emptied = match event {
            Event::Emptied { scope } if !self.orphans.is_empty() => {
                self.plumbing.scopes.within(*scope)
            }
            _ => Vec::new(),
        };
        self.plumbing.told(event);
        match event {
            Event::Done { operation, result } => {
                let effect = self.land(*operation);
                self.end_relay(*operation);
                if let Some(Effect::Open { io, base, directory, umask, redirects, .. }) = effect {
                    let (changes, uses) = (redirects, 0);
                    let table = Table { base, directory, umask, changes, is_closed: false, uses };
                    if result.is_ok() {
                        self.tables.insert(io, table);
                    } else {
                        self.let_go(&table);
                    }
                }
            }
            Event::Emptied { scope } => {
                for inner in emptied {
                    self.orphans.remove(&inner);
                }
                if let Some(number) = self.by_scope.remove(scope) {
                    self.flights.remove(&number);
                }
            }
            _ => {}
        }
    }

    /// A buffer holds this from a byte on.
    pub fn written(&mut self, buffer: BufferId, from: u64, bytes: &[u8]) -> Result<(), NoMemory> {
        if let Some(buffer) = self.buffers.get_mut(&buffer) {
            buffer.content.truncate(from.try_into().unwrap_or(usize::MAX));
            buffer.content.try_reserve(bytes.len()).map_err(|_| NoMemory)?;
            buffer.content.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// An input has been read up to here.
    pub fn position(&mut self, input: Input, at: u64) {
        self.positions.insert(input, at);
    }

    /// Another process has it now: what attempts have read that are lost is to be read again.
    pub fn restart(&mut self) {
        // The outermost began first.
        for replay in std::mem::take(&mut self.replays).into_values().rev() {
            self.rewind(&replay);
        }
    }

    /// Branches elsewhere may go on for so long after the process that has them now.
    pub fn outlived_by(&mut self, by: Duration) {
        self.outlived = by;
    }

    /// That process had ended by then.
    pub fn leave_behind(&mut self, then: Time) {
        let until = then + std::mem::take(&mut self.outlived);
        for scope in self.plumbing.scopes_away().collect::<Vec<_>>() {
            self.add_orphan(scope, until);
        }
        self.orphans.retain(|_, until| *until > then);
    }

    fn add_orphan(&mut self, scope: ScopeId, until: Time) {
        let known = self.orphans.entry(scope).or_insert(until);
        *known = until.max(*known);
    }

    /// Where branches may go on elsewhere, and until when, if the last process has ended by now; and whether
    /// it was that one which had them.
    pub fn orphans(&self, now: Time) -> impl Iterator<Item = (ScopeId, Time, bool)> {
        let until = now + self.outlived;
        let new = self.plumbing.scopes_away().map(move |scope| (scope, until, true));
        new.chain(self.orphans.iter().map(|(scope, until)| (*scope, *until, false)))
    }

    /// What a buffer holds.
    pub fn content(&self, buffer: BufferId) -> Option<&BString> {
        self.buffers.get(&buffer).map(|buffer| &buffer.content)
    }

    /// The buffers there are, and what they hold.
    pub fn buffers(&self) -> impl Iterator<Item = (BufferId, &[u8])> {
        let alive = self.buffers.iter().filter(|(_, buffer)| !buffer.is_dropped);
        alive.map(|(id, buffer)| (*id, &buffer.content[..]))
    }

    /// Commands that were asked for and whose end isn't known.
    pub fn lost(&self) -> Vec<ProcessId> {
        self.plumbing.commands().collect()
    }

    /// What was asked for and isn't answered, in order.
    pub fn flights(&self) -> impl Iterator<Item = &Effect> {
        self.flights.values()
    }

    fn fly(&mut self, operation: OperationId, effect: Effect) {
        self.by_operation.insert(operation, self.count);
        self.flights.insert(self.count, effect);
        self.count += 1;
    }

    fn land(&mut self, operation: OperationId) -> Option<Effect> {
        self.flights.remove(&self.by_operation.remove(&operation)?)
    }

    fn abandon(&mut self, operation: OperationId) {
        if let Some(Effect::Open { base, directory, umask, redirects, .. }) = self.land(operation) {
            let (changes, is_closed, uses) = (redirects, true, 0);
            self.let_go(&Table { base, directory, umask, changes, is_closed, uses });
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
            self.buffers.insert(id, Buffer { content, is_dropped: false, uses: 0 });
        }
    }

    fn begin_replays(&mut self, changes: &[FdChange]) {
        for FdChange { source, .. } in changes {
            let FdSource::Replay(id) = source else { continue };
            let Some(input) = self.plumbing.replayed(*id) else { continue };
            let start = self.positions.get(&input).copied();
            let new = Replay { input, start, is_kept: false };
            let start = self.replays.entry(*id).or_insert(new).start;
            self.go_to(input, start);
        }
    }

    fn rewind(&mut self, replay: &Replay) {
        if !replay.is_kept {
            self.go_to(replay.input, replay.start);
        }
    }

    fn go_to(&mut self, input: Input, at: Option<u64>) {
        match at {
            Some(at) => self.positions.insert(input, at),
            None => self.positions.remove(&input),
        };
    }

    /// A table comes to lead there, or doesn't any more.
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

    /// A table isn't there any more: what only it needed isn't, either.
    fn let_go(&mut self, table: &Table) {
        self.use_all(&table.changes, -1);
        self.use_table(table.base, -1);
    }

    fn forget_table(&mut self, io: IoId) {
        if self.tables.get(&io).is_some_and(|table| table.is_closed && table.uses == 0)
            && let Some(table) = self.tables.remove(&io)
        {
            for change in 0..table.changes.len() {
                self.positions.remove(&Input { io, change: change as u32 });
            }
            self.let_go(&table);
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

    /// The buffers that tables which there are hold output in.
    pub(super) fn holding(&self) -> BTreeSet<BufferId> {
        let changes = self.tables.values().flat_map(|table| &table.changes);
        let held = changes.filter_map(|change| match change.source {
            FdSource::Hold(buffer) => Some(buffer),
            _ => None,
        });
        held.collect()
    }
}
