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

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::processes::Processes;
use super::tables::{OpenRequest, Tables};
use crate::descriptors::{PositionStep, StructurePart, TreePosition};
use crate::fds::Need;
use crate::jobs::{ActiveCommand, CommandStage, Reactor, Turns};
use crate::procs::ProcDir;
use crate::tty::Terminal;
use ftsh_machine::effect::{
    Action, Directory, Entry, FdChange, FdSource, IoId, OperationId, PipeId, Query, Run,
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
pub(super) enum DescriptorRequest {
    /// Start of a command.
    Run(Box<Run>),
    /// Replacement of the shell.
    Exec(Box<Run>),
    /// Opening of files.
    Open(OpenRequest),
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
            Self::Open(open) => (open.base, &open.redirects),
            Self::Query(..) | Self::Enter(_) => (IoId::INHERITED, &[]),
        }
    }

    /// Returns the operation of the request, for its withdrawal.
    fn operation(&self) -> Option<OperationId> {
        match self {
            Self::Open(open) => Some(open.operation),
            Self::Query(operation, ..) => Some(*operation),
            Self::Enter(entry) => Some(entry.operation),
            Self::Run(_) | Self::Exec(_) => None,
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
pub(super) struct PendingRequests {
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
    due: Option<Instant>,
    /// Limit of open descriptors.
    limit: FileLimit,
}

impl PendingRequests {
    /// Creates an empty queue.
    pub(super) fn new(now: Instant) -> Self {
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
    pub(super) fn note_free(&mut self) {
        if !self.queue.is_empty() {
            self.moved = Instant::now();
        }
    }

    /// Returns the time of the next check.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Resets the time of the next check if it has come: the next turn of the loop checks.
    pub(super) fn reset_due(&mut self, now: Instant) {
        self.due.take_if(|due| *due <= now);
    }

    /// Returns the limit of open descriptors.
    pub(super) fn limit(&mut self) -> &mut FileLimit {
        &mut self.limit
    }

    fn take(&mut self, key: &Key) -> Option<DescriptorRequest> {
        let request = self.queue.remove(key)?;
        if let Some(operation) = request.operation() {
            self.operations.remove(&operation);
        }
        Some(request)
    }
}

/// Decisions about requests, with the parts that hold descriptors or release them.
pub(super) struct Admitter<'a> {
    pub(super) requests: &'a mut PendingRequests,
    pub(super) tables: &'a mut Tables,
    pub(super) processes: &'a mut Processes,
    pub(super) turns: &'a Turns,
    pub(super) reactor: &'a mut Reactor,
    pub(super) terminal: &'a mut Option<Terminal>,
}

impl Admitter<'_> {
    /// Returns a request with its position if the request is served at once. Otherwise it waits.
    pub(super) fn request(
        &mut self,
        request: DescriptorRequest,
    ) -> Option<(DescriptorRequest, TreePosition)> {
        let opens = matches!(request, DescriptorRequest::Open(_));
        let need = self.need(&request);
        let is_free = self.requests.queue.is_empty() && self.is_far_from_limit(need.total());
        let is_first = is_free || need.is_nothing();
        if !opens && is_first {
            return Some((request, TreePosition::default()));
        }
        let place = self.place(&request);
        if is_first || self.fits_before_others(&request, &place, need) {
            return Some((request, place));
        }
        self.queue(request, place);
        None
    }

    fn fits_before_others(
        &mut self,
        request: &DescriptorRequest,
        place: &TreePosition,
        need: Need,
    ) -> bool {
        let first = self.requests.queue.first_key_value();
        if first.is_some_and(|((first, _), _)| place >= first) {
            return false;
        }
        let reserve = if self.must_reserve(request, place) { self.reserve() } else { 0 };
        self.has_room(need, reserve)
    }

    fn queue(&mut self, request: DescriptorRequest, place: TreePosition) {
        self.tables.io_mut().record_contents(request.redirects().1);
        self.requests.count += 1;
        let key = (place, self.requests.count);
        if let DescriptorRequest::Run(run) | DescriptorRequest::Exec(run) = &request {
            self.processes.enter(run.process, run.scope, ActiveCommand::queued(run));
        }
        if let Some(operation) = request.operation() {
            self.requests.operations.insert(operation, key.clone());
        }
        if self.requests.queue.is_empty() {
            self.requests.moved = Instant::now();
        }
        self.requests.queue.insert(key, request);
    }

    /// Cancels a request. Returns false if it is not queued.
    pub(super) fn withdraw(&mut self, operation: OperationId) -> bool {
        let key = self.requests.operations.remove(&operation);
        let Some(request) = key.and_then(|key| self.requests.queue.remove(&key)) else {
            return false;
        };
        let redirects = request.redirects().1;
        let pipes = reads(redirects).into_iter().chain(writes(redirects));
        pipes.for_each(|id| self.tables.io_mut().drop_pipe(id));
        self.requests.note_free();
        true
    }

    /// Returns the next request that is served now, with its position. `until` is the time at which
    /// the machine continues by itself.
    pub(super) fn next(&mut self, until: Time) -> Option<(DescriptorRequest, TreePosition)> {
        self.requests.due = None;
        let key = self.next_in_turn(until)?;
        Some((self.requests.take(&key)?, key.0))
    }

    /// Returns the need of a request. A request without need never waits.
    fn need(&self, request: &DescriptorRequest) -> Need {
        match request {
            DescriptorRequest::Query(_, _, Query::Buffer(id)) => self.tables.io().need_to_read(*id),
            DescriptorRequest::Query(
                ..,
                Query::Test(..)
                | Query::Tail(..)
                | Query::Filled(_)
                | Query::InputEnded(_)
                | Query::TakeBack(_),
            ) => Need::NOTHING,
            DescriptorRequest::Query(.., Query::Filter(_)) => Need::of(0, 3),
            DescriptorRequest::Query(..) => Need::of(0, 2),
            DescriptorRequest::Enter(entry) => self.turns.need(&entry.channel),
            DescriptorRequest::Run(_) | DescriptorRequest::Exec(_) | DescriptorRequest::Open(_) => {
                let (io, redirects) = request.redirects();
                self.tables.need(io, redirects)
            }
        }
    }

    /// Returns the position of a request. The stages of a pipeline request their tables one after
    /// the other.
    fn place(&mut self, request: &DescriptorRequest) -> TreePosition {
        let (io, redirects) = request.redirects();
        let around = self.tables.io().place(io);
        let whole = |unit| PositionStep { unit, part: StructurePart::Whole };
        around.inside(match request {
            // The output of an ended attempt or branch, which holds descriptors until it is printed.
            DescriptorRequest::Run(run) if matches!(run.action, Action::Copy) => whole(0),
            DescriptorRequest::Run(run) | DescriptorRequest::Exec(run) => whole(run.process.0),
            DescriptorRequest::Open(OpenRequest { io, .. }) => {
                let (reads, writes) = (reads(redirects), writes(redirects));
                let begun = reads.and_then(|id| self.requests.pipelines.remove(&id));
                let unit = begun.unwrap_or(io.0);
                if let Some(id) = writes {
                    self.requests.pipelines.insert(id, unit);
                }
                let piped = reads.or(writes).is_some();
                PositionStep {
                    unit,
                    part: if piped { StructurePart::Opening(io.0) } else { StructurePart::Whole },
                }
            }
            DescriptorRequest::Query(..) | DescriptorRequest::Enter(_) => whole(0),
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
        holds && self.tables.io().first_holder().is_some_and(|first| first < place)
    }

    /// Returns the size of the reserve.
    fn reserve(&mut self) -> usize {
        (self.requests.limit.usable() / 3 + 4).min(MAX_RESERVE)
    }

    /// Returns the key of the next request to serve now, if any.
    fn next_in_turn(&mut self, until: Time) -> Option<Key> {
        let (key, request) = self.requests.queue.first_key_value()?;
        if !self.is_wanted(request) {
            return Some(key.clone());
        }
        let (key, need) = (key.clone(), self.need(request));
        let reserve = if self.must_reserve(request, &key.0) { self.reserve() } else { 0 };
        let quiet = self.requests.moved.elapsed();
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
        self.requests.due = next.and_then(|next| self.requests.moved.checked_add(next));
        None
    }

    fn first_that_fits(
        &self,
        counts: impl Fn(&DescriptorRequest, &TreePosition) -> bool,
    ) -> Option<Key> {
        let mut queue = self.requests.queue.iter();
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
                self.processes.has_command(run.process)
            }
            DescriptorRequest::Open(_)
            | DescriptorRequest::Query(..)
            | DescriptorRequest::Enter(_) => true, // canceled ones are removed
        }
    }

    /// Classifies the work in progress.
    fn progress(&self) -> AdmissionProgress {
        if !self.reactor.events().is_empty()
            || self.reactor.operation_count() > 0
            || self.processes.is_emptying()
        {
            return AdmissionProgress::Sure;
        }
        // Waiting part of each pipeline; none if several stages wait.
        let mut waiting: HashMap<u64, Option<StructurePart>> = HashMap::new();
        for ((place, _), request) in &self.requests.queue {
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
        for command in
            self.processes.commands().filter(|it| !matches!(it.stage, CommandStage::Queued))
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
        let known = self.processes.child_count() + self.tables.size();
        self.requests.limit.is_far_from(4 * known + count)
    }

    /// True if this need and reserve fit, in addition to descriptors that workers may be opening.
    fn can_open(&self, need: Need, reserve: usize) -> bool {
        let working =
            self.processes.commands().filter(|it| matches!(it.stage, CommandStage::Working(_)));
        let promised: usize = working.map(|it| it.need.total()).sum();
        let own = need.kept + reserve + promised + 2 * self.reactor.operation_count();
        sys::can_open(own, own + need.passing)
    }

    /// True if this need and reserve fit, after raising limits and closing unused files.
    fn has_room(&mut self, need: Need, reserve: usize) -> bool {
        self.is_far_from_limit(need.total() + reserve)
            || self.can_open(need, reserve)
            || self.requests.limit.raise() && self.can_open(need, reserve)
            || self.close_unused() && self.can_open(need, reserve)
    }

    /// True if there is room for a pidfd.
    pub(super) fn has_room_for_pidfd(&mut self) -> bool {
        let (need, reserve) = (Need::of(0, 1), PIDFD_RESERVE);
        self.is_far_from_limit(1 + reserve) || self.can_open(need, reserve)
    }

    /// Raises the limit of descriptors before it is reached.
    pub(super) fn make_room(&mut self) {
        let known = self.processes.child_count() + self.tables.size();
        self.requests.limit.make_room_for(known);
    }

    /// Closes unused files of variables to free descriptors. Returns false if none was closed.
    fn close_unused(&mut self) -> bool {
        if !self.tables.io().has_idle() || !self.processes.adopts() {
            return false;
        }
        let Some(before) = self.left_behind() else { return false };
        let mut open = HashSet::new();
        for &pid in &before {
            match ProcDir(pid).files(b" (deleted)") {
                Ok(files) => open.extend(files),
                Err(_) if matches!(ProcDir(pid).entry(), Ok(None)) => {} // the process has ended
                Err(_) => return false,
            }
        }
        // Processes started meanwhile inherit the open files of these processes.
        match self.left_behind() {
            Some(after) if after.is_subset(&before) => self.tables.io_mut().close_unused(&open),
            _ => false,
        }
    }

    fn left_behind(&mut self) -> Option<HashSet<i32>> {
        self.processes.left_behind(self.reactor, self.terminal)
    }
}
