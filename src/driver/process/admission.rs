//! What has to wait for descriptors.
//!
//! Running out of them is no failure as long as something in progress holds some: what needs more
//! waits until enough can be had. Some are kept for what others in progress depend on, or they would
//! wait for each other: the rest of a pipeline that has begun may take the last ones; what is inside
//! of blocks that hold some comes next, the deeper the earlier; what is new comes last.
//!
//! Commands in a pipeline may be waiting for what waits here. So when no descriptor comes free for a
//! while, and none will by itself, what is kept for others is given away, and at last the most urgent
//! request is tried whatever there is: it works or fails, but nothing waits for ever.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::jobs::{Claim, Command, Stage};
use super::{ProcessDriver, sys};
use crate::machine::effect::{
    Action, Directory, Effect, OperationId, PipeId, Plumbing, Port, Query, Run,
};
use crate::machine::time::Time;

/// What a pidfd leaves for others: the end of a command can be noticed without one.
const SPARE_OF_PIDFDS: usize = 16;

/// When no descriptor came free for this long, what is kept for others is of no use to them.
const PAUSE: Duration = Duration::from_millis(20);
/// When no descriptor came free for this long, none will.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same where commands run that will give some back when they end.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

/// How urgent a request for descriptors is, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// The rest of a pipeline that has begun.
    Awaited,
    /// In a block that holds some, in another such one.
    Deep,
    /// In a block that holds some.
    Inner,
    /// Nobody waits for it.
    New,
}

impl Urgency {
    const ALL: [Self; 4] = [Self::Awaited, Self::Deep, Self::Inner, Self::New];

    /// How many of `all` it leaves for what is more urgent.
    fn spare(self, all: usize) -> usize {
        match self {
            Self::Awaited => 0,
            Self::Deep => (all / 16).clamp(2, 3),
            Self::Inner => (all / 6).clamp(4, 8),
            Self::New => (all / 3).clamp(6, 16),
        }
    }

    /// What comes next before it.
    fn higher(self) -> Self {
        Self::ALL[(self as usize).saturating_sub(1)]
    }
}

/// Something that needs descriptors.
pub enum Request {
    /// To start a command.
    Run(Box<Run>),
    /// To open files.
    Open(Effect),
    /// To look at files.
    Query(OperationId, Directory, Query),
}

impl Request {
    /// How it changes a table.
    fn redirects(&self) -> &[Plumbing] {
        match self {
            Self::Run(run) => &run.redirects,
            Self::Open(Effect::Open { redirects, .. }) => redirects,
            Self::Open(_) | Self::Query(..) => &[],
        }
    }

    /// How many it may take at a time, at most.
    fn need(&self) -> usize {
        let of = |redirects: &[Plumbing]| redirects.iter().map(|it| need_of(&it.port)).sum();
        match self {
            Self::Run(run) => of(&run.redirects),
            Self::Open(Effect::Open { redirects, .. }) => of(redirects),
            Self::Open(_) | Self::Query(_, _, Query::Test(..)) => 0,
            Self::Query(_, _, Query::Buffer(_)) => 1,
            Self::Query(..) => 2,
        }
    }
}

fn need_of(port: &Port) -> usize {
    match port {
        Port::Null => 0, // all share one
        // What comes into being below our own numbers is moved.
        Port::Descriptor(_)
        | Port::File { .. }
        | Port::BufferRead(_)
        | Port::BufferCreate(..)
        | Port::BufferAppend(_) => 1,
        Port::BufferCopy { .. } | Port::Bytes(_) | Port::PipeReader(_) | Port::PipeWriter(_) => 2,
    }
}

fn pipes(redirects: &[Plumbing]) -> impl Iterator<Item = PipeId> {
    redirects.iter().filter_map(|plumbing| match plumbing.port {
        Port::PipeReader(id) | Port::PipeWriter(id) => Some(id),
        _ => None,
    })
}

/// All that waits for descriptors.
pub struct Admission {
    /// By urgency.
    queues: [VecDeque<Request>; 4],
    /// The operations among them that are still wanted.
    operations: HashSet<OperationId>,
    /// The pipes of which the most urgent ones need an end.
    pipes: HashSet<PipeId>,
    /// When a descriptor last came free, or a request was carried out.
    moved: Instant,
    /// When to look again, if nothing happens.
    pub(super) due: Option<Instant>,
}

