//! System calls that neither std nor nix offers safely: the only unsafe code of the shell.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use libc::{c_char, c_int, pid_t};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::block::Block;
use crate::machine::event::Status;

/// The lowest number of a descriptor of our own: those below are the script's.
const FIRST_OWN: c_int = 10;

/// A program to start; the same for `spawn` and `exec`.
pub struct Launch<'a> {
    /// Its file.
    pub program: &'a CStr,
    /// Its arguments, the name included.
    pub arguments: &'a Block,
    /// Its environment.
    pub environment: &'a Block,
    /// Where it runs, if not where the shell does.
    pub directory: Option<&'a CStr>,
    /// Descriptors to set: from (never below 10) and to.
    pub descriptors: &'a [(RawFd, RawFd)],
}

/// Starts a program in a process group of its own, with an empty signal mask and the
/// dispositions the shell was started with.
pub fn spawn(launch: &Launch) -> Result<pid_t, Errno> {
    let mut actions = Actions::new()?;
    // The directory comes first: a relative program is looked for in it.
    if let Some(directory) = launch.directory {
        actions.chdir(directory)?;
    }
    for &(from, to) in launch.descriptors {
        actions.dup2(from, to)?;
    }
    let attributes = Attributes::new()?;
    let arguments = launch.arguments.pointers();
    let environment = launch.environment.pointers();
    let mut pid = 0;
    // SAFETY: all pointers are to live, initialised objects; the vectors end with a null pointer.
    let result = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            launch.program.as_ptr(),
            actions.0.as_ptr(),
            attributes.0.as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    };
    if result == 0 { Ok(pid) } else { Err(Errno::from_raw(result)) }
}

/// Replaces this process; returns only if that fails. Descriptors and directory are the caller's.
pub fn exec(program: &CStr, arguments: &Block, environment: &Block) -> Errno {
    let arguments = arguments.pointers();
    let environment = environment.pointers();
    // SAFETY: the vectors hold valid strings and end with a null pointer.
    unsafe {
        libc::execve(
            program.as_ptr(),
            arguments.as_ptr().cast::<*const c_char>(),
            environment.as_ptr().cast::<*const c_char>(),
        )
    };
    Errno::last()
}

fn check(result: c_int) -> Result<(), Errno> {
    if result == 0 { Ok(()) } else { Err(Errno::from_raw(result)) }
}

struct Actions(MaybeUninit<libc::posix_spawn_file_actions_t>);

impl Actions {
    fn new() -> Result<Self, Errno> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: init writes the object, and is called once.
        check(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        Ok(Self(actions))
    }

    fn chdir(&mut self, directory: &CStr) -> Result<(), Errno> {
        // SAFETY: initialised by `new`; the path is copied.
        check(unsafe {
            libc::posix_spawn_file_actions_addchdir_np(self.0.as_mut_ptr(), directory.as_ptr())
        })
    }

    fn dup2(&mut self, from: RawFd, to: RawFd) -> Result<(), Errno> {
        // SAFETY: initialised by `new`.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(self.0.as_mut_ptr(), from, to) })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr()) };
    }
}

struct Attributes(MaybeUninit<libc::posix_spawnattr_t>);

impl Attributes {
    fn new() -> Result<Self, Errno> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: init writes the object, and is called once.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        let mut this = Self(attributes);
        let attributes = this.0.as_mut_ptr();
        let flags = libc::POSIX_SPAWN_SETPGROUP
            | libc::POSIX_SPAWN_SETSIGDEF
            | libc::POSIX_SPAWN_SETSIGMASK;
        let mut defaults = SignalSet::empty();
        if !sigpipe_was_ignored() {
            defaults.add(libc::SIGPIPE);
        }
        let mask = SignalSet::empty();
        // SAFETY: the attributes are initialised, the sets too; both are copied.
        unsafe {
            check(libc::posix_spawnattr_setflags(attributes, flags as _))?;
            check(libc::posix_spawnattr_setpgroup(attributes, 0))?;
            check(libc::posix_spawnattr_setsigdefault(attributes, &raw const defaults.0))?;
            check(libc::posix_spawnattr_setsigmask(attributes, &raw const mask.0))?;
        }
        Ok(this)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(self.0.as_mut_ptr()) };
    }
}

struct SignalSet(libc::sigset_t);

impl SignalSet {
    fn empty() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset writes the whole set.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            Self(set.assume_init())
        }
    }

    fn add(&mut self, signal: c_int) {
        // SAFETY: the set is initialised; a bad number is refused.
        unsafe { libc::sigaddset(&raw mut self.0, signal) };
    }
}

