//! A world with many faults: the modelled world, with faults between the world and the machine.

mod cluster;
mod faults;
mod ledger;
mod mail;
mod models;
mod shared;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use ftsh_machine::channels::{Admission, Passed};
use ftsh_machine::effect::{Action, OperationId, PassId, ProcessId, Run, ScopeId};
use ftsh_machine::event::{Refusal, Reply, SpawnError, SpawnErrorKind};
use ftsh_machine::{Effect, Event, Time};
use ftsh_sim::cluster::{NodeAttempt, SimulatedCluster};
use ftsh_sim::{Ask, Call, Due, Model, Shell, SimulatedChannels, World};

pub(crate) use self::faults::Faults;
use self::ledger::Ledger;
use self::mail::Mail;
pub(crate) use self::models::model;
pub(crate) use self::shared::Shared;
use crate::dice::Dice;
use crate::program::LIBRARY;

/// Time after which no event is expected any more.
const MAX_QUIET: Duration = Duration::from_secs(3600);

/// Result of a wait.
pub(crate) enum WaitResult {
    Event(Event),
    Nothing,
    /// No event will ever come.
    Never,
}

/// A world with faults.
pub(crate) struct Faulty {
    shell: Shell,
    around: Around,
    mail: Mail,
    dice: Dice,
    pub faults: Faults,
    /// Waits at which the shell dies, and another one resumes the run.
    restarts: BTreeSet<Time>,
    /// Commands without a reported end.
    commands: BTreeSet<ProcessId>,
    /// Attempts that request places in channels, and those that hold one.
    entries: BTreeMap<OperationId, PassId>,
    inside: BTreeSet<PassId>,
    /// Pending operations.
    hung: BTreeSet<OperationId>,
    /// Terminated scopes that are not empty yet.
    ending: BTreeSet<ScopeId>,
    /// Terminated commands.
    terminated: BTreeSet<ProcessId>,
    /// SIGKILLs in progress.
    kills: BTreeMap<(Time, u64), Effect>,
    /// Number of events at the present moment, which lets time pass during endless computation.
    idle: u32,
    ledger: Ledger,
    cluster: SimulatedCluster,
    /// Time that branches elsewhere continue after the shell.
    outlived: Duration,
    /// Event that is delivered first.
    first: VecDeque<Event>,
}

/// The world without the shell.
struct Around {
    now: Time,
    dice: Dice,
    future: BTreeMap<(Time, u64), Due>,
    count: u64,
    /// First staged file that cannot be committed.
    fails: Option<usize>,
    /// True if the next view cannot begin.
    is_uncovered: bool,
    /// True if another process has changed the files of the next view to commit.
    conflicts: bool,
    channels: SimulatedChannels,
    /// Replies of channels.
    replies: Vec<Event>,
    /// Next time at which channels check the clock.
    wake: Option<Time>,
    /// Probability that the processes of a scope cannot be read.
    unwatched: f64,
}

impl World for Around {
    fn now(&self) -> Time {
        self.now
    }

    fn start(&mut self, _: ProcessId, call: &Call) -> Option<Model> {
        model(call, &mut self.dice)
    }

    fn schedule(&mut self, at: Time, due: Due) {
        self.count += 1;
        self.future.insert((at, self.count), due);
    }

    fn settle(&mut self, _: usize) -> Option<usize> {
        self.fails.take()
    }

    fn covers(&mut self) -> bool {
        !std::mem::take(&mut self.is_uncovered)
    }

    fn conflicts(&mut self) -> bool {
        std::mem::take(&mut self.conflicts)
    }

    fn resources(&mut self) -> (u64, f64) {
        (*self.dice.pick(&[1_000_000_000, 3_000_000_000]), *self.dice.pick(&[2.0, 9.5]))
    }

    fn can_watch(&mut self) -> bool {
        !self.dice.chance(self.unwatched)
    }

    fn ask(&mut self, ask: Ask) {
        let replies = self.channels.ask(0, ask, self.now);
        self.send(replies);
    }
}

impl Around {
    fn send(&mut self, replies: Vec<(usize, Event)>) {
        self.replies.extend(replies.into_iter().map(|(_, event)| event));
        self.wake = self.channels.wake().or(self.wake);
    }
}

