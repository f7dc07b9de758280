//! Handlers, masks and dispositions.

use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use libc::{c_int, pid_t};
use nix::errno::Errno;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise};

use super::children::{exit_now, kill};

/// Returns the set of these signals. Real-time signals are never among them.
pub(super) fn set_of(signals: &[c_int]) -> SigSet {
    signals.iter().filter_map(|&signal| Signal::try_from(signal).ok()).collect()
}

/// Returns true if a signal is ignored.
pub fn is_ignored(signal: c_int) -> bool {
    action(signal).sa_sigaction == libc::SIG_IGN
}

/// Returns what happens on a signal.
fn action(signal: c_int) -> libc::sigaction {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given; the old one is written, or stays zero: the default.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    }
}

/// Sets what happens on a signal.
///
/// # Safety
///
/// A handler must be async-signal-safe.
unsafe fn replace_action(signal: c_int, action: &libc::sigaction) {
    // SAFETY: the action is initialised, and its handler as the caller promises.
    unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
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
    let pipe = SIGNAL_PIPE.load(Ordering::Relaxed);
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo; the field is plain data for every
    // signal that we catch. `write` is async-signal-safe, and the buffer lives on this stack. If the
    // pipe is full, the reader wakes up as well, and looks for every child.
    unsafe {
        let is_kernels = (*info).si_code > 0 && signal != libc::SIGCHLD;
        let sender = if is_kernels { 0 } else { (*info).si_pid() };
        let mut bytes = [0; Caught::SIZE];
        bytes[..4].copy_from_slice(&signal.to_ne_bytes());
        bytes[4..].copy_from_slice(&sender.to_ne_bytes());
        libc::write(pipe, bytes.as_ptr().cast(), bytes.len());
    }
    Errno::set_raw(saved);
}

/// Catches SIGCHLD as well, which comes when a child ends or stops, or lets it be.
pub fn catch_children(wanted: bool) {
    if wanted {
        set_action(libc::SIGCHLD, Action::Report);
        unblock(&[libc::SIGCHLD]);
    } else {
        set_action(libc::SIGCHLD, Action::Default);
    }
}

/// Does something that may catch SIGCHLD in its own way; then it is caught, or not, as before.
pub fn keeping_children<T>(during: impl FnOnce() -> T) -> T {
    let before = action(libc::SIGCHLD);
    let result = during();
    // SAFETY: the action was in force before.
    unsafe { replace_action(libc::SIGCHLD, &before) };
    result
}

extern "C" fn on_nudge(_signal: c_int) {}

/// The signal that ends a blocked call of a worker thread; by default it does nothing.
const NUDGE: c_int = libc::SIGURG;

/// Has the given signals written to a non-blocking pipe, which is never closed.
pub fn catch(signals: &[c_int], pipe: OwnedFd) {
    SIGNAL_PIPE.store(pipe.into_raw_fd(), Ordering::Relaxed);
    for &signal in signals {
        set_action(signal, Action::Report);
    }
    set_action(NUDGE, Action::Nudge);
    unblock(signals);
}

/// The signals that have a handler of ours, or had one: bit n - 1 for signal n.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Those.
pub(super) fn caught() -> impl Iterator<Item = c_int> {
    let caught = CAUGHT.load(Ordering::Relaxed);
    (1..=64).filter(move |signal| caught & 1 << (signal - 1) != 0)
}

/// An action of this process on a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// The system's own.
    Default,
    Ignore,
    /// Writes the signal to the pipe.
    Report,
    /// Ends a blocked call of the thread.
    Nudge,
}

pub(super) fn set_action(signal: c_int, action: Action) {
    if matches!(action, Action::Report | Action::Nudge) {
        CAUGHT.fetch_or(1 << (signal - 1), Ordering::Relaxed);
    }
    let (handler, flags) = match action {
        Action::Default => (libc::SIG_DFL, 0),
        Action::Ignore => (libc::SIG_IGN, 0),
        Action::Report => {
            let handler = on_signal as extern "C" fn(_, _, _);
            (handler as usize, libc::SA_SIGINFO | libc::SA_RESTART)
        }
        // Without SA_RESTART, which would go on with the call.
        Action::Nudge => (on_nudge as extern "C" fn(_) as usize, 0),
    };
    // SAFETY: zero is a valid action, whose mask is empty; both handlers are async-signal-safe.
    unsafe {
        let mut new = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        new.sa_sigaction = handler;
        new.sa_flags = flags;
        replace_action(signal, &new);
    }
}

