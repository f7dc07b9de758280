//! Admission of requests that need descriptors.
//!
//! A lack of descriptors is not a failure as long as work in progress will release some: a request
//! waits until enough are free. Requests are served in the order of the tree of structures
//! (`place`), so that begun work is finished before more begins. A structure that holds descriptors
//! while requesting more begins only if enough remain for those before it. Work that can be done
//! one after the other thus always succeeds.
//!
//! A command at one end of a pipe may depend on a stage that waits here. If nothing else is in
//! progress, the first request that fits is served, regardless of reserves. If none fits and no
//! descriptor becomes free for a while, the first request is tried anyway: it succeeds or fails,
//! but nothing waits forever.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::ProcessDriver;
use super::fds::{Need, PositionStep, StructurePart, TreePosition};
use super::jobs::{ActiveCommand, CommandStage};
use ftsh_machine::effect::{
    Directory, Effect, Entry, FdChange, FdSource, IoId, OperationId, PipeId, Query, Run,
};
use ftsh_machine::time::Time;
use ftsh_sys as sys;
use ftsh_sys::FileLimit;

/// Maximum reserve for structures that come first.
const MAX_RESERVE: usize = 16;
/// Reserve kept regardless of the waiting time.
const MIN_RESERVE: usize = 8;
/// Reserve when opening a pidfd, which is optional.
const PIDFD_RESERVE: usize = 16;

/// Time without a released descriptor after which commands outside pipelines may overtake.
const OVERTAKE_TIMEOUT: Duration = Duration::from_millis(20);
/// Time without a released descriptor after which the reserve is reduced: its holders may depend on
/// a waiting request.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time without a released descriptor after which running commands are assumed to depend on a
/// waiting request.
const DEPENDENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Request that needs descriptors.
pub(crate) enum DescriptorRequest {
    /// Start of a command.
    Run(Box<Run>),
    /// Replacement of the shell.
    Exec(Box<Run>),
    /// Opening of files.
    Open(Effect),
    /// Query about files.
    Query(OperationId, Directory, Query),
    /// Entry into a channel.
    Enter(Box<Entry>),
}

impl DescriptorRequest {
    /// Returns the base table of the request and its changes.
    fn redirects(&self) -> (IoId, &[FdChange]) {
        match self {
            Self::Run(run) | Self::Exec(run) => (run.io, &run.redirects),
            Self::Open(Effect::Open { base, redirects, .. }) => (*base, redirects),
            Self::Open(_) | Self::Query(..) | Self::Enter(_) => (IoId::INHERITED, &[]),
        }
    }
}

impl DescriptorRequest {
    /// Returns the operation of the request, for its withdrawal.
    fn operation(&self) -> Option<OperationId> {
        match self {
            Self::Open(Effect::Open { operation, .. }) | Self::Query(operation, ..) => {
                Some(*operation)
            }
            Self::Enter(entry) => Some(entry.operation),
            Self::Run(_) | Self::Exec(_) | Self::Open(_) => None,
        }
    }
}

fn reads(redirects: &[FdChange]) -> Option<PipeId> {
    redirects.iter().find_map(|changes| match changes.source {
        FdSource::PipeReader(id) => Some(id),
        _ => None,
    })
}

fn writes(redirects: &[FdChange]) -> Option<PipeId> {
    redirects.iter().find_map(|changes| match changes.source {
        FdSource::PipeWriter(id) => Some(id),
        _ => None,
    })
}

/// Key in the queue: position, then age.
type Key = (TreePosition, u64);

/// Work in progress while a request waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AdmissionProgress {
    /// None.
    Nothing,
    /// Work that releases no descriptors.
    Useless,
    /// Commands that may depend on a waiting request.
    Unsure,
    /// Work that ends by itself.
    Sure,
}

/// Queue of requests that wait for descriptors.
pub(crate) struct AdmissionQueue {
    /// Requests in the order of service.
    queue: BTreeMap<Key, DescriptorRequest>,
    /// Keys of operations in the queue.
    operations: HashMap<OperationId, Key>,
    /// Pipelines of pipes whose reading stage was not requested yet.
    pipelines: HashMap<PipeId, u64>,
    /// Number of requests queued so far.
    count: u64,
    /// Time of the last released descriptor or served request.
    moved: Instant,
    /// Time of the next check.
    pub(super) due: Option<Instant>,
    /// Limit of open descriptors.
    pub(super) limit: FileLimit,
}

