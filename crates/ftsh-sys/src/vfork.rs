//! Starting a program as `posix_spawn` does, step by step, in a child that borrows the memory of the shell until
//! it executes: with a umask of its own, for which that has no attribute, and without a question for each
//! signal there is and a new stack each time.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;

use libc::{c_char, c_int, pid_t};
use nix::errno::Errno;

use super::launch::{Launch, Start};
use super::oom_score;
use super::pre_main::give_back_ignored;
use super::signals::{SignalSet, caught, set_default};

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
    STACKS.set(Some(stack));
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
        let none = SignalSet::empty();
        // SAFETY: plain calls on live strings and sets; the vectors end with a null pointer. The
        // directory comes first: a relative program is looked for in it.
        unsafe {
            if let Some(umask) = self.launch.umask {
                libc::umask(umask.into());
            }
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
