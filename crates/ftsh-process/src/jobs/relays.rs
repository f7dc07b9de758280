//! Relays: forwarding of the output of branches, line by line, to their common output.
//!
//! The event loop reads the output and writes it without blocking. If a write would block, a worker
//! writes, and nothing is read meanwhile, which makes the writers wait. Lines do not mix: after an
//! incomplete line, only its source is read.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::read;

use super::command::{JobRecipient, JobResult};
use super::reactor::Reactor;
use crate::buffers::{LineAssembler, first_lines};
use crate::descriptors::{Fd, FdTable};
use crate::events::Token;
use crate::fds::{FdTables, RelayPipe};
use crate::program::DaemonPipe;
use crate::stream::{self, Ended};
use crate::workers::Control;
use ftsh_machine::effect::{BufferId, IoId, OperationId, ScopeId};
use ftsh_machine::event::{CommandStatus, Event, Refusal, Reply, SpawnError};
use ftsh_machine::size::MAX_REPORTED_OUTPUT;
use ftsh_sys as sys;
use ftsh_sys::os_error::{name, plain};

/// Base of the poller tokens of sources.
pub(crate) const RELAYS: Token = 1 << 33;

/// Longest delay of the end of a scope by output that no process reads.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes read at once.
const BLOCK: usize = 16 * 1024;

/// All relays and their sources.
#[derive(Default)]
pub(crate) struct Relays {
    all: HashMap<OperationId, ActiveRelay>,
    sources: HashMap<u64, RelaySource>,
    /// Sources created for a table.
    of_table: HashMap<IoId, Vec<u64>>,
    count: u64,
    /// Last bytes of the output of relays with a buffer.
    kept: HashMap<BufferId, Vec<u8>>,
    /// Empty scopes that are reported after the output of their commands was written.
    empty: Vec<ScopeId>,
    /// Time limit of that report.
    pub due: Option<Instant>,
}

/// Relay of one operation.
struct ActiveRelay {
    /// Targets of descriptors 1 and 2.
    targets: [FdTable; 2],
    sources: BTreeSet<u64>,
    /// Sources to read until they are empty.
    due: BTreeSet<u64>,
    /// Sources with available output that are not polled at present.
    parked: Vec<u64>,
    /// Source of an incomplete line that was written.
    line: Option<u64>,
    /// True while a worker writes.
    is_writing: bool,
    state: State,
    /// Buffer for the last bytes of the output, if any. Such a relay reports an error only when
    /// finished.
    keeps: Option<BufferId>,
    /// Error of a write, not reported yet.
    refused: Option<Result<Reply, Refusal>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// More output may follow.
    Open,
    /// The available output is written, then the end is reported.
    Finishing,
    /// Output is written, but the end is not reported.
    Left,
    /// Output is written after a cancellation; the end is not reported.
    Cut,
}

/// Source of output.
struct RelaySource {
    relay: OperationId,
    /// True for standard error.
    errors: bool,
    reader: OwnedFd,
    lines: LineAssembler,
    /// True if an incomplete line is completed after the last byte.
    is_ending: bool,
    /// Number of the next bytes that are forwarded without being kept.
    forgotten: usize,
}

impl Relays {
    /// True if a relay writes to a terminal.
    pub(crate) fn use_the_terminal(&self) -> bool {
        let targets = self.all.values().flat_map(|relay| &relay.targets);
        targets.filter_map(|table| table.get(1)).any(|fd| fd.as_fd().is_terminal())
    }

    /// Returns the pipes that processes may still write to. Output that is relayed continuously
    /// keeps its target.
    pub(crate) fn pipes(&self) -> impl Iterator<Item = DaemonPipe<'_>> {
        self.sources.values().map(|source| {
            let relay = self.all.get(&source.relay).filter(|relay| relay.keeps.is_some());
            let target = relay.and_then(|it| it.targets[usize::from(source.errors)].get(1));
            DaemonPipe { reader: source.reader.as_fd(), target: target.map(Fd::as_fd) }
        })
    }

    /// Forgets the output kept in a buffer, and the bytes that are in the pipe now. The pipe is not
    /// read, so that a writer still waits for a slow reader.
    pub(crate) fn forget_kept(&mut self, buffer: BufferId) {
        self.kept.remove(&buffer);
        let keeping: Vec<OperationId> = self
            .all
            .iter()
            .filter(|(_, relay)| relay.keeps == Some(buffer))
            .map(|(id, _)| *id)
            .collect();
        for source in self.sources.values_mut().filter(|it| keeping.contains(&it.relay)) {
            source.forgotten = sys::unread(source.reader.as_fd()).unwrap_or(0);
        }
    }

    /// Removes and returns the last bytes of the output kept in a buffer.
    pub(crate) fn take_kept(&mut self, buffer: BufferId) -> Option<Vec<u8>> {
        self.kept.remove(&buffer)
    }

    /// Returns the number of sources.
    pub(crate) fn count(&self) -> usize {
        self.sources.len()
    }
}

