//! Start of a program in a child that shares the memory of the shell until the program is executed.
//!
//! The steps are those of `posix_spawn`, with two differences: the child sets a umask, and neither
//! queries every signal nor allocates a new stack.
//!
//! The child shares the memory of a process with possibly several threads. Until the child executes
//! a program or ends, it may only call async-signal-safe functions: no allocation, no locks,
//! nothing that panics.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use libc::{c_char, c_int, pid_t};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, chdir, setpgid};
use rustix::process::{WaitOptions, waitpid};

use super::children::process;
use super::launch::{Launch, StartGuard};
use super::oom_score;
use super::overlays::Namespaces;
use super::pre_main::restore_ignored;
use super::signals::{caught, set_default};

/// Size of a child's stack, which is more than its few calls need.
const STACK: usize = 64 * 1024;

/// Memory of a stack, most of whose pages are never touched.
type Stack = Option<Box<[MaybeUninit<u128>]>>;

thread_local! {
    /// Stack of the children of this thread, one after another.
    static STACKS: Cell<Stack> = const { Cell::new(None) };
}

/// Inputs of the child, prepared before its start because the child cannot allocate.
struct SpawnedChild<'a> {
    launch: &'a Launch<'a>,
    /// Namespaces of the program; `None` for those of the shell.
    namespaces: Option<&'a Namespaces>,
    arguments: Vec<*mut c_char>,
    environment: Vec<*mut c_char>,
    /// Score with which the kernel kills the child before the shell when memory runs out.
    score: Option<&'static [u8]>,
    /// Error that prevented the execution of the program.
    error: Option<Errno>,
}

/// Starts a program in a process group of its own.
///
/// The program has an empty signal mask, the dispositions that the shell was started with, and the
/// umask of the launch or of the shell.
pub fn spawn(launch: &Launch) -> Result<pid_t, Errno> {
    spawn_within(launch, None)
}

/// Starts a program as [`spawn`] does, within namespaces if there are any. The paths of the launch
/// are resolved there.
pub fn spawn_within(launch: &Launch, namespaces: Option<&Namespaces>) -> Result<pid_t, Errno> {
    let _start = StartGuard::begin().ok_or(Errno::ECANCELED)?;
    let mut child = SpawnedChild {
        launch,
        namespaces,
        arguments: launch.arguments.pointers(),
        environment: launch.environment.pointers(),
        score: oom_score::of_commands(),
        error: None,
    };
    let mut stack =
        STACKS.take().unwrap_or_else(|| Box::new_uninit_slice(STACK / size_of::<u128>()));
    // No handler of this process runs in the child.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    // SAFETY: the stack is aligned and belongs to the child alone. Other memory of the child lives
    // and is not touched here, because this thread waits until the child executes or ends
    // (CLONE_VFORK).
    let result = Errno::result(unsafe {
        libc::clone(
            begin,
            stack.as_mut_ptr_range().end.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut child).cast(),
        )
    });
    let _ = before.thread_set_mask();
    STACKS.set(Some(stack));
    let pid = result?;
    match child.error {
        None => Ok(pid),
        Some(errno) => {
            let _ = waitpid(process(pid), WaitOptions::empty());
            Err(errno)
        }
    }
}

extern "C" fn begin(child: *mut c_void) -> c_int {
    // SAFETY: the pointer comes from `spawn`, which waits.
    let child = unsafe { &mut *child.cast::<SpawnedChild>() };
    child.error = Some(child.execute());
    127
}

impl SpawnedChild<'_> {
    /// Executes the program; returns only after a failure.
    fn execute(&self) -> Errno {
        // The handlers are removed before signals are unblocked, and signals ignored only by the
        // shell get their default action.
        caught().for_each(set_default);
        restore_ignored(true);
        if let Some(score) = self.score {
            oom_score::set(score);
        }
        self.change_process().err().unwrap_or_else(|| {
            // SAFETY: the strings are live, and the vectors end with a null pointer.
            unsafe {
                libc::execve(
                    self.launch.program.as_ptr(),
                    self.arguments.as_ptr().cast(),
                    self.environment.as_ptr().cast(),
                )
            };
            Errno::last()
        })
    }

    /// Sets umask, group, directory, descriptors and signal mask.
    fn change_process(&self) -> Result<(), Errno> {
        if let Some(mask) = self.launch.umask {
            umask(Mode::from_bits_truncate(mask.into()));
        }
        setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        self.namespaces.map_or(Ok(()), Namespaces::enter)?;
        // The directory is set first, because the path of the program may be relative.
        self.launch.directory.map_or(Ok(()), chdir)?;
        for &(from, to) in self.launch.descriptors {
            // SAFETY: no other code of the child uses descriptors.
            Errno::result(unsafe { libc::dup2(from.as_raw_fd(), to) })?;
        }
        SigSet::empty().thread_set_mask()
    }
}