impl AdmissionQueue {
    /// Creates an empty queue.
    pub(crate) fn new(now: Instant) -> Self {
        let (queue, operations, pipelines) = Default::default();
        Self {
            queue,
            operations,
            pipelines,
            count: 0,
            moved: now,
            due: None,
            limit: FileLimit::default(),
        }
    }

    /// Records that a descriptor may have been released.
    pub(crate) fn note_free(&mut self) {
        if !self.queue.is_empty() {
            self.moved = Instant::now();
        }
    }

    /// Removes the request of an operation, if queued.
    pub(crate) fn abandon(&mut self, operation: OperationId) -> Option<DescriptorRequest> {
        self.queue.remove(&self.operations.remove(&operation)?)
    }

    fn take(&mut self, key: &Key) -> Option<DescriptorRequest> {
        let request = self.queue.remove(key)?;
        if let Some(operation) = request.operation() {
            self.operations.remove(&operation);
        }
        Some(request)
    }
}

impl ProcessDriver {
    /// Serves a request, at once or when enough descriptors are free.
    pub(super) fn request(&mut self, request: DescriptorRequest) {
        let opens = matches!(request, DescriptorRequest::Open(_));
        let need = self.need(&request);
        let is_free = self.admission.queue.is_empty() && self.is_far_from_limit(need.total());
        if !opens && (is_free || need.is_nothing()) {
            return self.carry_out(request, &TreePosition::default());
        }
        let place = self.place(&request);
        if is_free || need.is_nothing() {
            return self.carry_out(request, &place);
        }
        let first = self.admission.queue.first_key_value();
        if first.is_none_or(|((first, _), _)| place < *first) {
            let reserve = if self.must_reserve(&request, &place) { self.reserve() } else { 0 };
            if self.has_room(need, reserve) {
                return self.carry_out(request, &place);
            }
        }
        self.io.record_contents(request.redirects().1);
        self.admission.count += 1;
        let key = (place, self.admission.count);
        if let DescriptorRequest::Run(run) | DescriptorRequest::Exec(run) = &request {
            self.enter(run.process, run.scope, ActiveCommand::queued(run));
        }
        if let Some(operation) = request.operation() {
            self.admission.operations.insert(operation, key.clone());
        }
        if self.admission.queue.is_empty() {
            self.admission.moved = Instant::now();
        }
        self.admission.queue.insert(key, request);
    }

    /// Cancels a request. Returns false if it is not queued.
    pub(super) fn withdraw(&mut self, operation: OperationId) -> bool {
        let Some(request) = self.admission.abandon(operation) else { return false };
        let redirects = request.redirects().1;
        reads(redirects).into_iter().chain(writes(redirects)).for_each(|id| self.io.drop_pipe(id));
        self.admission.note_free();
        true
    }

    /// Returns the need of a request. A request without need never waits.
    fn need(&self, request: &DescriptorRequest) -> Need {
        match request {
            DescriptorRequest::Query(_, _, Query::Buffer(id)) => self.io.need_to_read(*id),
            DescriptorRequest::Query(
                ..,
                Query::Test(..) | Query::Tail(..) | Query::Filled(_) | Query::InputEnded(_),
            ) => Need::NOTHING,
            DescriptorRequest::Query(.., Query::Filter(_)) => Need::of(0, 3),
            DescriptorRequest::Query(..) => Need::of(0, 2),
            DescriptorRequest::Enter(entry) => self.turns.need(&entry.channel),
            DescriptorRequest::Run(_) | DescriptorRequest::Exec(_) | DescriptorRequest::Open(_) => {
                let (io, redirects) = request.redirects();
                let need = self.io.need(io, redirects);
                // The command may get a pipe, and its recorded input a file.
                if self.input_spools.has_spools() {
                    Need::of(need.kept + 3, need.passing)
                } else {
                    need
                }
            }
        }
    }

    /// Returns the position of a request. The stages of a pipeline request their tables one after
    /// the other.
    fn place(&mut self, request: &DescriptorRequest) -> TreePosition {
        let (io, redirects) = request.redirects();
        let around = self.io.place(io);
        let whole = |unit| PositionStep { unit, part: StructurePart::Whole };
        around.inside(match request {
            DescriptorRequest::Run(run) | DescriptorRequest::Exec(run) => whole(run.process.0),
            DescriptorRequest::Open(Effect::Open { io, .. }) => {
                let (reads, writes) = (reads(redirects), writes(redirects));
                let begun = reads.and_then(|id| self.admission.pipelines.remove(&id));
                let unit = begun.unwrap_or(io.0);
                if let Some(id) = writes {
                    self.admission.pipelines.insert(id, unit);
                }
                let piped = reads.or(writes).is_some();
                PositionStep {
                    unit,
                    part: if piped { StructurePart::Opening(io.0) } else { StructurePart::Whole },
                }
            }
            DescriptorRequest::Open(_)
            | DescriptorRequest::Query(..)
            | DescriptorRequest::Enter(_) => whole(0),
        })
    }

