//! Handlers, masks and dispositions.

use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use libc::{c_int, pid_t};
use nix::errno::Errno;

use super::children::kill;

/// A set of signals.
#[derive(Clone)]
pub(super) struct SignalSet(pub(super) libc::sigset_t);

impl SignalSet {
    pub(super) fn empty() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset writes the whole set.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            Self(set.assume_init())
        }
    }

    pub(super) fn full() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigfillset writes the whole set.
        unsafe {
            libc::sigfillset(set.as_mut_ptr());
            Self(set.assume_init())
        }
    }

    pub(super) fn add(&mut self, signal: c_int) {
        // SAFETY: the set is initialised; a bad number is refused.
        unsafe { libc::sigaddset(&raw mut self.0, signal) };
    }

    fn remove(&mut self, signal: c_int) {
        // SAFETY: as above.
        unsafe { libc::sigdelset(&raw mut self.0, signal) };
    }
}

/// Whether a signal is ignored.
pub fn is_ignored(signal: c_int) -> bool {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given; the old one is written, or stays zero: the default.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), old.as_mut_ptr());
        old.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// A signal as its handler saw it.
#[derive(Clone, Copy, Debug)]
pub struct Caught {
    /// Its number.
    pub signal: c_int,
    /// Who sent it; 0 if the kernel did.
    pub sender: pid_t,
}

impl Caught {
    /// Its size in the pipe.
    pub const SIZE: usize = 8;

    /// Reads one from the pipe's bytes.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        let number = |at: usize| {
            let mut number = [0; 4];
            number.copy_from_slice(&bytes[at..at + 4]);
            i32::from_ne_bytes(number)
        };
        Self { signal: number(0), sender: number(4) }
    }
}

static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let saved = Errno::last_raw();
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo; the field is plain data for every
    // signal that we catch.
    let sender = unsafe {
        if (*info).si_code > 0 && signal != libc::SIGCHLD { 0 } else { (*info).si_pid() }
    };
    let mut bytes = [0; Caught::SIZE];
    bytes[..4].copy_from_slice(&signal.to_ne_bytes());
    bytes[4..].copy_from_slice(&sender.to_ne_bytes());
    let pipe = SIGNAL_PIPE.load(Ordering::Relaxed);
    // SAFETY: write is async-signal-safe; the buffer lives on this stack. If the pipe is full,
    // the reader wakes up all the same, and looks for every child.
    unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
    Errno::set_raw(saved);
}

/// Catches SIGCHLD as well, which comes when a child ends or stops, or lets it be.
pub fn catch_children(wanted: bool) {
    if wanted {
        set_action(libc::SIGCHLD, handler(), libc::SA_SIGINFO | libc::SA_RESTART);
        unblock(&[libc::SIGCHLD]);
    } else {
        set_default(libc::SIGCHLD);
    }
}

/// Does something that may catch SIGCHLD in its own way; then it is caught, or not, as before.
pub fn keeping_children<T>(action: impl FnOnce() -> T) -> T {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given; the old one is written to a live object.
    unsafe { libc::sigaction(libc::SIGCHLD, std::ptr::null(), before.as_mut_ptr()) };
    let result = action();
    // SAFETY: the action was written by the call before; the one it replaces isn't asked for.
    unsafe { libc::sigaction(libc::SIGCHLD, before.as_ptr(), std::ptr::null_mut()) };
    result
}

fn handler() -> usize {
    let handler = on_signal as extern "C" fn(_, _, _);
    handler as usize
}

extern "C" fn on_nudge(_signal: c_int) {}

/// The signal that ends a blocked call of a worker thread; by default it does nothing.
const NUDGE: c_int = libc::SIGURG;

/// Has the given signals written to a non-blocking pipe, which is never closed.
pub fn catch(signals: &[c_int], pipe: OwnedFd) {
    SIGNAL_PIPE.store(pipe.into_raw_fd(), Ordering::Relaxed);
    for &signal in signals {
        set_action(signal, handler(), libc::SA_SIGINFO | libc::SA_RESTART);
    }
    // Without SA_RESTART, so that it ends a blocked call.
    set_action(NUDGE, on_nudge as extern "C" fn(_) as usize, 0);
    unblock(signals);
}

/// The signals that have a handler of ours, or had one: bit n - 1 for signal n.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Those.
pub(super) fn caught() -> impl Iterator<Item = c_int> {
    let caught = CAUGHT.load(Ordering::Relaxed);
    (1..=64).filter(move |signal| caught & 1 << (signal - 1) != 0)
}

pub(super) fn set_action(signal: c_int, handler: usize, flags: c_int) {
    if !matches!(handler, libc::SIG_DFL | libc::SIG_IGN) {
        CAUGHT.fetch_or(1 << (signal - 1), Ordering::Relaxed);
    }
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all fields are set or zero; the handlers are async-signal-safe.
    unsafe {
        let pointer = action.as_mut_ptr();
        (*pointer).sa_sigaction = handler;
        (*pointer).sa_flags = flags;
        libc::sigemptyset(&raw mut (*pointer).sa_mask);
        libc::sigaction(signal, pointer, std::ptr::null_mut());
    }
}

fn unblock(signals: &[c_int]) {
    let mut set = SignalSet::empty();
    for &signal in signals {
        set.add(signal);
    }
    set.add(NUDGE);
    // SAFETY: the set is initialised; the old mask isn't asked for.
    unsafe {
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set.0, std::ptr::null_mut());
    }
}

