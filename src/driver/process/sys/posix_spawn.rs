//! Starting a program where there is no `clone`.

use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::{Mutex, OnceLock};

use libc::{c_int, pid_t};
use nix::errno::Errno;
use nix::sys::stat::{Mode, umask as exchange};

use super::early::was_ignored;
use super::launch::{Launch, Start};
use super::signals::SignalSet;

/// Starts a program in a process group of its own, with an empty signal mask, the dispositions the shell
/// was started with, and the shell's umask if there is none for it. It can't be given to the child alone: the
/// process has it meanwhile.
pub fn spawn(launch: &Launch) -> Result<pid_t, Errno> {
    static TURN: Mutex<()> = Mutex::new(());
    let Some(umask) = launch.umask else { return start(launch) };
    let _turn = TURN.lock();
    let before = exchange(Mode::from_bits_truncate(umask as libc::mode_t));
    let result = start(launch);
    exchange(before);
    result
}

fn start(launch: &Launch) -> Result<pid_t, Errno> {
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
const HIGHEST_SIGNAL: c_int = 64;

/// The signals that weren't ignored when the shell started. Children get them all as they are by
/// default anyway; where it isn't told so, the system library asks for each, in every child.
fn not_ignored() -> &'static SignalSet {
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