    /// True if a request must leave a reserve for structures before it. Work that ends by itself
    /// releases its descriptors, but a writer to a pipe may have to wait.
    fn must_reserve(&self, request: &DescriptorRequest, place: &TreePosition) -> bool {
        let holds = match request {
            DescriptorRequest::Run(_) | DescriptorRequest::Exec(_) => {
                place.stages().next().is_some()
            }
            DescriptorRequest::Open(_) => reads(request.redirects().1).is_none(), // a reader belongs to begun work
            DescriptorRequest::Query(..) | DescriptorRequest::Enter(_) => false,
        };
        holds && self.io.first_holder().is_some_and(|first| first < place)
    }

    /// Returns the size of the reserve.
    fn reserve(&mut self) -> usize {
        (self.admission.limit.usable() / 3 + 4).min(MAX_RESERVE)
    }

    /// Serves the requests that fit. `until` is the time at which the machine continues by itself.
    pub(super) fn admit(&mut self, until: Time) {
        self.admission.due = None;
        while let Some(key) = self.next_in_turn(until) {
            let Some(request) = self.admission.take(&key) else {
                return self.report_bug("the next request is not queued");
            };
            match request {
                DescriptorRequest::Run(run) => {
                    self.begin_queued(run, DescriptorRequest::Run, &key.0);
                }
                DescriptorRequest::Exec(run) => {
                    self.begin_queued(run, DescriptorRequest::Exec, &key.0);
                }
                request => self.carry_out(request, &key.0),
            }
            self.admission.moved = Instant::now();
        }
    }

    fn begin_queued(
        &mut self,
        mut run: Box<Run>,
        kind: fn(Box<Run>) -> DescriptorRequest,
        place: &TreePosition,
    ) {
        if let Some((_, ended)) = self.leave(run.process).filter(|(_, ended)| ended.is_awaited) {
            run.scope = ended.scope; // the scope may have been handed over
            self.carry_out(kind(run), place);
        }
    }

    /// Returns the key of the next request to serve now, if any.
    fn next_in_turn(&mut self, until: Time) -> Option<Key> {
        let (key, request) = self.admission.queue.first_key_value()?;
        if !self.is_wanted(request) {
            return Some(key.clone());
        }
        let (key, need) = (key.clone(), self.need(request));
        let reserve = if self.must_reserve(request, &key.0) { self.reserve() } else { 0 };
        let quiet = self.admission.moved.elapsed();
        let reserve = if quiet < RESERVE_TIMEOUT { reserve } else { reserve.min(MIN_RESERVE) };
        if self.has_room(need, reserve) {
            return Some(key);
        }
        let progress = self.progress();
        let found = match progress {
            AdmissionProgress::Sure if quiet < OVERTAKE_TIMEOUT => None,
            AdmissionProgress::Sure => self.first_that_fits(|request, place| {
                matches!(request, DescriptorRequest::Run(_)) && place.stages().next().is_none()
            }),
            // A request that holds up others is the first, or belongs to begun work.
            AdmissionProgress::Unsure if self.can_open(need, 0) => Some(key.clone()),
            AdmissionProgress::Unsure => {
                self.first_that_fits(|request, place| !self.must_reserve(request, place))
            }
            AdmissionProgress::Useless | AdmissionProgress::Nothing => {
                self.first_that_fits(|_, _| true)
            }
        };
        if found.is_some() {
            return found;
        }
        let timeout = match progress {
            AdmissionProgress::Sure => Duration::MAX,
            AdmissionProgress::Unsure => DEPENDENT_TIMEOUT,
            AdmissionProgress::Nothing if until == Time::NEVER => Duration::ZERO,
            AdmissionProgress::Useless | AdmissionProgress::Nothing => RESERVE_TIMEOUT,
        };
        if quiet >= timeout {
            return Some(key);
        }
        let next =
            [OVERTAKE_TIMEOUT, RESERVE_TIMEOUT, timeout].into_iter().find(|&next| quiet < next);
        self.admission.due = next.and_then(|next| self.admission.moved.checked_add(next));
        None
    }