fn unblock(signals: &[c_int]) {
    let mut set = set_of(signals);
    set.extend(set_of(&[NUDGE]).iter());
    let _ = set.thread_unblock();
}

/// Restores a signal's default disposition.
pub(super) fn set_default(signal: c_int) {
    set_action(signal, Action::Default);
}

/// Ends this process by a signal, as if it had never been caught. A signal that doesn't kill
/// becomes the exit code a shell would show.
pub fn die_by(signal: c_int) -> ! {
    set_default(signal);
    unblock(&[signal]);
    // If there is to be a core, it is the interpreter's or the command's.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let _ = Signal::try_from(signal).map(raise);
    exit_now(128 + signal)
}

/// A thread of this process that can be nudged.
#[derive(Clone, Copy)]
pub struct Thread(pid_t);

impl Thread {
    /// Returns the calling thread.
    pub fn current() -> Self {
        Self(nix::unistd::gettid().as_raw())
    }

    /// Returns the thread's number among the tasks of `/proc`.
    pub fn id(self) -> i32 {
        self.0
    }

    /// Makes a blocked system call of the thread return EINTR. Does nothing after the thread's end; a new
    /// thread of the same number repeats its call.
    pub fn nudge(self) {
        let process = std::process::id() as pid_t;
        // SAFETY: the kernel checks both numbers; the signal's handler does nothing.
        unsafe { libc::syscall(libc::SYS_tgkill, process, self.0, NUDGE) };
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

/// A signal mask to go back to.
#[derive(Clone)]
pub struct Mask(SigSet);

impl Mask {
    /// Returns a mask that blocks nothing.
    pub fn empty() -> Self {
        Self(SigSet::empty())
    }
}

/// Holds back the signals that `next_signal` takes.
pub fn hold_signals() -> Mask {
    // Ignored, SIGCHLD would take the interpreter's status away.
    set_default(libc::SIGCHLD);
    let held = set_of(&SUPERVISED);
    let mut old = held.thread_swap_mask(SigmaskHow::SIG_BLOCK).unwrap_or(SigSet::empty());
    // SIGUSR1 was blocked by this program itself, any other one by its parent: the Java VM and some service
    // managers start programs with SIGTERM blocked. The shell answers them all.
    held.iter().for_each(|signal| old.remove(signal));
    Mask(old)
}

/// Ends what `hold_signals` began.
pub fn release_signals(mask: &Mask) {
    let _ = mask.0.thread_set_mask();
}

/// Takes one of the signals held back, waiting no longer than the limit, or forever without a limit.
pub fn next_signal(limit: Option<Duration>) -> Option<Caught> {
    let set = set_of(&SUPERVISED);
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
            let signal = libc::sigtimedwait(set.as_ref(), info.as_mut_ptr(), limit);
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
    let before = action(signal);
    if with_group {
        // The others first, then this thread itself, so that nothing goes on in between.
        set_action(signal, Action::Ignore);
        let _ = kill(0, signal);
    }
    set_default(signal);
    let _ = Signal::try_from(signal).map(raise);
    // SAFETY: the action was in force before.
    unsafe { replace_action(signal, &before) };
}

/// Does something to the terminal that would stop a process in the background.
pub fn without_stopping<T>(action: impl FnOnce() -> T) -> T {
    let before = set_of(&[libc::SIGTTOU]).thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let result = action();
    let _ = before.and_then(|mask| mask.thread_set_mask());
    result
}

/// Stops this process by a signal of the terminal's, although that may be held back, until the
/// process is continued. Does nothing where no process could do that, in an orphaned group.
pub fn suspend_self(signal: c_int) {
    let Ok(raised) = Signal::try_from(signal) else { return };
    let _ = raise(raised);
    let before = SigSet::from_iter([raised]).thread_swap_mask(SigmaskHow::SIG_UNBLOCK);
    let _ = before.and_then(|mask| mask.thread_set_mask());
}