impl Admission {
    /// Nothing waits.
    pub fn new(now: Instant) -> Self {
        let (queues, operations, pipes) = Default::default();
        Self { queues, operations, pipes, moved: now, due: None }
    }

    /// Whether nothing at least as urgent waits.
    fn is_free(&self, urgency: Urgency) -> bool {
        self.queues[..=urgency as usize].iter().all(VecDeque::is_empty)
    }

    /// A descriptor may have come free.
    pub fn note_free(&mut self) {
        if !self.is_free(Urgency::New) {
            self.moved = Instant::now();
        }
    }

    /// Takes an operation out; false if it doesn't wait.
    pub fn abandon(&mut self, operation: OperationId) -> bool {
        self.operations.remove(&operation)
    }
}

impl ProcessDriver {
    /// Carries a request out, at once or when there are enough descriptors.
    pub(super) fn request(&mut self, request: Request) {
        let need = self.need(&request);
        if need == 0 {
            return self.carry_out(request);
        }
        let urgency = self.urgency(&request);
        if self.admission.is_free(urgency) && self.has_room_beside(need, urgency) {
            return self.carry_out(request);
        }
        match &request {
            Request::Run(run) => {
                let name = match &run.action {
                    Action::Program { words, .. } => words.first().cloned().unwrap_or_default(),
                    Action::Print(_) => "echo".into(),
                    Action::ReadLine => "read".into(),
                };
                self.io.draft(&run.redirects);
                self.enter(run.process, Command::queued(run.scope, name, run.line));
            }
            Request::Open(Effect::Open { operation, redirects, .. }) => {
                self.io.draft(redirects);
                if urgency == Urgency::Awaited {
                    self.admission.pipes.extend(pipes(redirects));
                }
                self.admission.operations.insert(*operation);
            }
            Request::Query(operation, ..) => {
                self.admission.operations.insert(*operation);
            }
            Request::Open(_) => {}
        }
        if self.admission.is_free(Urgency::New) {
            self.admission.moved = Instant::now();
        }
        self.admission.queues[urgency as usize].push_back(request);
    }

    /// How many descriptors a request may take at a time; with none it never waits.
    fn need(&self, request: &Request) -> usize {
        let (Request::Run(_) | Request::Open(_)) = request else { return request.need() };
        let redirects = request.redirects();
        let known = pipes(redirects).filter(|&id| self.io.has_pipe(id)).count();
        request.need() - known // the other end is there
    }

    fn has_room_beside(&mut self, need: usize, urgency: Urgency) -> bool {
        let spare = self.spare(urgency);
        self.has_room(need + spare)
    }

    fn spare(&mut self, urgency: Urgency) -> usize {
        urgency.spare(self.limit.usable())
    }

    fn urgency(&self, request: &Request) -> Urgency {
        let (io, redirects) = match request {
            Request::Run(run) => (run.io, &run.redirects),
            Request::Open(Effect::Open { base, redirects, .. }) => (*base, redirects),
            Request::Open(_) | Request::Query(..) => return Urgency::Awaited,
        };
        let is_awaited = |id| self.io.has_pipe(id) || self.admission.pipes.contains(&id);
        if pipes(redirects).any(is_awaited) {
            return Urgency::Awaited;
        }
        match self.io.depth(io) {
            0 => Urgency::New,
            1 => Urgency::Inner,
            _ => Urgency::Deep,
        }
    }

    /// Carries out what waits, as far as there are descriptors. `until` is when the machine goes on
    /// by itself.
    pub(super) fn admit(&mut self, until: Time) {
        self.admission.due = None;
        while let Some((urgency, queue)) = self.most_urgent() {
            if !self.may_go(urgency, queue, until) {
                return;
            }
            let Some(request) = self.admission.queues[queue].pop_front() else { return };
            let redirects = request.redirects();
            let pipes: Vec<PipeId> = pipes(redirects).collect();
            for id in &pipes {
                self.admission.pipes.remove(id);
            }
            let wanted = match request {
                Request::Run(mut run) => match self.leave(run.process) {
                    Some((command, true)) => {
                        run.scope = command.scope;
                        Some(Request::Run(run))
                    }
                    _ => None,
                },
                Request::Open(Effect::Open { operation, .. }) | Request::Query(operation, ..) => {
                    self.admission.operations.remove(&operation).then_some(request)
                }
                Request::Open(_) => None,
            };
            match wanted {
                Some(request) => {
                    self.admission.moved = Instant::now();
                    self.carry_out(request);
                }
                None => pipes.into_iter().for_each(|id| self.io.drop_pipe(id)),
            }
        }
    }

