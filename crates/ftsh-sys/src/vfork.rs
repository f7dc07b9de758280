//! Starting a program as `posix_spawn` does, step by step, in a child that borrows the memory of the shell until
//! it executes: with a umask of its own, for which that has no attribute, and without a question for each
//! signal there is and a new stack each time.
//!
//! The child shares the memory of a process that may have threads. Until it executes a program or ends, it
//! may only call async-signal-safe functions: no allocation, no locks, nothing that panics.

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
use super::launch::{Launch, Start};
use super::oom_score;
use super::pre_main::give_back_ignored;
use super::signals::{caught, set_default};

/// More than the few calls of the child need.
const STACK: usize = 64 * 1024;

/// Most of its pages are never touched.
type Stack = Option<Box<[MaybeUninit<u128>]>>;

thread_local! {
    /// The stack of the children of this thread, one after the other.
    static STACKS: Cell<Stack> = const { Cell::new(None) };
}

/// All that the child needs, so that it allocates nothing.
struct Child<'a> {
    launch: &'a Launch<'a>,
    arguments: Vec<*mut c_char>,
    environment: Vec<*mut c_char>,
    /// Has the kernel kill it before the shell when memory runs out.
    score: Option<&'static [u8]>,
    /// Why the program isn't executed.
    error: Option<Errno>,
}

/// Starts a program in a process group of its own, with an empty signal mask, the dispositions the shell
/// was started with, and the shell's umask if there is none for it.
pub fn spawn(launch: &Launch) -> Result<pid_t, Errno> {
    let _start = Start::begin().ok_or(Errno::ECANCELED)?;
    let mut child = Child {
        launch,
        arguments: launch.arguments.pointers(),
        environment: launch.environment.pointers(),
        score: oom_score::of_commands(),
        error: None,
    };
    let mut stack =
        STACKS.take().unwrap_or_else(|| Box::new_uninit_slice(STACK / size_of::<u128>()));
    // No handler of ours runs in the child.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    // SAFETY: the stack is aligned and the child's alone; what it is given lives and isn't touched here,
    // for this thread waits until the child executes or ends (CLONE_VFORK).
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
    // SAFETY: it is what `spawn` gave, which waits.
    let child = unsafe { &mut *child.cast::<Child>() };
    child.error = Some(child.execute());
    127
}

impl Child<'_> {
    /// Becomes the program; returns only if that fails.
    fn execute(&self) -> Errno {
        // No handler of ours runs here when signals come again; what nobody else was to ignore isn't.
        caught().for_each(set_default);
        give_back_ignored(true);
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
        // Before the program is executed, which may be relative.
        self.launch.directory.map_or(Ok(()), chdir)?;
        for &(from, to) in self.launch.descriptors {
            // SAFETY: nothing else of the child uses descriptors.
            Errno::result(unsafe { libc::dup2(from.as_raw_fd(), to) })?;
        }
        SigSet::empty().thread_set_mask()
    }
}
