//! A driver around a driver, which keeps a journal of what the machine is told.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::fd_graph::Input;
use super::live_state::Alive;
use super::remake::without_files;
use super::replay::World;
use super::store::Store;
use super::writer::{Writer, changes_the_world};
use ftsh_machine::driver::{Driver, Durable};
use ftsh_machine::effect::{Effect, IoId, OperationId};
use ftsh_machine::event::{
    Blame, Refusal, Reply, Returned, SpawnError, SpawnErrorKind, Status, Suspension,
};
use ftsh_machine::outcome::Human;
use ftsh_machine::record::{Level, LogEvent, Record};
use ftsh_machine::{Event, Machine, Outcome, Time};

/// What a run is suspended by when its journal can't be written: SIGTERM.
const END: i32 = 15;
/// How long a run that is to be suspended waits for files that are taking their places.
const SETTLING: Duration = Duration::from_secs(2);
/// What is said of files that were about to take their places.
const HALF_SETTLED: &str = "the shell ended while files took their places";
/// What is said of files that hadn't begun to.
const NOT_SETTLED: &str = "the shell ended before files took their places";

/// What is said of an input that was read up to a place which this one doesn't have.
const NO_FILE: &str = "standard input is no file any more: it is read from where it is, not on";

/// Has another driver do everything, and keeps a journal. What isn't recorded doesn't happen: if the
/// journal can't be written, nothing more is begun, and the run is left to the next start.
pub struct Recorder<'a, D, S> {
    driver: &'a mut D,
    journal: Rc<RefCell<Writer<S>>>,
    /// The moment that the machine is told.
    now: Time,
    /// When this start is to leave the run to the next one.
    deadline: Option<Time>,
    /// What the machine is told first, and is recorded.
    recorded: Option<Event>,
    /// What the driver has said and isn't recorded yet.
    unrecorded: VecDeque<Event>,
    /// What the machine is told and isn't in the journal.
    untold: VecDeque<Event>,
    /// Commands that an earlier process was asked for and had never begun.
    late: Vec<Effect>,
    /// Whether the machine was told that the run goes on, and what is lost with that.
    is_resumed: bool,
    progress: Progress,
}

/// How far recording has come.
enum Progress {
    Recording,
    /// The rest isn't of the run.
    Suspended,
    /// The journal can't be written.
    Failed(io::Error),
}

impl<'a, D: Durable, S: Store> Recorder<'a, D, S> {
    /// A recorder of a run that begins; an error if that can't be written. When the deadline passes, the
    /// run is left to the next start.
    pub fn new(
        driver: &'a mut D,
        journal: Rc<RefCell<Writer<S>>>,
        deadline: Option<Time>,
    ) -> io::Result<Self> {
        let recorder = Self::around(driver, journal, deadline);
        let first = |journal: &mut Writer<S>| {
            journal.tell(recorder.now, None)?;
            journal.commit()
        };
        first(&mut recorder.journal.borrow_mut())?;
        Ok(recorder)
    }

    /// A recorder of a run that goes on, in a journal that does. The world that it had is made again, as
    /// far as that can be.
    pub fn resume(
        driver: &'a mut D,
        journal: Rc<RefCell<Writer<S>>>,
        world: World,
        deadline: Option<Time>,
    ) -> io::Result<Self> {
        let mut recorder = Self::around(driver, journal, deadline);
        recorder.journal.borrow_mut().commit()?;
        let orphans = world.orphans(recorder.driver.now());
        if let Some(last) = orphans.iter().map(|(_, until)| *until).max() {
            let left = Human(last - recorder.driver.now());
            let note = format!(
                "branches that were on other machines may go on there for {left}: what comes after them waits"
            );
            recorder.say(&world.file, note);
        }
        recorder.driver.inherit(orphans);
        recorder.go_on(world);
        Ok(recorder)
    }

    /// Has it on the disk that the run goes on before anybody is told. To be called first of all for a run that
    /// isn't over.
    pub fn record_resumption(&mut self) -> io::Result<()> {
        if !self.is_recording() {
            return Ok(());
        }
        self.recorded = self.unrecorded.pop_front();
        self.now = self.now.max(self.driver.now());
        if let Some(event) = self.recorded.clone() {
            self.record_event(self.now, Some(&event));
        }
        match std::mem::replace(&mut self.progress, Progress::Recording) {
            Progress::Failed(error) => Err(error),
            progress => {
                self.progress = progress;
                Ok(())
            }
        }
    }

