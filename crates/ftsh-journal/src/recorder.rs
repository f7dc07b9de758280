//! Driver around another driver, which records the events that the machine receives.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::fd_graph::SharedInput;
use super::live_state::LiveState;
use super::remake::without_files;
use super::replay::ReplayedWorld;
use super::store::Store;
use super::writer::{Writer, changes_the_world};
use ftsh_machine::driver::{Driver, Durable};
use ftsh_machine::effect::{Effect, IoId, OperationId, Query, ViewId};
use ftsh_machine::event::{
    Blame, CommandStatus, Refusal, Reply, Returned, SpawnError, SpawnErrorKind, Suspension,
};
use ftsh_machine::outcome::Human;
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::{Deadline, Event, Machine, Outcome, Time};

/// Signal reported as the cause of a suspension when the journal cannot be written: SIGTERM.
const END: i32 = 15;
/// Time that a suspension waits for staged files to be committed.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Failure of a commit that the end of the shell interrupted.
const COMMIT_INTERRUPTED: &str = "the shell ended while files took their places";
/// Failure of a commit that the end of the shell prevented.
const COMMIT_NOT_BEGUN: &str = "the shell ended before files took their places";

/// Note about a standard input that has no recorded position any more.
const NO_POSITION: &str = "standard input is no file any more: it is read from where it is, not on";

/// Driver that passes effects to another driver and keeps a journal.
///
/// Only recorded effects are performed. If the journal cannot be written, no further effect begins,
/// and the next start continues the run.
pub struct Recorder<'a, D, S> {
    driver: &'a mut D,
    journal: Rc<RefCell<Writer<S>>>,
    /// Present time of the machine.
    now: Time,
    /// Moment at which this start suspends the run.
    deadline: Deadline,
    /// First event of a resumed run, already recorded.
    recorded: Option<Event>,
    /// Events of the driver that are not recorded yet.
    unrecorded: VecDeque<Event>,
    /// Events to deliver to the machine without a record.
    unjournaled: VecDeque<Event>,
    /// Commands requested in an earlier process and never begun.
    late: Vec<Effect>,
    /// Set when the machine has received the resumption and the lost commands.
    is_resumed: bool,
    progress: RecordingState,
}

/// State of recording.
enum RecordingState {
    Recording,
    /// Recording has ended, because the run is suspended.
    Suspended,
    /// Recording has ended, because the journal cannot be written.
    Failed(io::Error),
}

impl<'a, D: Durable, S: Store> Recorder<'a, D, S> {
    /// Returns a recorder of a new run, or an error if the beginning cannot be written.
    ///
    /// The run is suspended when the deadline passes.
    pub fn new(
        driver: &'a mut D,
        journal: Rc<RefCell<Writer<S>>>,
        deadline: Deadline,
    ) -> io::Result<Self> {
        let recorder = Self::around(driver, journal, deadline);
        let first = |journal: &mut Writer<S>| {
            journal.record_delivery(recorder.now, None)?;
            journal.commit()
        };
        first(&mut recorder.journal.borrow_mut())?;
        Ok(recorder)
    }

    /// Returns a recorder of a resumed run in a resumed journal.
    ///
    /// Restores the world of the run as far as possible. Returns an error if nothing was performed,
    /// because the result of a commit is unknown or the journal cannot be written.
    pub fn resume(
        driver: &'a mut D,
        journal: Rc<RefCell<Writer<S>>>,
        world: ReplayedWorld,
        deadline: Deadline,
    ) -> io::Result<Self> {
        let mut recorder = Self::around(driver, journal, deadline);
        // Before the record of this start: after an error, the next start is in the same situation.
        let mut committed_views = BTreeSet::new();
        for (view, directories) in world.alive.views() {
            if recorder.driver.take_over_view(view, directories)? {
                committed_views.insert(view);
            }
        }
        recorder.journal.borrow_mut().commit()?;
        let orphans = world.orphans(recorder.driver.now());
        if let Some(last) = orphans.iter().map(|(_, until)| *until).max() {
            let left = Human(last - recorder.driver.now());
            let note = format!(
                "branches that were on other machines may go on there for {left}: what comes after them waits"
            );
            recorder.log_note(&world.file, note);
        }
        recorder.driver.inherit(orphans);
        recorder.go_on(world, &committed_views);
        Ok(recorder)
    }