/// Whether SIGPIPE was ignored before Rust's start-up code ignored it.
pub fn sigpipe_was_ignored() -> bool {
    SIGPIPE_IGNORED.load(Ordering::Relaxed)
}

static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Runs before Rust's start-up code, which ignores SIGPIPE and so hides what it was.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static NOTE_SIGPIPE: extern "C" fn() = {
    extern "C" fn note() {
        SIGPIPE_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    }
    note
};

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

fn handler() -> usize {
    let handler = on_signal as extern "C" fn(_, _, _);
    handler as usize
}

extern "C" fn on_nudge(_signal: c_int) {}

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

/// Has the given signals written to a non-blocking pipe, which is never closed. SIGCHLD comes when
/// a child ends, and if asked for when one stops.
pub fn catch(signals: &[c_int], pipe: OwnedFd, stops: bool) {
    SIGNAL_PIPE.store(std::os::fd::IntoRawFd::into_raw_fd(pipe), Ordering::Relaxed);
    for &signal in signals {
        let quiet = if stops { 0 } else { libc::SA_NOCLDSTOP };
        set_action(signal, handler(), libc::SA_SIGINFO | libc::SA_RESTART | quiet);
    }
    // Without SA_RESTART, so that it ends a blocked call.
    set_action(NUDGE, on_nudge as extern "C" fn(_) as usize, 0);
    unblock(signals);
}

/// The signal that ends a blocked call of a worker thread; by default it does nothing.
const NUDGE: c_int = libc::SIGURG;

fn set_action(signal: c_int, handler: usize, flags: c_int) {
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
pub fn set_default(signal: c_int) {
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
pub struct Thread(libc::pthread_t);

impl Thread {
    /// The calling thread.
    pub fn current() -> Self {
        // SAFETY: always succeeds.
        Self(unsafe { libc::pthread_self() })
    }

    /// Makes the thread's blocked system call return EINTR.
    ///
    /// # Safety
    /// The thread must not have ended.
    pub unsafe fn nudge(self) {
        // SAFETY: the caller says that the thread lives.
        unsafe { libc::pthread_kill(self.0, NUDGE) };
    }
}

/// A descriptor by its number: one that the shell was started with, or one that stays open while
/// the result is used.
pub fn borrow(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the shell never closes the descriptors it was started with; where one isn't open,
    // using it gives EBADF.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Duplicates a descriptor to a number outside the script's range, closed on exec.
pub fn duplicate(fd: BorrowedFd) -> io::Result<OwnedFd> {
    // SAFETY: a plain call; the new descriptor belongs to nobody else.
    unsafe {
        let new = libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST_OWN);
        if new < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(new)) }
    }
}

/// Moves a descriptor out of the script's range.
pub fn move_up(fd: OwnedFd) -> io::Result<OwnedFd> {
    use std::os::fd::AsFd;
    if fd.as_raw_fd() >= FIRST_OWN { Ok(fd) } else { duplicate(fd.as_fd()) }
}

/// Puts a descriptor at a number of the script's range, for an `exec`.
pub fn install(fd: RawFd, number: RawFd) -> io::Result<()> {
    // SAFETY: only numbers of the script's range are replaced, which no object of ours owns.
    if unsafe { libc::dup2(fd, number) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What was open at a number that `install` replaces.
pub struct Kept {
    fd: OwnedFd,
    closed_on_exec: bool,
}

impl Kept {
    /// Keeps what is open at a number; none if nothing is.
    pub fn of(number: RawFd) -> Option<Self> {
        let fd = duplicate(borrow(number)).ok()?;
        Some(Self { fd, closed_on_exec: !is_passed_on(number) })
    }

    /// Puts it back.
    pub fn restore(&self, number: RawFd) {
        if install(self.fd.as_raw_fd(), number).is_ok() && self.closed_on_exec {
            let flags = FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC);
            let _ = fcntl(borrow(number), flags);
        }
    }
}

/// Closes a number of the script's range.
pub fn close_number(number: RawFd) {
    // SAFETY: no object of ours owns a number of the script's range.
    unsafe { libc::close(number) };
}

/// A descriptor that is readable when the process has ended.
#[cfg(target_os = "linux")]
pub fn pidfd_open(pid: pid_t) -> io::Result<OwnedFd> {
    // SAFETY: a plain call; the new descriptor (closed on exec) belongs to nobody else.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as c_int)) }
    }
}