    fn around(driver: &'a mut D, journal: Rc<RefCell<Writer<S>>>, deadline: Option<Time>) -> Self {
        let now = driver.now();
        let (unrecorded, untold, late) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let progress = Progress::Recording;
        Self {
            driver,
            journal,
            now,
            deadline,
            recorded: None,
            unrecorded,
            untold,
            late,
            is_resumed: false,
            progress,
        }
    }

    /// Writes how the run ended, if it is over; it isn't if it is left to the next start. An error says why
    /// the journal can't be written.
    pub fn end(self, outcome: &Outcome) -> io::Result<bool> {
        match self.progress {
            Progress::Recording => self.journal.borrow_mut().end(outcome).map(|()| true),
            // It is over when all that it has started is.
            Progress::Suspended => self.journal.borrow_mut().nothing_is_left().map(|()| false),
            Progress::Failed(error) => Err(error),
        }
    }

    /// Makes the world again, and asks for what wasn't answered.
    fn go_on(&mut self, world: World) {
        let World { alive, later, file, .. } = world;
        if let Err(reason) = self.remake(&alive, &file) {
            self.leave(later.len(), reason);
        }
        for effect in alive.flights() {
            match effect {
                Effect::Settle { operation, .. } => {
                    let result = Ok(Reply::Text(HALF_SETTLED.into()));
                    self.unrecorded.push_back(Event::Done { operation: *operation, result });
                }
                effect => self.again(effect.clone()),
            }
        }
        if self.is_recording() {
            self.unrecorded.push_front(Event::Resumed { lost: alive.lost() });
        }
        for effect in later {
            match effect {
                Effect::Run(_) | Effect::Exec(_) | Effect::Dispatch(_) if self.is_recording() => {
                    self.late.push(effect);
                }
                Effect::Settle { operation, .. } => {
                    let result = Err(Refusal { message: NOT_SETTLED.into() });
                    self.unrecorded.push_back(Event::Done { operation, result });
                }
                effect => {
                    self.journal.borrow_mut().perform_late(&effect);
                    self.again(effect);
                }
            }
        }
        if !self.is_recording() {
            self.untold.append(&mut self.unrecorded);
        }
    }

    /// Begins the commands that were never begun, where the machine still waits for them.
    fn begin_late(&mut self, machine: &Machine) {
        for effect in std::mem::take(&mut self.late) {
            let process = match &effect {
                Effect::Run(run) | Effect::Exec(run) => run.process,
                Effect::Dispatch(branch) => branch.process,
                _ => continue,
            };
            if machine.awaits(process) {
                self.journal.borrow_mut().perform_late(&effect);
                self.again(effect);
            }
        }
    }

    /// Has the driver carry out what was asked for before.
    fn again(&mut self, effect: Effect) {
        if self.is_recording() || !changes_the_world(&effect) {
            self.pass_on(effect);
        } else {
            self.refuse(effect);
        }
    }

    /// Makes the world again; it may have to be left before that is done.
    fn remake(&mut self, alive: &Alive, file: &Arc<str>) -> Result<(), Suspension> {
        for effect in alive.remade() {
            let Effect::Open { operation, io, base, directory, umask, redirects } = effect else {
                self.driver.perform(effect);
                continue;
            };
            let open = |redirects| {
                let directory = directory.clone();
                Effect::Open { operation, io, base, directory, umask, redirects }
            };
            if let Err(refusal) = self.open(operation, open(redirects.clone()))? {
                self.say(file, format!("what was open can't be opened again: {refusal}"));
                // If that fails as well, whoever uses it fails.
                let _ = self.open(operation, open(without_files(&redirects)))?;
            }
        }
        let read = alive.positions.get(&Input::STANDARD).copied().filter(|read| *read > 0);
        if read.is_some() && self.driver.position(IoId::INHERITED, 0) != read {
            self.say(file, NO_FILE.into());
        }
        Ok(())
    }

