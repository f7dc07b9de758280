//! Worker threads for calls that may block: opening files, checking file systems, writing to pipes.
//!
//! A worker is started when none is idle, so that a hanging call never delays another call. A
//! signal to its thread interrupts a canceled call.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bstr::{BStr, BString};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::{read, write};

use crate::events::editor_signals;
use ftsh_sys as sys;

/// Identifier of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct JobId(u64);

/// Limit of threads. Further jobs wait in the queue.
const MAX_THREADS: usize = 1024;
const STACK_SIZE: usize = 256 * 1024;
/// Memory that a thread needs besides its stack, rounded up.
const HEADROOM: usize = 1024 * 1024;
/// Time after which an idle worker ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of the first nudge. A nudge can arrive just before the call blocks, so nudges are
/// repeated at growing intervals.
const FIRST_NUDGE_INTERVAL: Duration = Duration::from_millis(2);
const MAX_NUDGE_INTERVAL: Duration = Duration::from_secs(1);

/// Time after cancellation after which a call counts as hanging in the kernel, which no signal
/// ends. A busy disk delays a call less in most cases.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_millis(200);

/// Number of threads that execute a job.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Executes a job that may delay the end of this process.
pub fn while_busy<T>(job: impl FnOnce() -> T) -> T {
    BUSY.fetch_add(1, Ordering::Relaxed);
    let answer = job();
    BUSY.fetch_sub(1, Ordering::Relaxed);
    answer
}

/// True if a thread executes a job, which may delay the end of this process.
pub(crate) fn are_busy() -> bool {
    BUSY.load(Ordering::Relaxed) > 0
}

type Job<A> = Box<dyn FnOnce(&Control) -> A + Send>;

/// State of a job, shared by the event loop and the worker.
#[derive(Default)]
pub(crate) struct Control(Mutex<State>);

#[derive(Default)]
struct State {
    cancelled: bool,
    committed: bool,
    thread: Option<sys::Thread>,
    call: Option<Call>,
}

/// Call of a worker that may block, for messages.
pub(crate) enum Call {
    /// Opening a file.
    Open(BString),
    /// Looking at a file, or listing or entering a directory.
    Look(BString),
    /// Reading from a descriptor.
    Read(RawFd),
    /// Writing to a descriptor.
    Write(RawFd),
}

impl Call {
    /// Describes the call. The kernel knows the name of an open file, so the description touches no
    /// file system.
    fn describe(&self) -> String {
        let (verb, path) = match self {
            Self::Open(path) => ("opening", path.clone()),
            Self::Look(path) => ("looking at", path.clone()),
            Self::Read(fd) => ("reading from", name(*fd)),
            Self::Write(fd) => ("writing to", name(*fd)),
        };
        format!("{verb} `{}`", BStr::new(&path))
    }
}

fn name(fd: RawFd) -> BString {
    let path = fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    path.as_os_str().as_bytes().into()
}

impl Control {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the job was canceled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    /// Records the call that the job makes next.
    pub(crate) fn note(&self, call: Call) {
        self.state().call = Some(call);
    }

    /// Describes the current call of a job that has not finished.
    fn current_call(&self) -> String {
        self.state().call.as_ref().map_or_else(|| "a call".into(), Call::describe)
    }

    /// Begins a step that cannot be undone. Returns false if the job was canceled before.
    pub(crate) fn commit(&self) -> bool {
        let mut state = self.state();
        state.committed = !state.cancelled;
        state.committed
    }

    /// Cancels the job. Returns false if the job has begun a step that cannot be undone; then its
    /// answer follows.
    fn cancel(&self) -> bool {
        let mut state = self.state();
        state.cancelled |= !state.committed;
        state.cancelled
    }

    /// Interrupts the job's system call. Returns false if the job has finished.
    fn nudge(&self) -> bool {
        let state = self.state();
        if let Some(thread) = state.thread {
            // The thread clears the field under the lock, before its next blocking call.
            thread.interrupt();
        }
        state.thread.is_some()
    }

    fn run<A>(&self, job: Job<A>) -> Option<A> {
        let mut state = self.state();
        if state.cancelled {
            return None;
        }
        state.thread = Some(sys::Thread::current());
        drop(state);
        let answer = while_busy(|| job(self));
        self.state().thread = None;
        Some(answer)
    }
}

struct PoolShared<A> {
    queue: Mutex<PendingJobs<A>>,
    filled: Condvar,
}

struct PendingJobs<A> {
    jobs: VecDeque<(JobId, Arc<Control>, Job<A>)>,
    threads: usize,
    idle: usize,
}

