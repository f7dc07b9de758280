//! Supervisor: a process that kills everything a shell has started, even after SIGKILL to the
//! shell.
//!
//! The process started by the user becomes the supervisor. It only forwards signals and mirrors the
//! end of the interpreter, its child. If the interpreter is killed, its processes become children
//! of the supervisor, a subreaper, which kills them. If the supervisor is killed, a socket reports
//! its end to the interpreter, which cleans up.
//!
//! A worker thread that hangs in the kernel, in a file system that does not answer, keeps its process
//! alive. An interpreter with such a worker closes all its descriptors and sends its exit status to the
//! supervisor, which ends without waiting for the interpreter.
//!
//! At a terminal both processes share a group, since keys signal only one group. Without a
//! terminal, the interpreter has its own group, so a SIGKILL to one group spares the other process.

mod caller;
mod capture;
mod liveness_locks;
mod process;
mod spill;

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use nix::unistd::{Pid, setpgid};

use self::process::SupervisorProcess;
use crate::control::SharedDeadline;
use crate::kill::become_subreaper;
use crate::procs::ProcDir;
use crate::program::Replacement;
use crate::tag::Tagger;
use crate::tty::TerminalRestore;
use crate::workers;
use ftsh_machine::event::CommandStatus;
use ftsh_sys as sys;

pub use self::caller::Caller;
pub use self::capture::OutputCapture;
pub use self::liveness_locks::{LivenessLocks, ShellLiveness, liveness};
pub use self::process::AtEnd;

/// The interpreter's connection to its supervisor.
pub struct Supervision {
    /// Socket that reports the end of the supervisor.
    socket: Arc<UnixStream>,
    /// Process id of the supervisor, which is also that of the shell for its user.
    pid: i32,
    tagger: Tagger,
    options: SupervisorOptions,
}

/// Options of a supervisor.
#[derive(Clone, Default)]
pub struct SupervisorOptions {
    /// Captured output, which is shown if the run fails.
    pub capture: Option<Rc<OutputCapture>>,
    /// True if the supervisor outlives an `exec`. The program then replaces the interpreter, and
    /// the supervisor keeps its open files to the end.
    pub stay: bool,
    /// State of the terminal to restore if the interpreter is killed.
    pub restore: Option<Rc<TerminalRestore>>,
    /// Called last, after cleanup and output, with the exit status of the interpreter.
    pub at_end: Option<AtEnd>,
    /// Locks that show other shells which process lives.
    pub liveness_locks: Option<Rc<LivenessLocks>>,
    /// Time at which the interpreter and all its processes are killed.
    pub limit: Option<SharedDeadline>,
    /// Process whose end ends the run as SIGTERM does.
    pub caller: Option<Arc<Caller>>,
}

impl SupervisorOptions {
    fn stays(&self) -> bool {
        self.stay || self.capture.is_some() || self.caller.is_some()
    }
}

impl Supervision {
    /// True if the supervisor outlives an `exec`.
    pub fn stays(&self) -> bool {
        self.options.stays()
    }

    /// Performs the supervisor's final actions, after the supervisor was killed.
    pub fn finish_alone(&self) {
        let status = CommandStatus::Signaled(libc::SIGKILL);
        if let Some(capture) = &self.options.capture {
            capture.finish_alone(status);
        }
        if let Some(at_end) = &self.options.at_end {
            at_end(status);
        }
    }

    /// Leaves the supervisor's group if `error` shows that there is no controlling terminal. The
    /// supervisor forwards signals to its group.
    pub fn part_without_terminal(error: &io::Error) {
        if error.raw_os_error() == Some(libc::ENXIO) {
            let (this, new) = (Pid::from_raw(0), Pid::from_raw(0));
            let _ = setpgid(this, new);
        }
    }

    /// Returns the process id of the shell as its user knows it, `$$`.
    pub fn shell_pid(&self) -> u32 {
        self.pid as u32
    }

    /// Returns the process id of the supervisor.
    pub fn supervisor(&self) -> i32 {
        self.pid
    }

    /// Returns a descriptor that is readable after the end of the supervisor.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns the socket for descriptors sent to the supervisor.
    pub fn socket(&self) -> Arc<UnixStream> {
        self.socket.clone()
    }

    /// Returns the name of this run, which both processes share.
    pub fn tagger(&self) -> &Tagger {
        &self.tagger
    }