/// Restores a signal's default disposition.
pub(super) fn set_default(signal: c_int) {
    set_action(signal, libc::SIG_DFL, 0);
}

/// Ends this process by a signal, as if it had never been caught. A signal that doesn't kill
/// becomes the exit code a shell would show.
pub fn die_by(signal: c_int) -> ! {
    set_default(signal);
    unblock(&[signal]);
    // SAFETY: plain system calls; the limit is only read.
    unsafe {
        // If there is to be a core, it is the interpreter's or the command's.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::raise(signal);
        libc::_exit(128 + signal)
    }
}

/// A thread that can be nudged.
#[derive(Clone, Copy)]
pub struct Thread {
    handle: libc::pthread_t,
    id: i32,
}

// SAFETY: the handle, which is a pointer to some C libraries, only names the thread, to all others as well.
unsafe impl Send for Thread {}

impl Thread {
    /// The calling thread.
    pub fn current() -> Self {
        let id = nix::unistd::gettid().as_raw();
        // SAFETY: always succeeds.
        Self { handle: unsafe { libc::pthread_self() }, id }
    }

    /// Its number among the tasks of `/proc`, where there is one.
    pub fn id(self) -> i32 {
        self.id
    }

    /// Makes the thread's blocked system call return EINTR.
    ///
    /// # Safety
    /// The thread must not have ended.
    pub unsafe fn nudge(self) {
        // SAFETY: the caller says that the thread lives.
        unsafe { libc::pthread_kill(self.handle, NUDGE) };
    }
}

/// The signals that a supervisor takes one by one.
const SUPERVISED: [c_int; 10] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGCHLD,
    libc::SIGTSTP,
    libc::SIGCONT,
];

/// Those as a set.
fn supervised() -> SignalSet {
    let mut set = SignalSet::empty();
    for signal in SUPERVISED {
        set.add(signal);
    }
    set
}

/// A signal mask to go back to.
#[derive(Clone)]
pub struct Mask(SignalSet);

impl Mask {
    /// Returns a mask that blocks nothing.
    pub fn empty() -> Self {
        Self(SignalSet::empty())
    }
}

/// Holds back the signals that `next_signal` takes.
pub fn hold_signals() -> Mask {
    // Ignored, it would take the interpreter's status away.
    set_default(libc::SIGCHLD);
    let held = supervised();
    let mut old = SignalSet::empty();
    // SAFETY: both sets are initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held.0, &raw mut old.0) };
    // SIGUSR1 was blocked by this program itself, any other one by its parent: the Java VM and some service
    // managers start programs with SIGTERM blocked. The shell answers them all.
    for signal in SUPERVISED {
        old.remove(signal);
    }
    Mask(old)
}

/// Ends what `hold_signals` began.
pub fn release_signals(mask: &Mask) {
    // SAFETY: the set is initialised; the old one isn't asked for.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask.0.0, std::ptr::null_mut());
    }
}

/// Takes one of the signals held back, waiting no longer than the limit, or forever without a limit.
pub fn next_signal(limit: Option<Duration>) -> Option<Caught> {
    let set = supervised();
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as _,
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    loop {
        // SAFETY: the set is initialised, the time is null or live, and the information is written to
        // a live object. For these signals the sender is plain data.
        unsafe {
            let signal = libc::sigtimedwait(&raw const set.0, info.as_mut_ptr(), limit);
            if signal > 0 {
                let info = info.assume_init_ref();
                let sender = if info.si_code > 0 { 0 } else { info.si_pid() };
                return Some(Caught { signal, sender });
            }
        }
        if Errno::last() == Errno::EAGAIN {
            return None;
        }
    }
}

/// Stops this process by a signal of the terminal's, and if `with_group` its process group before
/// it. Returns when this process is continued, or at once where there is no job control.
pub fn suspend(signal: c_int, with_group: bool) {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given; the old one is written to a live object.
    unsafe { libc::sigaction(signal, std::ptr::null(), before.as_mut_ptr()) };
    if with_group {
        // The others first, then this thread itself, so that nothing goes on in between.
        set_action(signal, libc::SIG_IGN, 0);
        let _ = kill(0, signal);
    }
    set_default(signal);
    // SAFETY: plain calls; the action was written by the call before.
    unsafe {
        libc::raise(signal);
        libc::sigaction(signal, before.as_ptr(), std::ptr::null_mut());
    }
}

/// Does something to the terminal that would stop a process in the background.
pub fn without_stopping<T>(action: impl FnOnce() -> T) -> T {
    let mut held = SignalSet::empty();
    held.add(libc::SIGTTOU);
    let mut old = SignalSet::empty();
    // SAFETY: both sets are initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held.0, &raw mut old.0) };
    let result = action();
    // SAFETY: the set was written by the call before; the old one isn't asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old.0, std::ptr::null_mut()) };
    result
}

/// Stops this process by a signal of the terminal's, although that may be held back, until the
/// process is continued. Does nothing where no process could do that, in an orphaned group.
pub fn suspend_self(signal: c_int) {
    let mut raised = SignalSet::empty();
    raised.add(signal);
    let mut before = SignalSet::empty();
    // SAFETY: plain calls; the sets are initialised.
    unsafe {
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const raised.0, &raw mut before.0);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before.0, std::ptr::null_mut());
    }
}
