//! Relays: what branches print, line by line, on its way to where they all print.
//!
//! The loop reads what comes and writes it on without waiting; if that can't be done a worker writes,
//! and nothing of the relay is read meanwhile, so that who prints waits. One line is never in the way
//! of another: what is out without its end is waited for.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::read;

use super::super::fds::lines::{Lines, first_lines};
use super::super::fds::stream::{self, Ended};
use super::super::fds::{Fd, FdTable, FdTables, Relayed};
use super::super::os::poll::{Poller, Token};
use super::super::os::reader::Daemons;
use super::super::os::workers::Control;
use super::{Answer, Waiting, Work};
use ftsh_machine::effect::{BufferId, IoId, OperationId, ScopeId};
use ftsh_machine::event::{Event, Refusal, Reply, Status};
use ftsh_machine::size::MOST_TOLD;
use ftsh_sys::os_error::plain;

/// What the poller knows a source by is its number plus this.
pub const RELAYS: Token = 1 << 33;

/// What nobody reads delays what comes after it no longer than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// So much is read at once.
const BLOCK: usize = 16 * 1024;

/// All relays, and what comes into them.
#[derive(Default)]
pub struct Relays {
    all: HashMap<OperationId, Relay>,
    sources: HashMap<u64, Source>,
    /// The sources that were made for a table.
    of_table: HashMap<IoId, Vec<u64>>,
    count: u64,
    /// The end of what has come through relays that keep it.
    kept: HashMap<BufferId, Vec<u8>>,
    /// Scopes that are empty, which is told when what their commands have printed is written.
    empty: Vec<ScopeId>,
    /// When it is told in any case.
    pub due: Option<Instant>,
}

/// Where it is written, and how far that has come.
struct Relay {
    /// For descriptors 1 and 2.
    targets: [FdTable; 2],
    sources: BTreeSet<u64>,
    /// Sources to be read as far as they go.
    due: BTreeSet<u64>,
    /// Sources that have something, and are not listened to for the present.
    parked: Vec<u64>,
    /// The source whose line is out without its end.
    line: Option<u64>,
    /// Whether a worker writes.
    is_writing: bool,
    state: State,
    /// Where the end of what comes is kept, if it is. Such a relay tells of nothing before it is to finish.
    keeps: Option<BufferId>,
    /// Why it can't write any more, if that is still to be told.
    refused: Option<Result<Reply, Refusal>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// There is more to come.
    Open,
    /// Only what is there is written; then that is told.
    Finishing,
    /// What comes is written, and nobody is told of the end.
    Left,
    /// The same, of what was cut short.
    Cut,
}

/// Where something comes from.
struct Source {
    relay: OperationId,
    /// Whether it is standard error.
    errors: bool,
    reader: OwnedFd,
    lines: Lines,
    /// Whether a line without an end gets one when all is read.
    is_ending: bool,
}

/// What relays need of the driver.
pub struct Outside<'a> {
    pub poller: &'a mut Poller,
    pub work: &'a mut Work,
    pub ready: &'a mut VecDeque<Event>,
}

impl Relays {
    /// Whether any writes to a terminal.
    pub fn use_the_terminal(&self) -> bool {
        let targets = self.all.values().flat_map(|relay| &relay.targets);
        targets.filter_map(|table| table.get(1)).any(|fd| fd.as_fd().is_terminal())
    }

    /// Returns the pipes that somebody may still write to. What is written on as it comes goes on.
    pub fn pipes(&self) -> impl Iterator<Item = Daemons<'_>> {
        self.sources.values().map(|source| {
            let relay = self.all.get(&source.relay).filter(|relay| relay.keeps.is_some());
            let target = relay.and_then(|it| it.targets[usize::from(source.errors)].get(1));
            Daemons { reader: source.reader.as_fd(), target: target.map(Fd::as_fd) }
        })
    }

    /// Takes what is kept under a name.
    pub fn take_kept(&mut self, buffer: BufferId) -> Option<Vec<u8>> {
        self.kept.remove(&buffer)
    }

    /// How many sources there are.
    pub fn count(&self) -> usize {
        self.sources.len()
    }
}