    /// How urgent the most urgent request is, and the queue that it is first in. Others may have
    /// begun to wait for it since it came there; the stages of a pipeline come one after the other.
    fn most_urgent(&self) -> Option<(Urgency, usize)> {
        let queues = self.admission.queues.iter().enumerate();
        let first = queues.filter_map(|(at, queue)| Some((self.urgency(queue.front()?), at)));
        first.min()
    }

    /// Whether it is the turn of the first one in this queue.
    fn may_go(&mut self, urgency: Urgency, queue: usize, until: Time) -> bool {
        let Some(need) = self.admission.queues[queue].front().map(|it| self.need(it)) else {
            return false;
        };
        if !self.is_wanted(queue) || self.has_room_beside(need, urgency) {
            return true;
        }
        let in_progress = self.is_in_progress(|_| true);
        if until == Time::NEVER && !in_progress {
            return true;
        }
        let held = match urgency {
            Urgency::New => in_progress,
            _ => self.is_in_progress(|command| command.claim.gives_back),
        };
        let quiet = self.admission.moved.elapsed();
        let (pause, patience, spare) = match (held, urgency) {
            (false, _) => (PAUSE, PATIENCE, 0),
            // Nothing waits for it, so it may wait for ever.
            (true, Urgency::New) => (PATIENCE, Duration::MAX, self.spare(urgency.higher())),
            (true, _) => (PATIENCE, LONG_PATIENCE, self.spare(urgency.higher())),
        };
        if quiet >= patience || quiet >= pause && self.has_room(need + spare) {
            return true;
        }
        let next = if quiet < pause { pause } else { patience };
        self.admission.due = self.admission.moved.checked_add(next);
        false
    }

    /// Whether the first one in this queue is still wanted.
    fn is_wanted(&self, queue: usize) -> bool {
        match self.admission.queues[queue].front() {
            Some(Request::Run(run)) => self.commands.contains_key(&run.process),
            Some(Request::Open(Effect::Open { operation, .. }) | Request::Query(operation, ..)) => {
                self.admission.operations.contains(operation)
            }
            _ => false,
        }
    }

    /// Whether something is going on, as far as it is one of these commands.
    fn is_in_progress(&self, counts: impl Fn(&Command) -> bool) -> bool {
        !self.ready.is_empty()
            || !self.operations.is_empty()
            || !self.scopes.emptying.is_empty()
            || self.commands.values().any(|it| !matches!(it.stage, Stage::Queued) && counts(it))
    }

    /// Whether so many descriptors can be had, besides those that workers may be taking.
    fn has_room(&mut self, count: usize) -> bool {
        let known = self.children.len() + self.io.size();
        if self.limit.is_far_from(4 * known + count) {
            return true;
        }
        let working = |it: &&Command| matches!(it.stage, Stage::Working(_));
        let promised =
            self.commands.values().filter(working).map(|it| it.claim.need).sum::<usize>();
        let wanted = count + promised + 2 * self.operations.len();
        sys::can_open(wanted)
            || self.limit.raise() && sys::can_open(wanted)
            || self.io.put_away() && sys::can_open(wanted)
    }

    /// Whether there is room for a pidfd.
    pub(super) fn has_room_for_pidfd(&mut self) -> bool {
        self.has_room(1 + SPARE_OF_PIDFDS)
    }

    fn carry_out(&mut self, request: Request) {
        let need = self.need(&request);
        match request {
            Request::Run(run) => {
                let process = run.process;
                // One in a pipeline may wait for others instead of ending.
                let gives_back =
                    (need > 0 || self.io.depth(run.io) > 0) && !self.io.is_piped(run.io);
                self.run(*run);
                if let Some(command) = self.commands.get_mut(&process) {
                    command.claim = Claim { need, gives_back };
                }
            }
            Request::Open(effect) => self.open(effect),
            Request::Query(operation, directory, query) => self.query(operation, directory, query),
        }
    }
}