impl Faulty {
    pub(crate) fn new(dice: &mut Dice, library: &str, durations: &str) -> Self {
        let faults = Faults::random(dice);
        let mut shell = Shell::default();
        for (path, content) in [(LIBRARY, library), ("/data", "one\ntwo\n"), ("/a.c", "")] {
            shell.add_file(path, content);
        }
        shell.add_durations(durations);
        shell.set_stdin("first\nsecond\nthird\n");
        let mut mail = Mail::default();
        for (at, signal) in &faults.signals {
            mail.post(Time::after(*at), Event::Interrupted(*signal));
        }
        let restarts = faults.restarts.iter().map(|at| Time::after(*at)).collect();
        let cluster = cluster::random(dice, faults.elsewhere);
        let around = Around {
            now: Time::START,
            dice: dice.fork(),
            future: BTreeMap::new(),
            count: 0,
            fails: None,
            is_uncovered: false,
            conflicts: false,
            channels: SimulatedChannels::default(),
            replies: Vec::new(),
            wake: None,
            unwatched: faults.unwatched,
        };
        Self {
            shell,
            around,
            mail,
            dice: dice.fork(),
            faults,
            restarts,
            commands: BTreeSet::new(),
            entries: BTreeMap::new(),
            inside: BTreeSet::new(),
            hung: BTreeSet::new(),
            ending: BTreeSet::new(),
            terminated: BTreeSet::new(),
            kills: BTreeMap::new(),
            idle: 0,
            ledger: Ledger::default(),
            cluster,
            outlived: Duration::ZERO,
            first: VecDeque::new(),
        }
    }

    /// The shell itself only ends when it is replaced: no recorded driver reports its own end.
    pub(crate) fn without_restarts(mut self) -> Self {
        self.restarts.clear();
        self
    }

    pub(crate) fn now(&self) -> Time {
        self.around.now
    }

    /// Returns the living processes.
    pub(crate) fn alive(&self) -> BTreeSet<ProcessId> {
        self.shell.alive().collect()
    }

    /// True if actions are in progress that may never lead to an event.
    pub(crate) fn is_busy(&self) -> bool {
        // An attempt that holds a place and waits for another one may wait forever.
        !self.hung.is_empty()
            || self.shell.alive().next().is_some()
            || !self.around.channels.is_quiet()
            || self.cluster.is_busy()
    }

    /// Returns the results of branches that were dispatched.
    pub(crate) fn attempts(&self) -> &[NodeAttempt] {
        self.cluster.attempts()
    }

    /// True if no attempt holds or awaits a place in a channel.
    pub(crate) fn channels_are_quiet(&self) -> bool {
        self.around.channels.is_quiet()
    }

    /// Sends a signal to the shell.
    pub(crate) fn interrupt(&mut self, signal: i32) {
        self.mail.post(self.around.now, Event::Interrupted(signal));
    }

    /// Advances the time for an action of the machine.
    pub(crate) fn spend(&mut self, time: Duration) {
        self.around.now = self.around.now + time;
    }

    /// Ends all faults.
    pub(crate) fn calm_down(&mut self) {
        self.restarts.clear();
        self.mail.forget_signals();
        self.faults = Faults::default();
        self.around.unwatched = 0.0;
    }