    /// Writes the resumption to the disk before any report of the resumption.
    ///
    /// Must be called first for a run that is not over.
    pub fn record_resumption(&mut self) -> io::Result<()> {
        if !self.is_recording() {
            return Ok(());
        }
        self.recorded = self.unrecorded.pop_front();
        self.now = self.now.max(self.driver.now());
        if let Some(event) = self.recorded.clone() {
            self.record_event(self.now, Some(&event));
        }
        match std::mem::replace(&mut self.progress, RecordingState::Recording) {
            RecordingState::Failed(error) => Err(error),
            progress => {
                self.progress = progress;
                Ok(())
            }
        }
    }

    fn around(driver: &'a mut D, journal: Rc<RefCell<Writer<S>>>, deadline: Deadline) -> Self {
        let now = driver.now();
        driver.record_commits(journal.borrow().run());
        let (unrecorded, unjournaled, late) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let progress = RecordingState::Recording;
        Self {
            driver,
            journal,
            now,
            deadline,
            recorded: None,
            unrecorded,
            unjournaled,
            late,
            is_resumed: false,
            progress,
        }
    }

    /// Writes the end of the run and returns true, or returns false if the run is suspended.
    ///
    /// Returns an error if the journal cannot be written.
    pub fn end(self, outcome: &Outcome) -> io::Result<bool> {
        match self.progress {
            RecordingState::Recording => self.journal.borrow_mut().end(outcome).map(|()| true),
            // The outcome is not recorded, but all work of this start has ended.
            RecordingState::Suspended => {
                self.journal.borrow_mut().nothing_is_left().map(|()| false)
            }
            RecordingState::Failed(error) => Err(error),
        }
    }

    /// Restores the world, and repeats the requests without an answer.
    fn go_on(&mut self, world: ReplayedWorld, committed_views: &BTreeSet<ViewId>) {
        let ReplayedWorld { alive, later, file, .. } = world;
        if let Err(reason) = self.remake(&alive, &file) {
            self.leave(later.len(), reason);
        }
        let mut committed = Vec::new();
        for view in alive.dropped_views() {
            self.driver.perform(Effect::DropView(view));
        }
        for effect in alive.in_flight() {
            match effect {
                Effect::CommitView { operation, view, .. } if committed_views.contains(view) => {
                    committed.push(*operation);
                    let result = Ok(Reply::Truth(true));
                    self.unrecorded.push_back(Event::Done { operation: *operation, result });
                }
                Effect::Commit { operation, .. } | Effect::CommitView { operation, .. } => {
                    let result = Ok(Reply::Incomplete(Refusal::new(COMMIT_INTERRUPTED)));
                    self.unrecorded.push_back(Event::Done { operation: *operation, result });
                }
                effect => self.perform_again(effect.clone()),
            }
        }
        if self.is_recording() {
            self.unrecorded.push_front(Event::Resumed { lost: alive.lost(), committed });
        }
        for effect in later {
            match effect {
                Effect::Run(_) | Effect::Exec(_) | Effect::Dispatch(_) if self.is_recording() => {
                    self.late.push(effect);
                }
                Effect::Commit { operation, .. } | Effect::CommitView { operation, .. } => {
                    let result = Err(Refusal::new(COMMIT_NOT_BEGUN));
                    self.unrecorded.push_back(Event::Done { operation, result });
                }
                effect => {
                    self.journal.borrow_mut().perform_late(&effect);
                    self.perform_again(effect);
                }
            }
        }
        if !self.is_recording() {
            self.unjournaled.append(&mut self.unrecorded);
        }
    }

    /// Begins the commands that were never begun, if the machine still awaits them.
    fn begin_late(&mut self, machine: &Machine) {
        for effect in std::mem::take(&mut self.late) {
            let process = match &effect {
                Effect::Run(run) | Effect::Exec(run) => run.process,
                Effect::Dispatch(branch) => branch.process,
                _ => continue,
            };
            if machine.awaits(process) {
                self.journal.borrow_mut().perform_late(&effect);
                self.perform_again(effect);
            }
        }
    }