impl<A> PoolShared<A> {
    fn queue(&self) -> MutexGuard<'_, PendingJobs<A>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pool of worker threads.
pub(crate) struct WorkerPool<A> {
    shared: Arc<PoolShared<A>>,
    answers: Receiver<(JobId, A)>,
    sender: Sender<(JobId, A)>,
    /// Event descriptor that counts answers not yet taken.
    answered: Arc<OwnedFd>,
    last: u64,
    nudging: Vec<Nudging>,
}

struct Nudging {
    control: Arc<Control>,
    due: Instant,
    interval: Duration,
    since: Instant,
    /// True after the report that the call hangs.
    is_reported: bool,
}

/// Handle of a submitted job.
pub(crate) struct JobHandle {
    /// Identifier of the job.
    pub ticket: JobId,
    control: Arc<Control>,
}

impl JobHandle {
    /// Returns the thread in a step that cannot be undone.
    pub(crate) fn committed_thread(&self) -> Option<sys::Thread> {
        let state = self.control.state();
        state.thread.filter(|_| state.committed)
    }
}

impl<A: Send + 'static> WorkerPool<A> {
    /// Creates a pool without threads.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let answered = sys::move_up(EventFd::from_flags(flags)?.into())?;
        let (sender, answers) = mpsc::channel();
        let queue = PendingJobs { jobs: VecDeque::new(), threads: 0, idle: 0 };
        Ok(Self {
            shared: Arc::new(PoolShared { queue: Mutex::new(queue), filled: Condvar::new() }),
            answers,
            sender,
            answered: Arc::new(answered),
            last: 0,
            nudging: Vec::new(),
        })
    }

    /// Returns a descriptor that is readable when an answer is available.
    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.answered.as_fd()
    }

    /// Submits a job. Fails only if no worker exists and none can be started.
    pub(crate) fn submit(
        &mut self,
        job: impl FnOnce(&Control) -> A + Send + 'static,
    ) -> io::Result<JobHandle> {
        self.last += 1;
        let ticket = JobId(self.last);
        let control = Arc::new(Control::default());
        let mut queue = self.shared.queue();
        if queue.idle <= queue.jobs.len() && queue.threads < MAX_THREADS {
            match self.start_thread() {
                Ok(()) => queue.threads += 1,
                Err(error) if queue.threads == 0 => return Err(error),
                Err(_) => {} // existing workers run the job
            }
        }
        queue.jobs.push_back((ticket, control.clone(), Box::new(job)));
        drop(queue);
        self.shared.filled.notify_one();
        Ok(JobHandle { ticket, control })
    }

    fn start_thread(&self) -> io::Result<()> {
        let (shared, sender, answered) =
            (self.shared.clone(), self.sender.clone(), self.answered.clone());
        let work = move || {
            let _ = editor_signals().thread_block();
            work(&shared, &sender, &answered);
        };
        // The process aborts if a new thread finds no memory at its start.
        if !sys::has_room(STACK_SIZE + HEADROOM) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        std::thread::Builder::new().name("worker".into()).stack_size(STACK_SIZE).spawn(work)?;
        Ok(())
    }

    /// Cancels a job and interrupts its worker. Returns false if the job has begun a step that
    /// cannot be undone; then its answer follows.
    pub(crate) fn cancel(&mut self, handle: &JobHandle) -> bool {
        let cancelled = handle.control.cancel();
        if cancelled && handle.control.nudge() {
            let since = Instant::now();
            self.nudging.push(Nudging {
                control: handle.control.clone(),
                due: since + FIRST_NUDGE_INTERVAL,
                interval: FIRST_NUDGE_INTERVAL,
                since,
                is_reported: false,
            });
        }
        cancelled
    }

    /// Returns the time of the next `tick`, if one is needed.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.nudging.iter().map(|nudging| nudging.due).min()
    }

    /// Repeats interrupts of canceled jobs. Returns descriptions of the calls that hang in the
    /// kernel, each once.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<String> {
        let mut hanging = Vec::new();
        self.nudging.retain_mut(|nudging| {
            if nudging.due > now {
                return true;
            }
            nudging.interval = (nudging.interval * 2).min(MAX_NUDGE_INTERVAL);
            nudging.due = now + nudging.interval;
            let hangs_from = nudging.since + HANG_TIMEOUT;
            let is_late = now >= hangs_from;
            if !is_late {
                nudging.due = nudging.due.min(hangs_from);
            }
            let is_running = nudging.control.nudge();
            if is_running && is_late && !std::mem::replace(&mut nudging.is_reported, true) {
                hanging.push(nudging.control.current_call());
            }
            is_running
        });
        hanging
    }

    /// True if a canceled job has not ended, and is not known to hang.
    pub(crate) fn is_interrupting(&self) -> bool {
        self.nudging.iter().any(|nudging| !nudging.is_reported)
    }

    /// Returns the next answer, if one is available.
    pub(crate) fn answer(&mut self) -> Option<(JobId, A)> {
        self.answers.try_recv().ok()
    }

    /// Resets `readiness`. Must be called before `answer`.
    pub(crate) fn clear_readiness(&mut self) {
        let _ = read(&self.answered, &mut [0; size_of::<u64>()]);
    }
}

/// Makes an event descriptor readable. Returns false if its reader is gone.
pub(crate) fn set_readable(event: &OwnedFd) -> bool {
    loop {
        match write(event, &1_u64.to_ne_bytes()) {
            Err(Errno::EINTR) => {} // the event must not be lost
            // The counter is full, so the descriptor is readable.
            result => return matches!(result, Ok(_) | Err(Errno::EAGAIN)),
        }
    }
}

fn work<A>(shared: &PoolShared<A>, sender: &Sender<(JobId, A)>, answered: &OwnedFd) {
    while let Some((ticket, control, job)) = next_job(shared) {
        // Dropping the answer of a canceled job closes the files that it opened.
        if let Some(answer) = control.run(job)
            && !control.is_cancelled()
            && (sender.send((ticket, answer)).is_err() || !set_readable(answered))
        {
            return; // the driver is gone
        }
    }
}

fn next_job<A>(shared: &PoolShared<A>) -> Option<(JobId, Arc<Control>, Job<A>)> {
    let mut queue = shared.queue();
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            return Some(job);
        }
        queue.idle += 1;
        let (guard, timeout) =
            shared.filled.wait_timeout(queue, IDLE_TIMEOUT).unwrap_or_else(PoisonError::into_inner);
        queue = guard;
        queue.idle -= 1;
        if timeout.timed_out() && queue.jobs.is_empty() {
            queue.threads -= 1;
            return None;
        }
    }
}