    /// Has a table made again, and waits for the answer, unless the run is to be left before that.
    fn open(
        &mut self,
        asked: OperationId,
        effect: Effect,
    ) -> Result<Result<Reply, Refusal>, Suspension> {
        self.driver.perform(effect);
        loop {
            match self.driver.wait(self.deadline.unwrap_or(Time::NEVER)) {
                Some(Event::Done { operation, result }) if operation == asked => return Ok(result),
                Some(Event::Interrupted(signal)) => return Err(Suspension::Signal(signal)),
                Some(event) => self.unrecorded.push_back(event),
                None if self.is_late() => return Err(Suspension::Deadline),
                None => {}
            }
        }
    }

    /// Tells people something, in the log.
    fn say(&mut self, file: &Arc<str>, note: String) {
        let (at, file) = (self.driver.now(), Arc::clone(file));
        let record = Record::of_shell(at, file, 0, LogEvent::Note(note));
        // It may be why something fails.
        let record = Record { level: Level::FAILURES, ..record };
        self.driver.perform(Effect::Log(record));
    }

    fn is_recording(&self) -> bool {
        matches!(self.progress, Progress::Recording)
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.driver.now() >= deadline)
    }

    /// Whether something could be recorded. Once it couldn't, the machine is told.
    fn record(&mut self, record: impl FnOnce(&mut Writer<S>) -> io::Result<()>) -> bool {
        if !self.is_recording() {
            return false;
        }
        let result = record(&mut self.journal.borrow_mut());
        result.map_err(|error| self.fail(error)).is_ok()
    }

    fn fail(&mut self, error: io::Error) {
        self.progress = Progress::Failed(error);
        self.untold.push_back(Event::Suspended(Suspension::Signal(END)));
    }

    /// Waits for what the machine is told next, and records it, unless it is to be told that the run is left.
    fn hear(&mut self, until: Time) -> Option<Event> {
        if let Some(event) = self.recorded.take() {
            self.is_resumed = true;
            return Some(event);
        }
        let latest = until.min(self.deadline.unwrap_or(Time::NEVER));
        let event = self.unrecorded.pop_front().or_else(|| self.listen(latest));
        match event {
            Some(Event::Interrupted(signal)) => {
                self.suspend(Suspension::Signal(signal));
                return None;
            }
            None if self.is_recording() && latest < until && self.is_late() => {
                self.suspend(Suspension::Deadline);
                return None;
            }
            _ => {}
        }
        let now = self.now.max(self.driver.now());
        // To hear of a moment in between changes nothing.
        if event.is_some() || now >= until {
            self.now = now;
            self.is_resumed |= matches!(event, Some(Event::Resumed { .. }));
            self.record_event(now, event.as_ref());
        }
        event
    }

    /// Waits, and has what is pending on the disk before that takes long.
    fn listen(&mut self, until: Time) -> Option<Event> {
        let commit = self.journal.borrow_mut().wait(self.driver.now());
        let soon = commit.map_or(until, |commit| until.min(commit));
        let event = self.driver.wait(soon);
        if commit.is_none() || event.is_some() || self.driver.now() < soon {
            return event;
        }
        let is_recorded = self.record(Writer::commit);
        if is_recorded && soon < until { self.driver.wait(until) } else { None }
    }

    /// Leaves the run to the next start. What has happened by now is recorded, but the machine is told of
    /// it afterwards: it would ask for more.
    fn suspend(&mut self, reason: Suspension) {
        self.journal.borrow_mut().stop_telling();
        self.driver.catch_up();
        let mut events = VecDeque::new();
        // Files that are taking their places are there in a moment, and then it is known whether they are.
        let mut patience = self.driver.now() + SETTLING;
        while self.is_recording() {
            let now = self.driver.now();
            let until = if self.journal.borrow().is_settling() { patience.max(now) } else { now };
            match self.unrecorded.pop_front().or_else(|| self.driver.wait(until)) {
                // Another signal is impatience.
                Some(event @ Event::Interrupted(_)) => {
                    patience = now;
                    events.push_back(event);
                }
                Some(event) => {
                    // An attempt that is all or nothing is lost as a whole, and made again: with its last
                    // success it would have begun to take place, and fail.
                    let is_of_attempt = self.journal.borrow().is_in_attempt(&event);
                    if !is_of_attempt && !is_cancelled(&event, reason) {
                        self.record_event(self.driver.now(), Some(&event));
                    }
                    events.push_back(event);
                }
                None if self.driver.now() >= until => break,
                None => {}
            }
        }
        self.leave(0, reason);
        self.untold.append(&mut events);
    }

    /// The rest isn't of the run; so many effects were never begun.
    fn leave(&mut self, late: usize, reason: Suspension) {
        let now = self.driver.now();
        if self.record(|journal| journal.suspend(now, late, reason)) {
            self.progress = Progress::Suspended;
            self.untold.push_back(Event::Suspended(reason));
        }
    }

    /// Records what the machine is going to be told, and what the world came to by that.
    fn record_event(&mut self, now: Time, event: Option<&Event>) {
        if let Some(event) = event
            && let Err(error) = self.record_changes(event)
        {
            return self.fail(error);
        }
        self.record(|journal| journal.tell(now, event));
    }

    fn record_changes(&mut self, event: &Event) -> io::Result<()> {
        let mut journal = self.journal.borrow_mut();
        let due = journal.due(event);
        for (buffer, from) in due.buffers {
            let written = self.driver.written(buffer, from)?;
            if let Some(written) = written
                && !(written.from == from && written.bytes.is_empty())
            {
                journal.written(buffer, &written)?;
            }
        }
        for reading in due.inputs {
            if let Some(at) = self.driver.position(reading.io, reading.descriptor) {
                journal.position(&reading, at);
            }
        }
        Ok(())
    }

    /// Has the driver carry out an effect.
    fn pass_on(&mut self, effect: Effect) {
        let kept = self.journal.borrow().kept(&effect);
        let effect = match effect {
            // Its end is to be known.
            Effect::Run(mut run) | Effect::Exec(mut run) => {
                run.deadline = run.deadline.into_iter().chain(self.deadline).min();
                Effect::Run(run)
            }
            effect => effect,
        };
        self.driver.perform(effect);
        if let Some(reading) = kept
            && let Some(at) = self.driver.position(reading.io, reading.descriptor)
        {
            self.journal.borrow_mut().position(&reading, at);
        }
    }

    /// Answers what isn't carried out.
    fn refuse(&mut self, effect: Effect) {
        let message = || match &self.progress {
            Progress::Failed(error) => format!("the journal can't be written: {error}"),
            Progress::Recording | Progress::Suspended => "the run is suspended".to_owned(),
        };
        let refusal = |operation| {
            let result = Err(Refusal { message: message() });
            Event::Done { operation, result }
        };
        let event = match effect {
            Effect::Run(run) | Effect::Exec(run) => {
                let error = SpawnError { kind: SpawnErrorKind::System, message: message() };
                Event::SpawnFailed { process: run.process, error }
            }
            Effect::Dispatch(branch) => {
                let returned =
                    Returned::NotBegun { node: None, why: message(), blame: Blame::Request };
                Event::Returned { process: branch.process, returned }
            }
            Effect::Open { operation, .. } | Effect::Settle { operation, .. } => refusal(operation),
            Effect::Enter(entry) => refusal(entry.operation),
            _ => return,
        };
        self.untold.push_back(event);
    }
}