impl ActiveRelay {
    fn may_read(&self, source: u64) -> bool {
        !self.is_writing && self.line.is_none_or(|line| line == source)
    }

    fn next_due(&mut self) -> Option<u64> {
        match self.line {
            _ if self.is_writing => None,
            Some(line) => self.due.take(&line),
            None => self.due.pop_first(),
        }
    }

    fn is_at_rest(&self) -> bool {
        self.due.is_empty() && !self.is_writing
    }
}

impl Relays {
    /// Begins a relay to the descriptors of a table.
    pub(crate) fn begin(&mut self, tables: &FdTables, operation: OperationId, io: IoId) {
        let target = |number| {
            let mut table = FdTable::default();
            table.descriptors[1] = tables.table(io).and_then(|it| it.get(number)).cloned();
            table
        };
        let targets = [target(1), target(2)];
        let relay = ActiveRelay {
            targets,
            sources: BTreeSet::new(),
            due: BTreeSet::new(),
            parked: Vec::new(),
            line: None,
            is_writing: false,
            state: State::Open,
            keeps: None,
            refused: None,
        };
        self.all.insert(operation, relay);
    }

    /// Adds pipes that were created for a table. Fails if a pipe cannot be watched: its writers
    /// would find it broken.
    pub(crate) fn listen(
        &mut self,
        reactor: &mut Reactor,
        io: IoId,
        pipes: Vec<RelayPipe>,
    ) -> io::Result<()> {
        for RelayPipe { relay: id, descriptor, reader, lines, keeps } in pipes {
            let Some(relay) = self.all.get_mut(&id) else { continue };
            let source = self.count;
            reactor.poller().add(reader.as_fd(), RELAYS + source)?;
            self.count += 1;
            relay.keeps = keeps;
            relay.sources.insert(source);
            self.of_table.entry(io).or_default().push(source);
            let errors = descriptor == 2;
            let (is_ending, forgotten) = (false, 0);
            let source_of = RelaySource { relay: id, errors, reader, lines, is_ending, forgotten };
            self.sources.insert(source, source_of);
        }
        Ok(())
    }

    /// Handles available output.
    pub(crate) fn read_some(&mut self, reactor: &mut Reactor, source: u64) {
        let Some(id) = self.sources.get(&source).map(|it| it.relay) else { return };
        let Some(relay) = self.all.get_mut(&id) else { return };
        if relay.may_read(source) {
            self.read(reactor, source, false);
            self.advance(reactor, id);
        } else if !relay.parked.contains(&source)
            && let Some(it) = self.sources.get(&source)
        {
            relay.parked.push(source);
            reactor.poller().remove(it.reader.as_fd());
        }
    }

    /// Handles the end of a table. Its commands print no more, except processes left behind.
    pub(crate) fn end_table(&mut self, reactor: &mut Reactor, io: IoId) {
        for source in self.of_table.remove(&io).unwrap_or_default() {
            let Some(id) = self.sources.get(&source).map(|it| it.relay) else { continue };
            // Canceled commands may print until they end.
            if self.all.get(&id).is_some_and(|relay| relay.state != State::Cut) {
                self.read_all(reactor, id, [source].into(), true);
            }
        }
    }

    /// Writes the available output and reports the end of the relay.
    pub(crate) fn finish(&mut self, reactor: &mut Reactor, id: OperationId) {
        let Some(relay) = self.all.get_mut(&id) else { return };
        if let Some(result) = relay.refused.take() {
            self.all.remove(&id);
            return reactor.emit(Event::Done { operation: id, result });
        }
        relay.state = State::Finishing;
        let all = relay.sources.clone();
        self.read_all(reactor, id, all, true);
    }

    /// Marks a relay as canceled.
    pub(crate) fn leave(&mut self, reactor: &mut Reactor, id: OperationId) {
        if let Some(relay) = self.all.get_mut(&id) {
            relay.state = State::Cut;
            self.advance(reactor, id);
        }
    }

