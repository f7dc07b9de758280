//! Signal handlers, masks and dispositions.

use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
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

/// Returns the action of the process on a signal.
fn action(signal: c_int) -> libc::sigaction {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given; the old one is written, or stays zero: the default.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    }
}

/// Sets the action of the process on a signal.
///
/// # Safety
///
/// A handler must be async-signal-safe.
unsafe fn replace_action(signal: c_int, action: &libc::sigaction) {
    // SAFETY: the action is initialised, and its handler as the caller promises.
    unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
}

/// Signal as seen by its handler.
#[derive(Clone, Copy, Debug)]
pub struct Caught {
    /// Number of the signal.
    pub signal: c_int,
    /// Process id of the sender; 0 for the kernel, -1 for a process outside of this pid namespace.
    pub sender: pid_t,
}

impl Caught {
    /// Size of the signal in the pipe, in bytes.
    pub const SIZE: usize = 8;

    /// Converts the bytes from the pipe.
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

/// Catches SIGCHLD too if `wanted`, and otherwise restores its default action.
///
/// The kernel sends SIGCHLD when a child ends or stops.
pub fn catch_children(wanted: bool) {
    if wanted {
        set_action(libc::SIGCHLD, SignalAction::Report);
        unblock(&[libc::SIGCHLD]);
    } else {
        set_action(libc::SIGCHLD, SignalAction::Default);
    }
}

extern "C" fn on_interrupt(_signal: c_int) {}

/// Signal that interrupts a blocked call of a worker thread. The default action ignores the signal.
const INTERRUPT: c_int = libc::SIGURG;

/// Writes each of the given signals to a non-blocking pipe, which is never closed.
pub fn catch(signals: &[c_int], pipe: OwnedFd) {
    SIGNAL_PIPE.store(pipe.into_raw_fd(), Ordering::Relaxed);
    for &signal in signals {
        set_action(signal, SignalAction::Report);
    }
    set_action(INTERRUPT, SignalAction::Interrupt);
    unblock(signals);
}

/// Signals with a handler of the process, now or earlier: bit n - 1 for signal n.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Returns the signals of [`CAUGHT`].
pub(super) fn caught() -> impl Iterator<Item = c_int> {
    let caught = CAUGHT.load(Ordering::Relaxed);
    (1..=64).filter(move |signal| caught & 1 << (signal - 1) != 0)
}

/// Action of the process on a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalAction {
    /// Default action of the system.
    Default,
    Ignore,
    /// Write to the pipe.
    Report,
    /// Interruption of a blocked call of the thread.
    Interrupt,
}

pub(super) fn set_action(signal: c_int, action: SignalAction) {
    if matches!(action, SignalAction::Report | SignalAction::Interrupt) {
        CAUGHT.fetch_or(1 << (signal - 1), Ordering::Relaxed);
    }
    let (handler, flags) = match action {
        SignalAction::Default => (libc::SIG_DFL, 0),
        SignalAction::Ignore => (libc::SIG_IGN, 0),
        SignalAction::Report => {
            let handler = on_signal as extern "C" fn(_, _, _);
            (handler as usize, libc::SA_SIGINFO | libc::SA_RESTART)
        }
        // No SA_RESTART, which would repeat the interrupted call.
        SignalAction::Interrupt => (on_interrupt as extern "C" fn(_) as usize, 0),
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
    set.extend(set_of(&[INTERRUPT]).iter());
    let _ = set.thread_unblock();
}

/// Restores a signal's default disposition.
pub(super) fn set_default(signal: c_int) {
    set_action(signal, SignalAction::Default);
}

/// Ends the process by a signal, as if no handler had ever been set.
///
/// A signal that does not kill becomes the exit code of a shell for this signal.
pub fn die_by(signal: c_int) -> ! {
    set_default(signal);
    unblock(&[signal]);
    // A core dump belongs to the interpreter or the command.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let _ = Signal::try_from(signal).map(raise);
    exit_now(128 + signal)
}

/// Thread of the process whose blocked calls can be interrupted.
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

    /// Makes a blocked system call of the thread return EINTR.
    ///
    /// Does nothing after the end of the thread. A new thread with the same number repeats its
    /// call.
    pub fn interrupt(self) {
        let process = std::process::id() as pid_t;
        // SAFETY: the kernel checks both numbers; the signal's handler does nothing.
        unsafe { libc::syscall(libc::SYS_tgkill, process, self.0, INTERRUPT) };
    }
}

/// Signals that a supervisor takes with [`next_signal`].
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

/// Blocks the signals of [`next_signal`], until [`release_signals`].
pub fn hold_signals() {
    // An ignored SIGCHLD would discard the interpreter's exit status.
    set_default(libc::SIGCHLD);
    let _ = set_of(&SUPERVISED).thread_block();
}

/// Unblocks all signals, including those that the parent blocked.
///
/// The Java VM and some service managers start programs with SIGTERM blocked.
pub fn release_signals() {
    let _ = SigSet::empty().thread_set_mask();
}

/// Makes a command start without blocked signals, whatever this process blocks.
pub fn release_signals_of(command: &mut Command) -> &mut Command {
    // SAFETY: the change of the mask is async-signal-safe.
    unsafe { command.pre_exec(|| SigSet::empty().thread_set_mask().map_err(Into::into)) }
}

/// Takes one of the blocked signals, waiting at most for the limit, or forever without a limit.
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
                let sender = match info.si_pid() {
                    _ if info.si_code > 0 => 0,
                    0 => -1,
                    pid => pid,
                };
                return Some(Caught { signal, sender });
            }
        }
        if Errno::last() == Errno::EAGAIN {
            return None;
        }
    }
}

/// Gives the signals of job control their default action, if the process began with them ignored.
///
/// tmux leaves the signals ignored. A command that reads the terminal before the command has the
/// terminal would get an error instead of waiting.
pub fn restore_job_control() {
    let signals = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    signals.into_iter().filter(|&signal| is_ignored(signal)).for_each(set_default);
}

/// Stops the process by a signal of the terminal, and before that its process group if
/// `with_group`.
///
/// Returns when this process is continued, or at once without job control.
pub fn suspend(signal: c_int, with_group: bool) {
    let before = action(signal);
    if with_group {
        // The other processes stop first, then this thread, so that nothing runs in between.
        set_action(signal, SignalAction::Ignore);
        let _ = kill(0, signal);
    }
    set_default(signal);
    let _ = Signal::try_from(signal).map(raise);
    // SAFETY: the action was in force before.
    unsafe { replace_action(signal, &before) };
}

/// Runs an action on the terminal that would stop a process in the background.
pub fn without_stopping<T>(action: impl FnOnce() -> T) -> T {
    let before = set_of(&[libc::SIGTTOU]).thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let result = action();
    let _ = before.and_then(|mask| mask.thread_set_mask());
    result
}

/// Stops the process by a signal of the terminal, even a blocked signal, until the process is
/// continued.
///
/// Does nothing in an orphaned group, where no process could continue this process.
pub fn suspend_self(signal: c_int) {
    let Ok(raised) = Signal::try_from(signal) else { return };
    let _ = raise(raised);
    let before = SigSet::from_iter([raised]).thread_swap_mask(SigmaskHow::SIG_UNBLOCK);
    let _ = before.and_then(|mask| mask.thread_set_mask());
}