/// Whether a command may have ended by what ends the shell: often a signal comes to all of them.
fn is_cancelled(event: &Event, reason: Suspension) -> bool {
    let failed = matches!(event, Event::Exited { status, .. } if *status != Status::Exited(0));
    failed && matches!(reason, Suspension::Signal(_))
}

impl<D: Durable, S: Store> Driver for Recorder<'_, D, S> {
    /// The moment of the last event: whatever the machine is told is in the journal.
    fn now(&self) -> Time {
        self.now
    }

    fn perform(&mut self, effect: Effect) {
        if let Effect::Dispatch(branch) = &effect {
            let by = self.driver.outlived_by(branch);
            self.journal.borrow_mut().outlived_by(by);
        }
        if self.record(|journal| journal.perform(&effect)) || !changes_the_world(&effect) {
            self.pass_on(effect);
        } else {
            self.refuse(effect);
        }
    }

    fn watch(&mut self, machine: &Machine) {
        if self.is_resumed {
            self.begin_late(machine);
        }
        self.driver.watch(machine);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        if self.is_recording() && self.untold.is_empty() {
            let event = self.hear(until);
            if self.is_recording() {
                return event;
            }
            self.untold.extend(event);
        }
        let event = self.untold.pop_front().or_else(|| self.driver.wait(until));
        self.now = self.now.max(self.driver.now());
        event
    }
}