    /// Reports an empty scope after the output of its canceled commands was written.
    pub(crate) fn report_emptied(&mut self, reactor: &mut Reactor, scope: ScopeId) {
        let cut = self.all.iter().filter(|(_, relay)| relay.state == State::Cut);
        let cut: Vec<OperationId> = cut.map(|(id, _)| *id).collect();
        self.empty.push(scope);
        for id in cut {
            let all = self.all.get(&id).map(|relay| relay.sources.clone());
            self.read_all(reactor, id, all.unwrap_or_default(), false);
        }
        self.report_empty_scopes(reactor);
    }

    /// Stops waiting for the output of canceled commands once the time limit has passed.
    pub(crate) fn give_up(&mut self, reactor: &mut Reactor, now: Instant) {
        if self.due.take_if(|due| *due <= now).is_some() {
            for relay in self.all.values_mut().filter(|it| it.state == State::Cut) {
                relay.state = State::Left;
            }
            self.report_empty_scopes(reactor);
        }
    }

    fn report_empty_scopes(&mut self, reactor: &mut Reactor) {
        let mut cut = self.all.values().filter(|relay| relay.state == State::Cut);
        if cut.all(ActiveRelay::is_at_rest) {
            self.due = None;
            let emptied = self.empty.drain(..);
            emptied.for_each(|scope| reactor.emit(Event::Emptied { scope }));
        } else if !self.empty.is_empty() {
            self.due.get_or_insert_with(|| Instant::now() + OUTPUT_TIMEOUT);
        }
    }

    fn read_all(
        &mut self,
        reactor: &mut Reactor,
        id: OperationId,
        sources: BTreeSet<u64>,
        is_ending: bool,
    ) {
        for source in &sources {
            if let Some(source) = self.sources.get_mut(source) {
                source.is_ending |= is_ending;
            }
        }
        if let Some(relay) = self.all.get_mut(&id) {
            relay.due.extend(sources);
            self.advance(reactor, id);
        }
    }

    /// Reads the due sources, and polls those that may be read again.
    fn advance(&mut self, reactor: &mut Reactor, id: OperationId) {
        while let Some(relay) = self.all.get_mut(&id)
            && let Some(source) = relay.next_due()
        {
            self.read(reactor, source, true);
        }
        let Some(relay) = self.all.get_mut(&id) else { return self.report_empty_scopes(reactor) };
        let (is_writing, line) = (relay.is_writing, relay.line);
        let free = |source: &mut u64| !is_writing && line.is_none_or(|line| line == *source);
        for source in relay.parked.extract_if(.., free) {
            if let Some(it) = self.sources.get(&source) {
                // The same descriptor was polled before.
                let _ = reactor.poller().add(it.reader.as_fd(), RELAYS + source);
            }
        }
        if relay.state == State::Finishing && relay.is_at_rest() {
            relay.state = State::Left;
            reactor.emit(Event::Done { operation: id, result: Ok(Reply::Truth(true)) });
        }
        if relay.state != State::Open && relay.sources.is_empty() && relay.is_at_rest() {
            self.all.remove(&id);
        }
        self.report_empty_scopes(reactor);
    }

