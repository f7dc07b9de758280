//! Thread that samples the processes of scopes.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::read;

use super::memory::{MemorySample, sample};
use super::progress::Progress;
use super::reading::{ProcessReader, SystemReader};
use crate::events::editor_signals;
use crate::workers::set_readable;
use ftsh_machine::effect::{ScopeId, Watch};
use ftsh_machine::event::MemoryUse;
use ftsh_sys as sys;

/// Shortest interval of samples for `stalled`, and the interval for `memory`.
const INTERVAL: Duration = Duration::from_millis(250);
/// Interval of samples for `memory` above half of the limit.
const HIGH_MEMORY_INTERVAL: Duration = Duration::from_millis(50);
/// Number of samples in the time of `stalled`.
const SAMPLES: u32 = 8;
/// Ratio of the time between samples to the processor time of a sample, at least.
const REST: u32 = 10;
/// Difference for which the loop is not woken.
const TOLERANCE: Duration = Duration::from_millis(2);

const STACK_SIZE: usize = 256 * 1024;
/// Memory that a thread needs besides its stack, rounded up.
const HEADROOM: usize = 1024 * 1024;

/// Scope to sample.
pub(super) struct Target {
    pub scope: ScopeId,
    pub watch: Watch,
    /// Time at which the watch began.
    pub since: Instant,
    /// Processes from which all others of the scope descend.
    pub roots: Vec<i32>,
}

/// Request for a sample of all watched scopes.
struct SampleRequest {
    targets: Vec<Target>,
    /// Time at which the loop expects the next sample.
    planned: Instant,
}

/// News of a sample.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SampleReport {
    /// The processes of the scope made no progress for the time of `stalled`.
    Stalled(ScopeId),
    /// The processes of the scope use more memory than `memory` allows.
    OverMemory(ScopeId, MemoryUse),
    /// No process of the scope can be read, so it counts as making progress.
    Unreadable(ScopeId),
}

/// Result of a sample.
pub(super) struct Sampled {
    pub reports: Vec<SampleReport>,
    /// Time of the next sample.
    pub next: Instant,
    /// Present interval of samples.
    pub interval: Duration,
}

/// Returns the interval of samples for a watch, before anything is known.
pub(super) fn interval(watch: Watch) -> Duration {
    let stalled = watch.stalled.map(|time| (time / SAMPLES).max(INTERVAL));
    stalled.into_iter().chain(watch.memory.map(|_| INTERVAL)).min().unwrap_or(INTERVAL)
}

/// Handle of the thread.
pub(super) struct Sampler {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<SamplerState>,
    requested: Condvar,
    /// Event descriptor that wakes the event loop.
    news: OwnedFd,
}

#[derive(Default)]
struct SamplerState {
    request: Option<SampleRequest>,
    is_busy: bool,
    sampled: Option<Sampled>,
    is_closed: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, SamplerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sampler {
    /// Starts the thread. Fails if the system has no descriptors or memory left.
    pub(super) fn start() -> io::Result<Self> {
        // The process aborts if a new thread finds no memory at its start.
        if !sys::has_room(STACK_SIZE + HEADROOM) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let news = sys::move_up(EventFd::from_flags(flags)?.into())?;
        let shared = Arc::new(Shared {
            state: Mutex::new(SamplerState::default()),
            requested: Condvar::new(),
            news,
        });
        let theirs = Arc::clone(&shared);
        let work = move || {
            let _ = editor_signals().thread_block();
            run(&theirs);
        };
        std::thread::Builder::new().name("sampler".into()).stack_size(STACK_SIZE).spawn(work)?;
        Ok(Self { shared })
    }

    /// Returns a descriptor that is readable when there is news.
    pub(super) fn readiness(&self) -> BorrowedFd<'_> {
        self.shared.news.as_fd()
    }

    /// Returns true while a sample is being taken.
    pub(super) fn is_busy(&self) -> bool {
        self.shared.state().is_busy
    }

    /// Takes the result of the last sample.
    pub(super) fn take(&self) -> Option<Sampled> {
        let _ = read(&self.shared.news, &mut [0; size_of::<u64>()]);
        self.shared.state().sampled.take()
    }

    /// Requests a sample. The loop expects to request the next one at `planned`.
    pub(super) fn request(&self, targets: Vec<Target>, planned: Instant) {
        let mut state = self.shared.state();
        state.request = Some(SampleRequest { targets, planned });
        state.is_busy = true;
        drop(state);
        self.shared.requested.notify_one();
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.shared.state().is_closed = true;
        self.shared.requested.notify_one();
    }
}