impl Relay {
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
    /// Begins a relay to where a table's descriptors lead.
    pub fn begin(&mut self, tables: &FdTables, operation: OperationId, io: IoId) {
        let target = |number| {
            let mut table = FdTable::default();
            table.descriptors[1] = tables.table(io).and_then(|it| it.get(number)).cloned();
            table
        };
        let targets = [target(1), target(2)];
        let relay = Relay {
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

    /// Listens to what comes through pipes that were made for a table.
    pub fn listen(&mut self, outside: &mut Outside, io: IoId, pipes: Vec<Relayed>) {
        for Relayed { relay: id, descriptor, reader, lines, keeps } in pipes {
            let Some(relay) = self.all.get_mut(&id) else { continue };
            let source = self.count;
            if outside.poller.add(reader.as_fd(), RELAYS + source).is_err() {
                continue; // nobody reads
            }
            self.count += 1;
            relay.keeps = keeps;
            relay.sources.insert(source);
            self.of_table.entry(io).or_default().push(source);
            let errors = descriptor == 2;
            let source_of = Source { relay: id, errors, reader, lines, is_ending: false };
            self.sources.insert(source, source_of);
        }
    }

    /// Something has come.
    pub fn read_some(&mut self, outside: &mut Outside, source: u64) {
        let Some(id) = self.sources.get(&source).map(|it| it.relay) else { return };
        let Some(relay) = self.all.get_mut(&id) else { return };
        if relay.may_read(source) {
            self.read(outside, source, false);
            self.go_on(outside, id);
        } else if !relay.parked.contains(&source)
            && let Some(it) = self.sources.get(&source)
        {
            relay.parked.push(source);
            outside.poller.remove(it.reader.as_fd());
        }
    }

    /// A table is closed: what it was for prints nothing more, but for what it leaves behind.
    pub fn end_table(&mut self, outside: &mut Outside, io: IoId) {
        for source in self.of_table.remove(&io).unwrap_or_default() {
            let Some(id) = self.sources.get(&source).map(|it| it.relay) else { continue };
            // What is cut short may print to its very end.
            if self.all.get(&id).is_some_and(|relay| relay.state != State::Cut) {
                self.read_all(outside, id, [source].into(), true);
            }
        }
    }

    /// No more sources come; what there is is written.
    pub fn finish(&mut self, outside: &mut Outside, id: OperationId) {
        let Some(relay) = self.all.get_mut(&id) else { return };
        if let Some(result) = relay.refused.take() {
            self.all.remove(&id);
            return outside.ready.push_back(Event::Done { operation: id, result });
        }
        relay.state = State::Finishing;
        let all = relay.sources.clone();
        self.read_all(outside, id, all, true);
    }

    /// Nobody waits for a relay any more.
    pub fn leave(&mut self, outside: &mut Outside, id: OperationId) {
        if let Some(relay) = self.all.get_mut(&id) {
            relay.state = State::Cut;
            self.go_on(outside, id);
        }
    }

    /// A scope is empty: what was cut short there has printed all it will, which comes before what
    /// the script does next.
    pub fn tell_emptied(&mut self, outside: &mut Outside, scope: ScopeId) {
        let cut = self.all.iter().filter(|(_, relay)| relay.state == State::Cut);
        let cut: Vec<OperationId> = cut.map(|(id, _)| *id).collect();
        self.empty.push(scope);
        for id in cut {
            let all = self.all.get(&id).map(|relay| relay.sources.clone());
            self.read_all(outside, id, all.unwrap_or_default(), false);
        }
        self.tell_empty(outside);
    }

    /// What was cut short isn't waited for any longer, once the moment has come.
    pub fn give_up(&mut self, outside: &mut Outside, now: Instant) {
        if self.due.take_if(|due| *due <= now).is_some() {
            for relay in self.all.values_mut().filter(|it| it.state == State::Cut) {
                relay.state = State::Left;
            }
            self.tell_empty(outside);
        }
    }

    fn tell_empty(&mut self, outside: &mut Outside) {
        let mut cut = self.all.values().filter(|relay| relay.state == State::Cut);
        if cut.all(Relay::is_at_rest) {
            self.due = None;
            let told = self.empty.drain(..);
            outside.ready.extend(told.map(|scope| Event::Emptied { scope }));
        } else if !self.empty.is_empty() {
            self.due.get_or_insert_with(|| Instant::now() + PATIENCE);
        }
    }

    fn read_all(
        &mut self,
        outside: &mut Outside,
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
            self.go_on(outside, id);
        }
    }

    /// Does what is due, and listens again to what may be read.
    fn go_on(&mut self, outside: &mut Outside, id: OperationId) {
        while let Some(relay) = self.all.get_mut(&id)
            && let Some(source) = relay.next_due()
        {
            self.read(outside, source, true);
        }
        let Some(relay) = self.all.get_mut(&id) else { return self.tell_empty(outside) };
        let (is_writing, line) = (relay.is_writing, relay.line);
        let free = |source: &mut u64| !is_writing && line.is_none_or(|line| line == *source);
        for source in relay.parked.extract_if(.., free) {
            if let Some(it) = self.sources.get(&source) {
                // It was there before.
                let _ = outside.poller.add(it.reader.as_fd(), RELAYS + source);
            }
        }
        if relay.state == State::Finishing && relay.is_at_rest() {
            relay.state = State::Left;
            outside.ready.push_back(Event::Done { operation: id, result: Ok(Reply::Truth(true)) });
        }
        if relay.state != State::Open && relay.sources.is_empty() && relay.is_at_rest() {
            self.all.remove(&id);
        }
        self.tell_empty(outside);
    }

    /// Reads what a source has: some of it, or all there is by now; and writes it on.
    fn read(&mut self, outside: &mut Outside, number: u64, all: bool) {
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
            let is_over = !matches!(result, Ok(1..) | Err(Errno::EAGAIN));
            if let Some(relay) = self.all.get_mut(&id)
                && relay.may_read(number)
            {
                relay.line = is_open.then_some(number);
            }
            if let Some(buffer) = self.all.get(&id).and_then(|relay| relay.keeps) {
                keep(self.kept.entry(buffer).or_default(), &out);
            }
            if is_over {
                self.forget(outside, number);
            }
            self.write_on(outside, id, errors, &out);
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

    fn forget(&mut self, outside: &mut Outside, number: u64) {
        let Some(source) = self.sources.remove(&number) else { return };
        let Some(relay) = self.all.get_mut(&source.relay) else { return };
        relay.sources.remove(&number);
        relay.due.remove(&number);
        if relay.parked.extract_if(.., |parked| *parked == number).next().is_none() {
            outside.poller.remove(source.reader.as_fd());
        }
        relay.line.take_if(|line| *line == number);
    }

    /// Writes lines to where they go, at once or by a worker.
    fn write_on(&mut self, outside: &mut Outside, id: OperationId, errors: bool, out: &[u8]) {
        let Some(relay) = self.all.get_mut(&id) else { return };
        let table = &relay.targets[usize::from(errors)];
        let Some(fd) = table.get(1) else { return };
        let mut left = out;
        while !left.is_empty() {
            match stream::write_without_waiting(fd, first_lines(left, stream::PIPE_ROOM)) {
                Ok(count) => left = &left[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.refused(outside, id, Err(error)),
            }
        }
        if left.is_empty() {
            return;
        }
        let (table, left) = (table.clone(), left.to_vec());
        let job = move |control: &Control| Answer::Ended(print_lines(&table, &left, control));
        match outside.work.pool.submit(job) {
            Ok(handle) => {
                relay.is_writing = true;
                outside.work.waiting.insert(handle.ticket, Waiting::Relay(id));
            }
            Err(error) => self.refused(outside, id, Err(error)),
        }
    }

    /// A worker has written, or couldn't.
    pub fn written(&mut self, outside: &mut Outside, id: OperationId, ended: Ended) {
        let Some(relay) = self.all.get_mut(&id) else { return };
        relay.is_writing = false;
        match ended {
            Ok((Status::Exited(0), _)) => {}
            Ok(_) => self.refused(outside, id, Err(ErrorKind::BrokenPipe.into())),
            Err(error) => self.refused(outside, id, Ok(error.message)),
        }
        self.go_on(outside, id);
    }

    /// It can't be written any more: nobody reads, or something else is wrong.
    fn refused(&mut self, outside: &mut Outside, id: OperationId, why: Result<String, io::Error>) {
        let Some(mut relay) = self.all.remove(&id) else { return };
        for number in &relay.sources {
            let Some(source) = self.sources.remove(number) else { continue };
            if !relay.parked.contains(number) {
                outside.poller.remove(source.reader.as_fd());
            }
        }
        let result = match why {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reply::Truth(false)),
            Err(error) => Err(Refusal { message: plain(&error) }),
            Ok(message) => Err(Refusal { message }),
        };
        if relay.keeps.is_some() && relay.state == State::Open {
            (relay.sources, relay.due) = (BTreeSet::new(), BTreeSet::new());
            (relay.parked, relay.line) = (Vec::new(), None);
            relay.refused = Some(result);
            self.all.insert(id, relay);
        } else if matches!(relay.state, State::Open | State::Finishing) {
            outside.ready.push_back(Event::Done { operation: id, result });
        }
        self.tell_empty(outside);
    }
}

/// Adds to what is kept, and forgets the beginning of what is too much: one byte more than is told of says
/// whether a line begins there.
fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend_from_slice(bytes);
    if kept.len() > 2 * MOST_TOLD {
        kept.drain(..kept.len() - MOST_TOLD - 1);
    }
}

/// Writes everything, however long it takes: lines that fit into a pipe at once, so that others who
/// write to it don't cut them.
fn print_lines(table: &FdTable, mut bytes: &[u8], control: &Control) -> Ended {
    while !bytes.is_empty() {
        let lines = first_lines(bytes, stream::PIPE_ROOM);
        match stream::print(table, lines, control) {
            Ok((Status::Exited(0), _)) => bytes = &bytes[lines.len()..],
            ended => return ended,
        }
    }
    Ok((Status::Exited(0), None))
}