    /// Reads output from a source and forwards it: one block, or everything available.
    fn read(&mut self, reactor: &mut Reactor, number: u64, all: bool) {
        let mut block = [0; BLOCK];
        loop {
            let Some(source) = self.sources.get_mut(&number) else { return };
            let mut out = Vec::new();
            let result = read(&source.reader, &mut block);
            match result {
                Ok(0) => source.lines.end(&mut out),
                Ok(count) => source.lines.take(&block[..count], &mut out),
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) if std::mem::take(&mut source.is_ending) => {
                    source.lines.end(&mut out);
                }
                Err(Errno::EAGAIN) => {}
                Err(_) => source.lines.end(&mut out),
            }
            let (id, errors, is_open) = (source.relay, source.errors, source.lines.is_open());
            let forgotten = source.forgotten.min(out.len());
            source.forgotten -= forgotten;
            let is_over = !matches!(result, Ok(1..) | Err(Errno::EAGAIN));
            if let Some(relay) = self.all.get_mut(&id)
                && relay.may_read(number)
            {
                relay.line = is_open.then_some(number);
            }
            if let Some(buffer) = self.all.get(&id).and_then(|relay| relay.keeps) {
                keep(self.kept.entry(buffer).or_default(), &out[forgotten..]);
            }
            if is_over {
                self.remove_source(reactor, number);
            }
            self.write_on(reactor, id, errors, &out);
            let Some(relay) = self.all.get_mut(&id) else { return };
            if is_over || result == Err(Errno::EAGAIN) || !all {
                return;
            }
            if relay.is_writing {
                relay.due.insert(number);
                return;
            }
        }
    }

    fn remove_source(&mut self, reactor: &mut Reactor, number: u64) {
        let Some(source) = self.sources.remove(&number) else { return };
        let Some(relay) = self.all.get_mut(&source.relay) else { return };
        relay.sources.remove(&number);
        relay.due.remove(&number);
        if relay.parked.extract_if(.., |parked| *parked == number).next().is_none() {
            reactor.poller().remove(source.reader.as_fd());
        }
        relay.line.take_if(|line| *line == number);
    }

    /// Writes lines to their target, by a worker if necessary.
    fn write_on(&mut self, reactor: &mut Reactor, id: OperationId, errors: bool, out: &[u8]) {
        let Some(relay) = self.all.get_mut(&id) else { return };
        let table = &relay.targets[usize::from(errors)];
        let Some(fd) = table.get(1) else { return };
        let mut left = out;
        while !left.is_empty() {
            match stream::write_without_waiting(fd, first_lines(left, stream::PIPE_ROOM)) {
                Ok(count) => left = &left[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.refused(reactor, id, Err(error)),
            }
        }
        if left.is_empty() {
            return;
        }
        let (table, left) = (table.clone(), left.to_vec());
        let job = move |control: &Control| JobResult::Ended(print_lines(&table, &left, control));
        match reactor.submit(JobRecipient::Relay(id), job) {
            Ok(_) => relay.is_writing = true,
            Err(error) => self.refused(reactor, id, Err(error)),
        }
    }

    /// Handles the end of a worker's write.
    pub(crate) fn written(&mut self, reactor: &mut Reactor, id: OperationId, ended: Ended) {
        let Some(relay) = self.all.get_mut(&id) else { return };
        relay.is_writing = false;
        match ended {
            Ok((CommandStatus::Exited(0), _)) => {}
            Ok(_) => self.refused(reactor, id, Err(ErrorKind::BrokenPipe.into())),
            Err(SpawnError { message, errno, .. }) => {
                self.refused(reactor, id, Ok(Refusal { message, errno }));
            }
        }
        self.advance(reactor, id);
    }

    /// Ends a relay whose target cannot be written: all readers are gone, or an error occurred.
    fn refused(&mut self, reactor: &mut Reactor, id: OperationId, why: Result<Refusal, io::Error>) {
        let Some(mut relay) = self.all.remove(&id) else { return };
        for number in &relay.sources {
            let Some(source) = self.sources.remove(number) else { continue };
            if !relay.parked.contains(number) {
                reactor.poller().remove(source.reader.as_fd());
            }
        }
        let result = match why {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reply::Truth(false)),
            Err(error) => Err(Refusal { message: plain(&error), errno: name(&error) }),
            Ok(refusal) => Err(refusal),
        };
        if relay.keeps.is_some() && relay.state == State::Open {
            (relay.sources, relay.due) = (BTreeSet::new(), BTreeSet::new());
            (relay.parked, relay.line) = (Vec::new(), None);
            relay.refused = Some(result);
            self.all.insert(id, relay);
        } else if matches!(relay.state, State::Open | State::Finishing) {
            reactor.emit(Event::Done { operation: id, result });
        }
        self.report_empty_scopes(reactor);
    }
}

/// Appends to a buffer and drops the beginning of excess output. One byte more than the limit is
/// kept, which shows if a line begins there.
fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend_from_slice(bytes);
    // Cut only at twice the limit, so each byte moves once on average.
    if kept.len() > 2 * MAX_REPORTED_OUTPUT {
        kept.drain(..kept.len() - MAX_REPORTED_OUTPUT - 1);
    }
}

/// Writes all lines, in blocks that fit into a pipe as a whole. Output of other writers to the pipe
/// thus cannot split a line.
fn print_lines(table: &FdTable, mut bytes: &[u8], control: &Control) -> Ended {
    while !bytes.is_empty() {
        let lines = first_lines(bytes, stream::PIPE_ROOM);
        match stream::print(table, lines, control) {
            Ok((CommandStatus::Exited(0), _)) => bytes = &bytes[lines.len()..],
            ended => return ended,
        }
    }
    Ok((CommandStatus::Exited(0), None))
}
