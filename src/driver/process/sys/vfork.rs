//! Starting a program with a umask of its own, which `posix_spawn` has no attribute for: what that
//! does, step by step, in a child that borrows the memory of the shell until it executes.

use std::ffi::c_void;

use libc::{c_char, c_int, pid_t};
use nix::errno::Errno;

use super::launch::{HIGHEST_SIGNAL, Launch, Start, not_ignored};
use super::signals::{SignalSet, set_action};

/// More than the few calls of the child need.
const STACK: usize = 64 * 1024;

/// All that the child needs, so that it allocates nothing.
struct Child<'a> {
    launch: &'a Launch<'a>,
    umask: u16,
    arguments: Vec<*mut c_char>,
    environment: Vec<*mut c_char>,
    defaults: &'static SignalSet,
    /// Why the program isn't executed.
    error: Option<Errno>,
}

/// Starts a program as `spawn` does, with this umask.
pub fn spawn_masked(launch: &Launch, umask: u16) -> Result<pid_t, Errno> {
    let _start = Start::begin().ok_or(Errno::ECANCELED)?;
    let mut child = Child {
        launch,
        umask,
        arguments: launch.arguments.pointers(),
        environment: launch.environment.pointers(),
        defaults: not_ignored(),
        error: None,
    };
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let all = SignalSet::full();
    let mut before = SignalSet::empty();
    // SAFETY: the sets are initialised. The stack is aligned and the child's alone; what it is given
    // lives and isn't touched here, for this thread waits until the child executes or ends
    // (CLONE_VFORK). Signals are held back, so that no handler of ours runs in it.
    let result = unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all.0, &raw mut before.0);
        let result = Errno::result(libc::clone(
            begin,
            stack.as_mut_ptr_range().end.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut child).cast(),
        ));
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before.0, std::ptr::null_mut());
        result
    };
    let pid = result?;
    match child.error {
        None => Ok(pid),
        Some(errno) => {
            // SAFETY: a plain call; how it ended isn't asked for.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            Err(errno)
        }
    }
}

extern "C" fn begin(child: *mut c_void) -> c_int {
    // SAFETY: it is what `spawn_masked` gave, which waits.
    let child = unsafe { &mut *child.cast::<Child>() };
    child.error = Some(child.execute());
    127
}

impl Child<'_> {
    /// Becomes the program; returns only if that fails.
    fn execute(&self) -> Errno {
        for signal in 1..=HIGHEST_SIGNAL {
            if self.defaults.has(signal) {
                set_action(signal, libc::SIG_DFL, 0);
            }
        }
        let none = SignalSet::empty();
        // SAFETY: plain calls on live strings and sets; the vectors end with a null pointer. The
        // directory comes first: a relative program is looked for in it.
        unsafe {
            libc::umask(self.umask.into());
            let directory = self.launch.directory;
            if libc::setpgid(0, 0) < 0 || directory.is_some_and(|it| libc::chdir(it.as_ptr()) < 0) {
                return Errno::last();
            }
            for &(from, to) in self.launch.descriptors {
                if libc::dup2(from, to) < 0 {
                    return Errno::last();
                }
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none.0, std::ptr::null_mut());
            libc::execve(
                self.launch.program.as_ptr(),
                self.arguments.as_ptr().cast(),
                self.environment.as_ptr().cast(),
            );
        }
        Errno::last()
    }
}
