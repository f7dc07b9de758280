//! Worker threads for what may block: opening files, looking at file systems, writing to pipes.
//!
//! A worker is made when none is idle, so that a hung call never holds up another one. A call that
//! nobody waits for any more is interrupted by a signal to its thread.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::{read, write};

use super::signal::of_the_editor;
use ftsh_sys as sys;

/// Names a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

/// More threads than this are never made; further jobs queue.
const MOST_THREADS: usize = 1024;
const STACK_SIZE: usize = 256 * 1024;
/// What a thread takes besides its stack, generously.
const HEADROOM: usize = 1024 * 1024;
/// An idle worker ends after this time.
const IDLE: Duration = Duration::from_secs(10);
/// A nudge can come just before its call blocks, so it is repeated, less and less often.
const FIRST_NUDGE: Duration = Duration::from_millis(2);
const SLOWEST_NUDGE: Duration = Duration::from_secs(1);

type Job<A> = Box<dyn FnOnce(&Control) -> A + Send>;

/// A job's state, shared by the loop and its worker.
#[derive(Default)]
pub struct Control(Mutex<State>);

#[derive(Default)]
struct State {
    cancelled: bool,
    committed: bool,
    thread: Option<sys::Thread>,
}

impl Control {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody waits for the job any more.
    pub fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    /// Announces a step that can't be taken back; false if the job was cancelled before.
    pub fn commit(&self) -> bool {
        let mut state = self.state();
        state.committed = !state.cancelled;
        state.committed
    }

    /// Cancels the job; false if it has committed itself, and its answer will come.
    fn cancel(&self) -> bool {
        let mut state = self.state();
        state.cancelled |= !state.committed;
        state.cancelled
    }

    /// Interrupts a cancelled job; false if it is over.
    fn nudge(&self) -> bool {
        let state = self.state();
        if let Some(thread) = state.thread {
            // The thread clears the field, under the lock, before anything else that may block.
            thread.nudge();
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
        let answer = job(self);
        self.state().thread = None;
        Some(answer)
    }
}

struct Shared<A> {
    queue: Mutex<Queue<A>>,
    filled: Condvar,
}

struct Queue<A> {
    jobs: VecDeque<(Ticket, Arc<Control>, Job<A>)>,
    threads: usize,
    idle: usize,
}

impl<A> Shared<A> {
    fn queue(&self) -> MutexGuard<'_, Queue<A>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The workers.
pub struct WorkerPool<A> {
    shared: Arc<Shared<A>>,
    answers: Receiver<(Ticket, A)>,
    sender: Sender<(Ticket, A)>,
    /// Counts answers that the loop has not seen.
    answered: Arc<OwnedFd>,
    last: u64,
    nudging: Vec<Nudging>,
}

struct Nudging {
    control: Arc<Control>,
    due: Instant,
    interval: Duration,
}

/// What the loop keeps of a job.
pub struct Handle {
    /// Its name.
    pub ticket: Ticket,
    control: Arc<Control>,
}

impl Handle {
    /// The thread that is taking a step that can't be taken back.
    pub fn committed_thread(&self) -> Option<sys::Thread> {
        let state = self.control.state();
        state.thread.filter(|_| state.committed)
    }
}

impl<A: Send + 'static> WorkerPool<A> {
    /// A pool without threads yet.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let answered = sys::move_up(EventFd::from_flags(flags)?.into())?;
        let (sender, answers) = mpsc::channel();
        let queue = Queue { jobs: VecDeque::new(), threads: 0, idle: 0 };
        Ok(Self {
            shared: Arc::new(Shared { queue: Mutex::new(queue), filled: Condvar::new() }),
            answers,
            sender,
            answered: Arc::new(answered),
            last: 0,
            nudging: Vec::new(),
        })
    }

    /// Readable when an answer is there.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.answered.as_fd()
    }

    /// Has a worker do this. Fails only if there is no worker and none can be made.
    pub fn submit(
        &mut self,
        job: impl FnOnce(&Control) -> A + Send + 'static,
    ) -> io::Result<Handle> {
        self.last += 1;
        let ticket = Ticket(self.last);
        let control = Arc::new(Control::default());
        let mut queue = self.shared.queue();
        if queue.idle <= queue.jobs.len() && queue.threads < MOST_THREADS {
            match self.start_thread() {
                Ok(()) => queue.threads += 1,
                Err(error) if queue.threads == 0 => return Err(error),
                Err(_) => {} // the others will get to it
            }
        }
        queue.jobs.push_back((ticket, control.clone(), Box::new(job)));
        drop(queue);
        self.shared.filled.notify_one();
        Ok(Handle { ticket, control })
    }

    fn start_thread(&self) -> io::Result<()> {
        let (shared, sender, answered) =
            (self.shared.clone(), self.sender.clone(), self.answered.clone());
        let work = move || {
            let _ = of_the_editor().thread_block();
            work(&shared, &sender, &answered);
        };
        // A thread that finds no memory as it begins ends the process.
        if !sys::has_room(STACK_SIZE + HEADROOM) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        std::thread::Builder::new().name("worker".into()).stack_size(STACK_SIZE).spawn(work)?;
        Ok(())
    }

    /// Interrupts a job that nobody waits for; false if it has gone too far, and its answer
    /// will come.
    pub fn cancel(&mut self, handle: &Handle) -> bool {
        let cancelled = handle.control.cancel();
        if cancelled && handle.control.nudge() {
            let due = Instant::now() + FIRST_NUDGE;
            let control = handle.control.clone();
            self.nudging.push(Nudging { control, due, interval: FIRST_NUDGE });
        }
        cancelled
    }

    /// When `tick` wants to be called, if at all.
    pub fn next_due(&self) -> Option<Instant> {
        self.nudging.iter().map(|nudging| nudging.due).min()
    }

    /// Repeats what interrupts cancelled jobs.
    pub fn tick(&mut self, now: Instant) {
        self.nudging.retain_mut(|nudging| {
            if nudging.due > now {
                return true;
            }
            nudging.interval = (nudging.interval * 2).min(SLOWEST_NUDGE);
            nudging.due = now + nudging.interval;
            nudging.control.nudge()
        });
    }

    /// The next answer, if there is one.
    pub fn answer(&mut self) -> Option<(Ticket, A)> {
        self.answers.try_recv().ok()
    }

    /// Takes note that `readiness` was seen; to be called before `answer`.
    pub fn clear_readiness(&mut self) {
        let _ = read(&self.answered, &mut [0; size_of::<u64>()]);
    }
}

fn work<A>(shared: &Shared<A>, sender: &Sender<(Ticket, A)>, answered: &OwnedFd) {
    while let Some((ticket, control, job)) = next_job(shared) {
        // A cancelled job's answer is dropped here, and with it what it had opened.
        if let Some(answer) = control.run(job)
            && !control.is_cancelled()
            && (sender.send((ticket, answer)).is_err()
                || write(answered, &1_u64.to_ne_bytes()).is_err())
        {
            return; // the driver is gone
        }
    }
}

fn next_job<A>(shared: &Shared<A>) -> Option<(Ticket, Arc<Control>, Job<A>)> {
    let mut queue = shared.queue();
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            return Some(job);
        }
        queue.idle += 1;
        let (guard, timeout) =
            shared.filled.wait_timeout(queue, IDLE).unwrap_or_else(PoisonError::into_inner);
        queue = guard;
        queue.idle -= 1;
        if timeout.timed_out() && queue.jobs.is_empty() {
            queue.threads -= 1;
            return None;
        }
    }
}