    pub(crate) fn perform(&mut self, effect: Effect) {
        match &effect {
            Effect::Run(run) | Effect::Exec(run) => _ = self.commands.insert(run.process),
            Effect::Dispatch(branch) => {
                self.commands.insert(branch.process);
                self.outlived = self.outlived.max(self.cluster.outlived_by(branch));
            }
            Effect::Enter(entry) => _ = self.entries.insert(entry.operation, entry.pass),
            Effect::Leave(pass, _) => _ = self.inside.remove(pass),
            _ => {}
        }
        let Self { faults, dice, .. } = self;
        match effect {
            Effect::Log(_) => {}
            Effect::Run(run) | Effect::Exec(run) if faults.happens(dice, "spawn", faults.spawn) => {
                self.refuse(&run);
            }
            Effect::Run(run) | Effect::Exec(run) => {
                if matches!(run.action, Action::Program { .. }) && self.dice.chance(0.1) {
                    let event = Event::Spawned { process: run.process, pid: 1 };
                    self.mail.post(self.around.now, event);
                }
                self.forward(Effect::Run(run));
            }
            Effect::Open { operation, redirects, .. }
                if faults.happens(dice, "hang", faults.hang) =>
            {
                self.shell.put_off(&redirects);
                self.hung.insert(operation);
            }
            Effect::Query { operation, .. } if faults.happens(dice, "hang", faults.hang) => {
                self.hung.insert(operation);
            }
            Effect::Open { operation, .. } if faults.happens(dice, "open", faults.open) => {
                self.post(Event::Done { operation, result: Err(by_system("can't be opened")) });
            }
            Effect::Query { operation, .. } if faults.happens(dice, "query", faults.query) => {
                self.post(Event::Done { operation, result: Err(by_system("can't be known")) });
            }
            Effect::Enter(entry) if faults.happens(dice, "channel", faults.channel) => {
                let result = Err(Refusal::new("cannot use the channel"));
                self.post(Event::Done { operation: entry.operation, result });
            }
            Effect::Commit { operation, .. } | Effect::CommitView { operation, .. }
                if faults.happens(dice, "hang", faults.hang) =>
            {
                self.hung.insert(operation);
            }
            Effect::Commit { operation, files: drafts } => {
                if faults.happens(dice, "settle", faults.settle) {
                    self.around.fails = Some(self.dice.number(0, drafts.len() - 1));
                }
                self.forward(Effect::Commit { operation, files: drafts });
            }
            Effect::BeginView(begin) if faults.happens(dice, "hang", faults.hang) => {
                self.hung.insert(begin.operation);
            }
            Effect::BeginView(begin) => {
                self.around.is_uncovered = faults.happens(dice, "cover", faults.open);
                self.forward(Effect::BeginView(begin));
            }
            Effect::CommitView { operation, view, files, is_inner } => {
                self.around.conflicts = faults.happens(dice, "conflict", faults.settle);
                if faults.happens(dice, "settle", faults.settle) {
                    self.around.fails = Some(self.dice.number(0, files.len()));
                }
                self.forward(Effect::CommitView { operation, view, files, is_inner });
            }
            Effect::Abandon(operation) => {
                self.hung.remove(&operation);
                self.forward(Effect::Abandon(operation));
            }
            Effect::Kill { scope, strong } if faults.happens(dice, "kill", faults.unkillable) => {
                let at = self.around.now + self.dice.time(Duration::from_secs(60));
                self.around.count += 1;
                self.kills.insert((at, self.around.count), Effect::Kill { scope, strong });
                if !strong && let Some(event) = self.cluster.filter_event(Event::Emptied { scope })
                {
                    self.report(event);
                }
            }
            effect => {
                if let Effect::Terminate(scope) = effect {
                    self.ending.insert(scope);
                    self.terminated.extend(self.shell.members(scope));
                }
                self.forward(effect);
            }
        }
    }

    fn forward(&mut self, effect: Effect) {
        if let Some(effect) = self.cluster.perform(effect, &mut self.shell, &mut self.around) {
            self.shell.perform(effect, &mut self.around);
        }
        self.collect();
    }

    fn refuse(&mut self, run: &Run) {
        let mut kind = *self.dice.pick(&[
            SpawnErrorKind::NotFound,
            SpawnErrorKind::NotExecutable,
            SpawnErrorKind::Redirect,
            SpawnErrorKind::System,
            SpawnErrorKind::Builtin,
        ]);
        // Other reasons against a start come later.
        if kind != SpawnErrorKind::Redirect && !self.shell.redirect(run) {
            kind = SpawnErrorKind::Redirect;
        }
        let error =
            SpawnError { kind, message: "can't be started".into(), errno: Some("EIO".into()) };
        self.post(Event::SpawnFailed { process: run.process, error });
    }

    /// Takes the events of the modelled world.
    fn collect(&mut self) {
        while let Some(event) = self.shell.poll_event() {
            if let Some(event) = self.cluster.filter_event(event) {
                self.report(event);
            }
        }
        while let Some(event) = self.cluster.poll_event() {
            self.report(event);
        }
        for event in std::mem::take(&mut self.around.replies) {
            self.report(event);
        }
    }

    fn report(&mut self, event: Event) {
        let Self { faults, dice, .. } = self;
        match event {
            Event::Exited { process, .. }
                if self.terminated.remove(&process)
                    && faults.happens(dice, "unreported end", faults.unreported_end) =>
            {
                self.mail.lose(process);
            }
            Event::Emptied { scope } if !self.ending.remove(&scope) => {}
            event => self.post(event),
        }
    }

    fn post(&mut self, event: Event) {
        let Self { faults, dice, .. } = self;
        let mut at = self.around.now;
        if faults.happens(dice, "late", faults.late) {
            at = at + dice.time(Duration::from_secs(10));
        }
        self.mail.post(at, event);
    }