    fn first_that_fits(
        &self,
        counts: impl Fn(&DescriptorRequest, &TreePosition) -> bool,
    ) -> Option<Key> {
        let mut queue = self.admission.queue.iter();
        let fits = |request| self.can_open(self.need(request), 0);
        let wanted = |request| self.is_wanted(request);
        queue
            .find(|((place, _), request)| {
                counts(request, place) && wanted(request) && fits(request)
            })
            .map(|(key, _)| key.clone())
    }

    /// True if the request is still needed.
    fn is_wanted(&self, request: &DescriptorRequest) -> bool {
        match request {
            DescriptorRequest::Run(run) | DescriptorRequest::Exec(run) => {
                self.commands.contains_key(&run.process)
            }
            DescriptorRequest::Open(_)
            | DescriptorRequest::Query(..)
            | DescriptorRequest::Enter(_) => true, // canceled ones are removed
        }
    }

    /// Classifies the work in progress.
    fn progress(&self) -> AdmissionProgress {
        if !self.ready.is_empty() || !self.work.operations.is_empty() || self.scopes.is_emptying() {
            return AdmissionProgress::Sure;
        }
        // Waiting part of each pipeline; none if several stages wait.
        let mut waiting: HashMap<u64, Option<StructurePart>> = HashMap::new();
        for ((place, _), request) in &self.admission.queue {
            if self.is_wanted(request) {
                for PositionStep { unit, part } in place.stages() {
                    let known = waiting.entry(unit).or_insert(Some(part));
                    known.take_if(|known| *known != part);
                }
            }
        }
        let is_free =
            |step: PositionStep| waiting.get(&step.unit).is_none_or(|it| *it == Some(step.part));
        let mut progress = AdmissionProgress::Nothing;
        for command in self.commands.values().filter(|it| !matches!(it.stage, CommandStage::Queued))
        {
            if command.need.kept == 0 && command.place.steps().is_empty() {
                progress = progress.max(AdmissionProgress::Useless);
            } else if command.place.stages().all(is_free) {
                return AdmissionProgress::Sure;
            } else {
                progress = AdmissionProgress::Unsure;
            }
        }
        progress
    }

    fn is_far_from_limit(&mut self, count: usize) -> bool {
        let known =
            self.children.len() + self.io.size() + self.relays.count() + self.input_spools.size();
        self.admission.limit.is_far_from(4 * known + count)
    }

    /// True if this need and reserve fit, in addition to descriptors that workers may be opening.
    fn can_open(&self, need: Need, reserve: usize) -> bool {
        let working =
            self.commands.values().filter(|it| matches!(it.stage, CommandStage::Working(_)));
        let promised: usize = working.map(|it| it.need.total()).sum();
        let own = need.kept + reserve + promised + 2 * self.work.operations.len();
        sys::can_open(own, own + need.passing)
    }

    /// True if this need and reserve fit, after raising limits and closing unused files.
    fn has_room(&mut self, need: Need, reserve: usize) -> bool {
        self.is_far_from_limit(need.total() + reserve)
            || self.can_open(need, reserve)
            || self.admission.limit.raise() && self.can_open(need, reserve)
            || self.close_unused() && self.can_open(need, reserve)
    }

    /// True if there is room for a pidfd.
    pub(super) fn has_room_for_pidfd(&mut self) -> bool {
        let (need, reserve) = (Need::of(0, 1), PIDFD_RESERVE);
        self.is_far_from_limit(1 + reserve) || self.can_open(need, reserve)
    }

    fn carry_out(&mut self, request: DescriptorRequest, place: &TreePosition) {
        match request {
            DescriptorRequest::Run(run) => {
                let need = self.io.need(run.io, &run.redirects);
                let (process, around) = (run.process, self.io.place(run.io));
                self.run(*run);
                if let Some(command) = self.commands.get_mut(&process) {
                    (command.need, command.place) = (need, around);
                }
            }
            DescriptorRequest::Exec(run) => self.exec(*run),
            DescriptorRequest::Open(effect) => self.open(effect, place.opened()),
            DescriptorRequest::Query(operation, directory, query) => {
                self.query(operation, &directory, query);
            }
            DescriptorRequest::Enter(entry) => {
                self.take_turns(|turns, outside| turns.enter(outside, *entry));
            }
        }
    }
}
