//! Starting and replacing programs.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use libc::{c_char, c_int, pid_t};
use nix::errno::Errno;

use super::c_string_array::CStringArray;
use super::children::become_subreaper;
use super::descriptors::close_all;
use super::early::{give_back_ignored, was_ignored};
use super::signals::SignalSet;

/// A program to start; the same for `spawn` and `exec`.
pub struct Launch<'a> {
    /// Its file.
    pub program: &'a CStr,
    /// Its arguments, the name included.
    pub arguments: &'a CStringArray,
    /// Its environment.
    pub environment: &'a CStringArray,
    /// Where it runs, if not where the shell does.
    pub directory: Option<&'a CStr>,
    /// Descriptors to set: from (never below 10) and to.
    pub descriptors: &'a [(RawFd, RawFd)],
}

/// Starts a program in a process group of its own, with an empty signal mask and the
/// dispositions the shell was started with.
pub fn spawn(launch: &Launch) -> Result<pid_t, Errno> {
    let _start = Start::begin().ok_or(Errno::ECANCELED)?;
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

/// The same with this umask: where it can't be given to the child alone, the process has it meanwhile.
#[cfg(not(target_os = "linux"))]
pub fn spawn_masked(launch: &Launch, umask: u16) -> Result<pid_t, Errno> {
    use nix::sys::stat::{Mode, umask as exchange};
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock();
    let before = exchange(Mode::from_bits_truncate(umask as libc::mode_t));
    let result = spawn(launch);
    exchange(before);
    result
}

/// How many threads are starting a program.
static STARTS: AtomicUsize = AtomicUsize::new(0);

/// Whether no further program may be started.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// A start in progress.
pub(super) struct Start;

impl Start {
    /// None if it is too late for that.
    pub(super) fn begin() -> Option<Self> {
        STARTS.fetch_add(1, Ordering::SeqCst);
        let this = Self;
        // Only now: whoever forbade it before the count either sees it or is seen here.
        (!FORBIDDEN.load(Ordering::SeqCst)).then_some(this)
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        STARTS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// From now on `spawn` starts nothing more, for good; what it was starting may still come.
pub fn forbid_starts() {
    FORBIDDEN.store(true, Ordering::SeqCst);
}

/// Whether a program is being started that may not be among the children yet.
pub fn is_starting() -> bool {
    STARTS.load(Ordering::SeqCst) > 0
}

/// Replaces this process; returns only if that fails. Descriptors and directory are the caller's.
pub fn exec(program: &CStr, arguments: &CStringArray, environment: &CStringArray) -> Errno {
    // SAFETY: the pointers are to the strings of living blocks.
    unsafe { execve(program, &arguments.pointers(), &environment.pointers()) }
}

/// # Safety
/// The vectors must hold pointers to strings and end with a null pointer.
unsafe fn execve(program: &CStr, arguments: &[*mut c_char], environment: &[*mut c_char]) -> Errno {
    // SAFETY: as the caller says.
    unsafe {
        libc::execve(program.as_ptr(), arguments.as_ptr().cast(), environment.as_ptr().cast())
    };
    Errno::last()
}

/// What a program is told that is to be executed without allocating anything.
pub struct Ready {
    arguments: CStringArray,
    environment: CStringArray,
    argument_pointers: Vec<*mut c_char>,
    environment_pointers: Vec<*mut c_char>,
}

impl Ready {
    /// Gets everything ready.
    pub fn new(arguments: CStringArray, environment: CStringArray) -> Self {
        let (argument_pointers, environment_pointers) =
            (arguments.pointers(), environment.pointers());
        Self { arguments, environment, argument_pointers, environment_pointers }
    }

    /// The environment, in which strings may be overwritten.
    pub fn environment(&mut self) -> &mut CStringArray {
        &mut self.environment
    }

    /// Replaces this process; returns only if that fails.
    pub fn execute(&mut self, program: &CStr) -> Errno {
        self.arguments.write_pointers(&mut self.argument_pointers);
        self.environment.write_pointers(&mut self.environment_pointers);
        // SAFETY: the pointers are to the strings of living blocks.
        unsafe { execve(program, &self.argument_pointers, &self.environment_pointers) }
    }
}

/// Before an `exec`: gives back what the shell was started with. With false, after one that failed:
/// takes it again.
pub fn prepare_exec(giving_back: bool, subreaper: bool) {
    give_back_ignored(giving_back);
    if subreaper {
        become_subreaper(!giving_back);
    }
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
        let defaults = not_ignored();
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

/// No system has a signal above this.
pub(super) const HIGHEST_SIGNAL: c_int = 64;

/// The signals that weren't ignored when the shell started. Children get them all as they are by
/// default anyway; where it isn't told so, the system library asks for each, in every child.
pub(super) fn not_ignored() -> &'static SignalSet {
    static NOT_IGNORED: OnceLock<SignalSet> = OnceLock::new();
    NOT_IGNORED.get_or_init(|| {
        let mut set = SignalSet::empty();
        for signal in 1..=HIGHEST_SIGNAL {
            if !was_ignored(signal) {
                set.add(signal);
            }
        }
        set
    })
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

/// Makes the child of a fork a process of its own that holds nothing open but one descriptor. It
/// must not drop what owned the others.
pub fn detach(but: BorrowedFd) {
    let _ = nix::unistd::setsid();
    let _ = std::env::set_current_dir("/");
    close_all(Some(but));
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(c"ftsh-reader");
}