    /// Ends the shell with all its processes, and starts another shell.
    fn restart(&mut self) -> Event {
        *self.faults.happened.entry("restart").or_default() += 1;
        self.lose_branches();
        self.shell.end_all();
        self.mail.lose_all();
        self.terminated.clear();
        for pass in std::mem::take(&mut self.inside) {
            self.around.ask(Ask::Leave(pass, Passed::Neither));
        }
        self.collect();
        if self.dice.chance(0.5) {
            self.around.now = self.around.now + self.dice.time(Duration::from_secs(100));
        }
        let lost = std::mem::take(&mut self.commands).into_iter().collect();
        Event::Resumed { lost, committed: Vec::new() }
    }

    /// Records an event for the machine.
    fn tells(&mut self, event: &Event) {
        if let Event::Exited { process, .. }
        | Event::SpawnFailed { process, .. }
        | Event::Returned { process, .. } = event
        {
            self.commands.remove(process);
        }
        if let Event::Done { operation, result } = event
            && let Some(pass) = self.entries.remove(operation)
            && *result == Ok(Reply::Admission(Admission::Admitted))
        {
            self.inside.insert(pass);
        }
    }

    /// Ends the head of the branches elsewhere.
    fn lose_branches(&mut self) {
        let now = self.around.now;
        let scopes = self.cluster.head_dies(now);
        // The resuming shell begins later.
        let until = now + std::mem::take(&mut self.outlived);
        self.cluster.inherit(scopes.into_iter().map(|scope| (scope, until)).collect());
    }

    /// Lets time pass until the next event, at most until `until`.
    pub(crate) fn wait(&mut self, until: Time) -> WaitResult {
        let Self { faults, dice, .. } = self;
        if faults.happens(dice, "spurious", faults.spurious) {
            return WaitResult::Nothing;
        }
        if faults.happens(dice, "jump", faults.jump) {
            self.around.now = self.around.now + dice.time(Duration::from_secs(100));
        }
        let began = self.around.now;
        loop {
            self.pass();
            if self.restarts.first().is_some_and(|at| *at <= self.around.now) {
                self.restarts.pop_first();
                return WaitResult::Event(self.restart());
            }
            if let Some(event) = self.mail.take(self.around.now, &mut self.dice) {
                self.idle = 0;
                self.tells(&event);
                return WaitResult::Event(event);
            }
            let due = self.around.future.first_key_value().map(|(key, _)| key.0);
            let kill = self.kills.first_key_value().map(|(key, _)| key.0);
            let restart = self.restarts.first().copied();
            let branches = Some(self.cluster.next_due()).filter(|due| *due != Time::NEVER);
            let next = [due, kill, restart, branches, self.around.wake, self.mail.next()];
            let next = next.into_iter().flatten().min();
            match next.filter(|next| *next <= until) {
                // Branches elsewhere set timers as long as they run.
                Some(next) if until == Time::NEVER && next - began > MAX_QUIET => {
                    return WaitResult::Never;
                }
                Some(next) => self.around.now = self.around.now.max(next),
                None if until == Time::NEVER => return WaitResult::Never,
                None => {
                    self.compute(until);
                    return WaitResult::Nothing;
                }
            }
        }
    }

    /// Advances the time to `until`. Computing takes time as well.
    fn compute(&mut self, until: Time) {
        if until > self.around.now {
            self.around.now = until;
            self.idle = 0;
        } else {
            self.idle += 1;
            let millis = 1 << (4 * self.idle).min(16);
            self.around.now = self.around.now + Duration::from_millis(millis);
        }
    }

    /// Performs the actions that are due.
    fn pass(&mut self) {
        let now = self.around.now;
        while let Some(due) = self.around.future.first_entry().filter(|it| it.key().0 <= now) {
            let due = due.remove();
            self.shell.handle(due, &mut self.around);
            self.collect();
        }
        if self.around.wake.take_if(|wake| *wake <= now).is_some() {
            let replies = self.around.channels.pass_time(now);
            self.around.send(replies);
            self.collect();
        }
        self.cluster.pass(&mut self.shell, &mut self.around);
        self.collect();
        while let Some(kill) = self.kills.first_entry().filter(|it| it.key().0 <= now) {
            let kill = kill.remove();
            self.forward(kill);
        }
    }
}

/// Returns a refusal for a reason of the system.
fn by_system(message: &str) -> Refusal {
    Refusal { message: message.into(), errno: Some("EIO".into()) }
}