/// Writes without waiting; `WouldBlock` if that can't be done, `Unsupported` if the kernel can't
/// tell.
pub fn write_now(fd: BorrowedFd, bytes: &[u8]) -> io::Result<usize> {
    #[cfg(target_os = "linux")]
    {
        let part = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
        // SAFETY: one part, which is only read; the offset -1 stands for the current position.
        let count =
            unsafe { libc::pwritev2(fd.as_raw_fd(), &raw const part, 1, -1, libc::RWF_NOWAIT) };
        match usize::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) => match Errno::last() {
                Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL => {
                    Err(io::ErrorKind::Unsupported.into())
                }
                error => Err(error.into()),
            },
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (fd, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It ended.
    Ended(Status),
    /// This signal stopped it.
    Stopped(c_int),
}

/// Asks without waiting what became of a child (-1: of any); none if nothing did.
/// ECHILD says that there is no such child. An ended one is gone from then on.
pub fn wait_for(pid: pid_t, stopped_too: bool) -> Result<Option<(pid_t, Change)>, Errno> {
    let mut status = 0;
    let options = libc::WNOHANG | if stopped_too { libc::WUNTRACED } else { 0 };
    // SAFETY: the status is written to a live integer.
    let found = Errno::result(unsafe { libc::waitpid(pid, &raw mut status, options) })?;
    if found == 0 {
        return Ok(None);
    }
    let change = if libc::WIFSTOPPED(status) {
        Change::Stopped(libc::WSTOPSIG(status))
    } else if libc::WIFSIGNALED(status) {
        Change::Ended(Status::Signaled(libc::WTERMSIG(status)))
    } else {
        Change::Ended(Status::Exited(libc::WEXITSTATUS(status)))
    };
    Ok(Some((found, change)))
}

/// Sends a signal to a process, or with a negative number to a group.
pub fn kill(pid: pid_t, signal: c_int) -> Result<(), Errno> {
    // SAFETY: a plain call.
    Errno::result(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Adds status flags to an open file: `O_NONBLOCK`, `O_APPEND`.
pub fn add_flags(fd: BorrowedFd, added: OFlag) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | added))?;
    Ok(())
}

/// Whether a number is an open descriptor that children inherit.
pub fn is_passed_on(number: RawFd) -> bool {
    fcntl(borrow(number), FcntlArg::F_GETFD).is_ok_and(|flags| flags & libc::FD_CLOEXEC == 0)
}

/// Before an `exec`: gives back the dispositions and the mask the shell was started with. With
/// false, after one that failed: takes them again.
pub fn prepare_exec(giving_back: bool) {
    if !sigpipe_was_ignored() {
        let disposition = if giving_back { libc::SIG_DFL } else { libc::SIG_IGN };
        set_action(libc::SIGPIPE, disposition, 0);
    }
}

/// Whether the kernel has pidfds (Linux 5.3).
pub fn has_pidfds() -> bool {
    #[cfg(target_os = "linux")]
    {
        pidfd_open(std::process::id() as pid_t).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}

/// The limit on open descriptors, raised when more are needed. Programs keep the one that the
/// shell was started with: some can't cope with high numbers.
#[derive(Default)]
pub struct FileLimit {
    raised_from: Option<libc::rlimit>,
    tried: bool,
}

impl FileLimit {
    /// Below this many, the usual limit of 1024 serves.
    const MANY: usize = 300;
    const HIGHEST: libc::rlim_t = 1 << 20;

    /// Raises the limit if this many descriptors, or a few times as many, may be too many.
    pub fn make_room_for(&mut self, count: usize) {
        if self.tried || count < Self::MANY {
            return;
        }
        self.tried = true;
        if let Some(old) = limit() {
            let wanted = old.rlim_max.min(Self::HIGHEST);
            let new = libc::rlimit { rlim_cur: wanted.max(old.rlim_cur), ..old };
            // SAFETY: the new limit is only read.
            if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const new) } == 0 {
                self.raised_from = Some(old);
            }
        }
    }

    /// Gives a new child the limit that the shell was started with.
    pub fn restore_in(&self, pid: pid_t) {
        #[cfg(target_os = "linux")]
        if let Some(old) = &self.raised_from {
            // SAFETY: the new limit is only read, the old one not asked for.
            unsafe {
                libc::prlimit(pid, libc::RLIMIT_NOFILE, old, std::ptr::null_mut());
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = pid;
    }
}

fn limit() -> Option<libc::rlimit> {
    let mut limit = MaybeUninit::uninit();
    // SAFETY: getrlimit writes the whole structure if it succeeds.
    unsafe {
        (libc::getrlimit(libc::RLIMIT_NOFILE, limit.as_mut_ptr()) == 0).then(|| limit.assume_init())
    }
}

/// A process's group; none if there is no such process.
pub fn group_of(pid: pid_t) -> Option<pid_t> {
    // SAFETY: a plain call.
    Errno::result(unsafe { libc::getpgid(pid) }).ok()
}

/// Whether this process has no children at all, not even ended ones.
pub fn has_no_children() -> bool {
    // The process id of the result is not looked at: nothing may have ended.
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the information is written to a live object, and not read.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) };
    result == -1 && Errno::last() == Errno::ECHILD
}