    /// Sends a program to the supervisor, which executes it in place of the shell, and ends.
    /// Returns only on failure.
    pub fn replace(&self, replacement: &Replacement) -> io::Error {
        match replacement.send(&self.socket) {
            Ok(()) => end(CommandStatus::Exited(0)),
            Err(error) => error,
        }
    }
}

/// Process id of this interpreter's supervisor, and the socket to the supervisor.
static SUPERVISOR: OnceLock<(i32, Arc<UnixStream>)> = OnceLock::new();

/// Ends this process. A worker that hangs in the kernel does not delay a supervised shell.
pub fn end(status: CommandStatus) -> ! {
    if workers::are_busy()
        && let Some((supervisor, socket)) = SUPERVISOR.get()
    {
        part(*supervisor, socket, status);
    }
    match status {
        CommandStatus::Exited(code) => sys::exit_now(code),
        CommandStatus::Signaled(signal) => sys::die_by(signal),
        CommandStatus::OutOfMemory => sys::die_by(libc::SIGKILL),
        CommandStatus::Lost => sys::exit_now(1),
    }
}

/// Closes the descriptors, which a hanging worker would keep open, and sends the exit status to the
/// supervisor. On failure, the supervisor waits for this process.
#[expect(unsafe_code, reason = "the last that this process does")]
fn part(supervisor: i32, socket: &UnixStream, status: CommandStatus) {
    let parcel = match status {
        CommandStatus::Exited(code) => sys::Parcel::Exited(code as u8),
        CommandStatus::Signaled(signal) => sys::Parcel::Signaled(signal as u8),
        CommandStatus::OutOfMemory | CommandStatus::Lost => return,
    };
    if sys::send_descriptors(socket, parcel, &[]).is_ok() {
        // The supervisor looks at its children, and then into the socket.
        let _ = sys::kill(supervisor, libc::SIGCHLD);
        // SAFETY: this process only ends.
        unsafe { sys::close_all(&[socket.as_fd()]) };
        let _ = socket.shutdown(std::net::Shutdown::Both);
    }
}

/// Splits this process in two: `interpret` runs in a child, and this process becomes its
/// supervisor. Where the system cannot provide a supervisor, `interpret` runs in this process.
///
/// Must be called while there is one thread, and before a driver is created.
#[expect(unsafe_code, reason = "the supervisor's split")]
pub fn supervise(
    options: SupervisorOptions,
    interpret: impl FnOnce(Option<Supervision>) -> Infallible,
) -> ! {
    // Children started before this program was executed do not belong to this shell.
    let pid = std::process::id() as i32;
    let has_none = sys::has_no_children();
    let preexisting = if has_none { Ok(Vec::new()) } else { ProcDir(pid).children() };
    let (Ok((ours, theirs)), Ok(tagger), Ok(preexisting_children)) =
        (sockets(), Tagger::new(), preexisting)
    else {
        match interpret(None) {}
    };
    // Before the fork: a signal that comes first must not end one of the two processes.
    sys::hold_signals();
    let supervisor = SupervisorProcess {
        interpreter: 0,
        tagger: (!become_subreaper()).then(|| tagger.clone()),
        preexisting_children,
        socket: ours,
        parcels: RefCell::default(),
        capture: options.capture.clone(),
        restore: options.restore.clone(),
        at_end: options.at_end.clone(),
        limit: options.limit,
        caller: options.caller.clone(),
    };
    // SAFETY: there is one thread.
    match unsafe { sys::fork() } {
        Ok(None) => {
            // Closes the supervisor's end of the socket.
            drop(supervisor);
            // A stopped interpreter could not clean up after a killed supervisor.
            sys::continue_without_parent();
            if let Some(liveness_locks) = &options.liveness_locks {
                liveness_locks.interprets();
            }
            let socket = Arc::new(theirs);
            let _ = SUPERVISOR.set((pid, socket.clone()));
            match interpret(Some(Supervision { socket, pid, tagger, options })) {}
        }
        Ok(Some(interpreter)) => {
            drop(theirs);
            if let Some(liveness_locks) = &options.liveness_locks {
                liveness_locks.supervises();
            }
            // Never returns, so no value of the interpreter is dropped here. Both processes share
            // its locks.
            SupervisorProcess { interpreter, ..supervisor }.perform()
        }
        Err(_) => {
            sys::become_subreaper(false);
            match interpret(None) {}
        }
    }
}

fn sockets() -> io::Result<(UnixStream, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((
        UnixStream::from(sys::move_up(ours.into())?),
        UnixStream::from(sys::move_up(theirs.into())?),
    ))
}