/// Takes samples until the handle is dropped.
fn run(shared: &Shared) {
    let mut scopes = BTreeMap::new();
    loop {
        let mut state = shared.state();
        let SampleRequest { targets, planned } = loop {
            if state.is_closed {
                return;
            }
            if let Some(request) = state.request.take() {
                break request;
            }
            state = shared.requested.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        let sampled = sample_all(&mut scopes, &targets, &mut SystemReader);
        let is_news = !sampled.reports.is_empty() || sampled.next + TOLERANCE < planned;
        let mut state = shared.state();
        state.is_busy = false;
        state.sampled = Some(sampled);
        drop(state);
        if is_news && !set_readable(&shared.news) {
            return; // the driver is gone
        }
    }
}

/// Samples all scopes, and forgets scopes that are not watched any more.
fn sample_all(
    scopes: &mut BTreeMap<ScopeId, Progress>,
    targets: &[Target],
    reader: &mut dyn ProcessReader,
) -> Sampled {
    scopes.retain(|scope, _| targets.iter().any(|target| target.scope == *scope));
    let (begun, used) = (Instant::now(), processor_time());
    let mut sampled = Sampled { reports: Vec::new(), next: begun, interval: Duration::MAX };
    let mut stall = None;
    for target in targets {
        let (interval, stalls_at) = sample_one(scopes, target, reader, &mut sampled.reports);
        sampled.interval = sampled.interval.min(interval);
        stall = stall.into_iter().chain(stalls_at).min();
    }
    // A busy machine makes a sample long, but not expensive.
    let rest = processor_time().saturating_sub(used) * REST;
    let earliest = Instant::now() + rest;
    sampled.interval = sampled.interval.min(Duration::from_secs(365 * 86_400));
    let rest = sampled.interval.max(rest);
    // The moment of a possible stall is not missed by a part of an interval.
    let stall = stall.map(|at: Instant| at.max(earliest));
    sampled.next = stall.into_iter().fold(begun + rest, Instant::min);
    sampled
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Samples a scope. Returns the interval to the next sample, and the time of a possible stall.
fn sample_one(
    scopes: &mut BTreeMap<ScopeId, Progress>,
    target: &Target,
    reader: &mut dyn ProcessReader,
    reports: &mut Vec<SampleReport>,
) -> (Duration, Option<Instant>) {
    let (scope, watch) = (target.scope, target.watch);
    let family = reader.family(&target.roots).ok();
    let mut stalls_at = None;
    if let Some(time) = watch.stalled {
        let progress = scopes.entry(scope).or_insert_with(|| Progress::new(target.since, time));
        let now = Instant::now();
        progress.add(now, family.as_deref(), reader);
        if progress.take_unreadable() {
            reports.push(SampleReport::Unreadable(scope));
        }
        stalls_at = progress.stalls_at(time);
        if stalls_at.is_some_and(|at| at <= now) {
            reports.push(SampleReport::Stalled(scope));
            stalls_at = None;
        }
    }
    let mut interval = interval(watch);
    if let (Some(limit), Some(family)) = (watch.memory, &family) {
        match sample(family, limit, reader) {
            MemorySample::Low => {}
            MemorySample::High => interval = interval.min(HIGH_MEMORY_INTERVAL),
            MemorySample::Over(memory) => reports.push(SampleReport::OverMemory(scope, memory)),
        }
    }
    (interval, stalls_at)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::watch::reading::Fake;

    #[test]
    fn intervals_are_an_eighth_and_a_quarter_of_a_second() {
        let stalled = |seconds| Watch { stalled: Some(Duration::from_secs(seconds)), memory: None };
        assert_eq!(interval(stalled(120)), Duration::from_secs(15));
        assert_eq!(interval(stalled(1)), INTERVAL);
        assert_eq!(interval(Watch { memory: Some(1), ..stalled(120) }), INTERVAL);
    }

    #[test]
    fn samples_that_wait_delay_no_later_sample() {
        let watch = Watch { stalled: Some(Duration::from_secs(60)), memory: Some(1) };
        let target = Target { scope: ScopeId(3), watch, since: Instant::now(), roots: vec![1] };
        let mut reader = Fake { wait: Duration::from_millis(100), ..Fake::default() };
        let begun = Instant::now();
        let sampled = sample_all(&mut BTreeMap::new(), &[target], &mut reader);
        // The processor time of a sample is far below a tenth of the interval.
        assert!(sampled.next < begun + 3 * INTERVAL, "{:?}", sampled.next - begun);
    }

    #[test]
    fn a_sleeping_process_stalls() {
        let mut child =
            Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep runs");
        let time = Duration::from_millis(400);
        let watch = Watch { stalled: Some(time), memory: Some(1) };
        let scope = ScopeId(3);
        let mut scopes = BTreeMap::new();
        let since = Instant::now();
        let mut reports = loop {
            let roots = vec![child.id() as i32];
            let target = Target { scope, watch, since, roots };
            let sampled = sample_all(&mut scopes, &[target], &mut SystemReader);
            if sampled.reports.contains(&SampleReport::Stalled(scope)) {
                break sampled.reports;
            }
            std::thread::sleep(sampled.next.saturating_duration_since(Instant::now()));
        };
        assert!(since.elapsed() >= time);
        let Some(SampleReport::OverMemory(_, memory)) = reports.pop() else {
            panic!("{reports:?}")
        };
        assert_eq!(memory.largest, "sleep");
        child.kill().expect("it lives");
        child.wait().expect("it ends");
    }
}