    /// Performs an effect that an earlier process requested.
    fn perform_again(&mut self, effect: Effect) {
        if self.is_recording() || !changes_the_world(&effect) {
            self.pass_on(effect);
        } else {
            self.refuse(effect);
        }
    }

    /// Restores the world, or returns the reason to suspend the run before the end.
    fn remake(&mut self, alive: &LiveState, file: &Arc<str>) -> Result<(), Suspension> {
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
                self.log_note(file, format!("what was open can't be opened again: {refusal}"));
                // If the second attempt fails as well, each user of the table fails.
                let _ = self.open(operation, open(without_files(&redirects)))?;
            }
        }
        let read = alive.positions.get(&SharedInput::STANDARD).copied().filter(|read| *read > 0);
        if read.is_some() && self.driver.position(IoId::INHERITED, 0) != read {
            self.log_note(file, NO_POSITION.into());
        }
        Ok(())
    }

    /// Opens a table again and waits for the answer, or returns the reason to suspend the run.
    fn open(
        &mut self,
        requested: OperationId,
        effect: Effect,
    ) -> Result<Result<Reply, Refusal>, Suspension> {
        self.driver.perform(effect);
        loop {
            match self.driver.wait(self.deadline.timer_moment()) {
                Some(Event::Done { operation, result }) if operation == requested => {
                    return Ok(result);
                }
                Some(Event::Interrupted(signal)) => return Err(Suspension::Signal(signal)),
                Some(event) => self.unrecorded.push_back(event),
                None if self.is_past_deadline() => return Err(Suspension::Deadline),
                None => {}
            }
        }
    }

    /// Writes a note to the log.
    fn log_note(&mut self, file: &Arc<str>, note: String) {
        let (at, file) = (self.driver.now(), Arc::clone(file));
        let record = LogRecord::of_shell(at, file, 0, LogEvent::Note(note));
        // The note may explain a later failure.
        let record = LogRecord { level: Level::FAILURES, ..record };
        self.driver.perform(Effect::Log(record));
    }

    fn is_recording(&self) -> bool {
        matches!(self.progress, RecordingState::Recording)
    }

    fn is_past_deadline(&self) -> bool {
        self.deadline.is_past(self.driver.now())
    }

    /// Writes to the journal, and returns true on success.
    ///
    /// The first failure is delivered to the machine as a suspension.
    fn record(&mut self, record: impl FnOnce(&mut Writer<S>) -> io::Result<()>) -> bool {
        if !self.is_recording() {
            return false;
        }
        let result = record(&mut self.journal.borrow_mut());
        result.map_err(|error| self.fail(error)).is_ok()
    }

    fn fail(&mut self, error: io::Error) {
        self.progress = RecordingState::Failed(error);
        self.unjournaled.push_back(Event::Suspended(Suspension::Signal(END)));
    }

    /// Waits for the next event and records the event. Returns `None` if the run is suspended
    /// instead.
    fn next_event(&mut self, until: Time) -> Option<Event> {
        if let Some(event) = self.recorded.take() {
            self.is_resumed = true;
            return Some(event);
        }
        let latest = until.min(self.deadline.timer_moment());
        let event = self.unrecorded.pop_front().or_else(|| self.wait_committing(latest));
        match event {
            Some(Event::Interrupted(signal)) => {
                self.suspend(Suspension::Signal(signal));
                return None;
            }
            None if self.is_recording() && latest < until && self.is_past_deadline() => {
                self.suspend(Suspension::Deadline);
                return None;
            }
            _ => {}
        }
        let now = self.now.max(self.driver.now());
        // Waking the machine before `until` changes nothing.
        if event.is_some() || now >= until {
            self.now = now;
            self.is_resumed |= matches!(event, Some(Event::Resumed { .. }));
            self.record_event(now, event.as_ref());
        }
        event
    }

    /// Waits for an event, and commits pending entries before a long wait.
    fn wait_committing(&mut self, until: Time) -> Option<Event> {
        let commit = self.journal.borrow_mut().wait(self.driver.now());
        let soon = commit.map_or(until, |commit| until.min(commit));
        let event = self.driver.wait(soon);
        if commit.is_none() || event.is_some() || self.driver.now() < soon {
            return event;
        }
        let is_recorded = self.record(Writer::commit);
        if is_recorded && soon < until { self.driver.wait(until) } else { None }
    }

    /// Suspends the run.
    ///
    /// Events that have happened by now are recorded first and delivered later, because the machine
    /// would answer them with new requests.
    fn suspend(&mut self, reason: Suspension) {
        self.journal.borrow_mut().stop_deliveries();
        self.driver.catch_up();
        let mut events = VecDeque::new();
        // A commit of staged files takes a moment, and afterwards its result is known.
        let mut limit = self.driver.now() + COMMIT_TIMEOUT;
        while self.is_recording() {
            let now = self.driver.now();
            let until =
                if self.journal.borrow().is_committing_files() { limit.max(now) } else { now };
            match self.unrecorded.pop_front().or_else(|| self.driver.wait(until)) {
                // A second signal ends the wait.
                Some(event @ Event::Interrupted(_)) => {
                    limit = now;
                    events.push_back(event);
                }
                Some(event) => {
                    // An atomic attempt is lost as a whole and repeated. With a recorded last
                    // success the attempt would begin to commit, and fail.
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
        self.unjournaled.append(&mut events);
    }

    /// Ends recording; the last `late` effects were never begun.
    fn leave(&mut self, late: usize, reason: Suspension) {
        let now = self.driver.now();
        if self.record(|journal| journal.suspend(now, late, reason)) {
            self.progress = RecordingState::Suspended;
            self.unjournaled.push_back(Event::Suspended(reason));
        }
    }

    /// Records the changes of the world before an event, then the event.
    fn record_event(&mut self, now: Time, event: Option<&Event>) {
        if let Some(event) = event
            && let Err(error) = self.record_changes(event)
        {
            return self.fail(error);
        }
        self.record(|journal| journal.record_delivery(now, event));
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

    /// Performs an effect.
    fn pass_on(&mut self, effect: Effect) {
        let kept = self.journal.borrow().kept(&effect);
        let effect = match effect {
            // A program that replaces the shell runs as a child instead, to record its end.
            Effect::Run(mut run) | Effect::Exec(mut run) => {
                run.deadline = run.deadline.min(self.deadline);
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

    /// Answers an effect that is not performed.
    fn refuse(&mut self, effect: Effect) {
        let message = || match &self.progress {
            RecordingState::Failed(error) => format!("the journal can't be written: {error}"),
            RecordingState::Recording | RecordingState::Suspended => {
                "the run is suspended".to_owned()
            }
        };
        let refusal = |operation| {
            let result = Err(Refusal::new(message()));
            Event::Done { operation, result }
        };
        let event = match effect {
            Effect::Run(run) | Effect::Exec(run) => {
                let error = SpawnError::new(SpawnErrorKind::System, message());
                Event::SpawnFailed { process: run.process, error }
            }
            Effect::Dispatch(branch) => {
                let returned =
                    Returned::NotBegun { node: None, why: message(), blame: Blame::Request };
                Event::Returned { process: branch.process, returned }
            }
            Effect::Open { operation, .. }
            | Effect::Commit { operation, .. }
            | Effect::CommitView { operation, .. }
            | Effect::Query {
                operation,
                query: Query::RecordedWords(_) | Query::TakeBack(_),
                ..
            } => refusal(operation),
            Effect::Enter(entry) => refusal(entry.operation),
            Effect::BeginView(begin) => refusal(begin.operation),
            _ => return,
        };
        self.unjournaled.push_back(event);
    }
}

/// Returns true if the end of the shell may have caused the failure of a command. A signal often
/// reaches the whole process group.
fn is_cancelled(event: &Event, reason: Suspension) -> bool {
    let failed =
        matches!(event, Event::Exited { status, .. } if *status != CommandStatus::Exited(0));
    failed && matches!(reason, Suspension::Signal(_))
}

impl<D: Durable, S: Store> Driver for Recorder<'_, D, S> {
    /// Returns the time of the last event, because each time that the machine reads has to be in
    /// the journal.
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
        if self.is_recording() && self.unjournaled.is_empty() {
            let event = self.next_event(until);
            if self.is_recording() {
                return event;
            }
            self.unjournaled.extend(event);
        }
        let event = self.unjournaled.pop_front().or_else(|| self.driver.wait(until));
        self.now = self.now.max(self.driver.now());
        event
    }
}