/// Has processes that lose their parents come to this one; false where that can't be had.
pub fn become_subreaper(wanted: bool) -> bool {
    #[cfg(target_os = "linux")]
    {
        nix::sys::prctl::set_child_subreaper(wanted).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = wanted;
        false
    }
}

/// The signals that a supervisor takes one by one.
fn supervised() -> SignalSet {
    let mut set = SignalSet::empty();
    for signal in [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGCHLD,
        libc::SIGTSTP,
        libc::SIGCONT,
    ] {
        set.add(signal);
    }
    set
}

/// A signal mask to go back to.
pub struct Mask(SignalSet);

/// Holds back the signals that `next_signal` takes.
pub fn hold_signals() -> Mask {
    let held = supervised();
    let mut old = SignalSet::empty();
    // SAFETY: both sets are initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held.0, &raw mut old.0) };
    Mask(old)
}

/// Ends what `hold_signals` began.
pub fn release_signals(mask: &Mask) {
    // SAFETY: the set is initialised; the old one isn't asked for.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask.0.0, std::ptr::null_mut());
    }
}

/// Waits for one of the signals held back.
pub fn next_signal() -> Caught {
    let set = supervised();
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    loop {
        // SAFETY: the set is initialised, the information is written to a live object. For these
        // signals the sender is plain data.
        unsafe {
            let signal = wait_info(&raw const set.0, info.as_mut_ptr());
            if signal > 0 {
                let info = info.assume_init_ref();
                let sender = if info.si_code > 0 { 0 } else { info.si_pid() };
                return Caught { signal, sender };
            }
        }
    }
}

/// # Safety
/// The set must be initialised, the information live.
#[cfg(not(target_os = "macos"))]
unsafe fn wait_info(set: *const libc::sigset_t, info: *mut libc::siginfo_t) -> c_int {
    // SAFETY: as the caller says.
    unsafe { libc::sigwaitinfo(set, info) }
}

/// # Safety
/// The set must be initialised, the information live.
#[cfg(target_os = "macos")]
unsafe fn wait_info(set: *const libc::sigset_t, _info: *mut libc::siginfo_t) -> c_int {
    let mut signal = 0;
    // SAFETY: as the caller says; the signal is written to a live integer.
    unsafe { libc::sigwait(set, &raw mut signal) };
    signal
}

/// Splits this process; in the child there is no number.
pub fn fork() -> Result<Option<pid_t>, Errno> {
    // SAFETY: the caller sees to it that there is only one thread, so that the child may do
    // anything.
    let pid = Errno::result(unsafe { libc::fork() })?;
    Ok((pid != 0).then_some(pid))
}

/// Ends this process without running anything on the way.
pub fn exit_now(code: c_int) -> ! {
    // SAFETY: never returns.
    unsafe { libc::_exit(code) }
}

/// Stops the process group of this process, and so this process, as Ctrl-Z does; returns when it
/// is continued, or at once where there is no job control.
pub fn suspend_group() {
    set_default(libc::SIGTSTP);
    let _ = kill(0, libc::SIGTSTP);
    set_action(libc::SIGTSTP, handler(), libc::SA_SIGINFO | libc::SA_RESTART);
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

/// Makes a group the terminal's foreground; false if it is gone or not of this session.
pub fn set_foreground(tty: BorrowedFd, group: pid_t) -> bool {
    // SAFETY: a plain call.
    without_stopping(|| unsafe { libc::tcsetpgrp(tty.as_raw_fd(), group) } == 0)
}

/// Stops this process until it is continued.
pub fn stop_self() {
    let _ = kill(std::process::id() as pid_t, libc::SIGSTOP);
}

/// Some child that has ended and not been waited for.
pub fn ended_child() -> Option<pid_t> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the information is zero or written by the kernel; its process id is plain data.
    unsafe {
        if libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) != 0 {
            return None;
        }
        let pid = info.assume_init_ref().si_pid();
        (pid != 0).then_some(pid)
    }
}
