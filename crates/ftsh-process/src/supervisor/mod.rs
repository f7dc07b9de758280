//! A process ahead of the interpreter, so that nothing outlives even a shell killed by SIGKILL.
//!
//! The process the user started stays as the supervisor: it does nothing but pass signals on and
//! end as the interpreter, its child, ends. If that is killed, all it was running comes to the
//! supervisor, a subreaper, which kills it. If the supervisor is killed, a socket tells the
//! interpreter, which does the same.
//!
//! At a terminal both are one group, or its keys would reach but one of them. Where there is none,
//! the interpreter has a group of its own: so a SIGKILL to the group spares one of the two.

mod capture;
mod lifelines;
mod process;
mod spill;

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use nix::unistd::{Pid, setpgid};

use self::process::SupervisorProcess;
use super::marks::Marker;
use super::oversight::Limit;
use super::procs::features::become_subreaper;
use super::procs::list;
use super::program::Replacement;
use super::tty::TerminalRestore;
use ftsh_machine::event::Status;
use ftsh_sys as sys;

pub use self::capture::OutputCapture;
pub use self::lifelines::{Life, Lifelines, life};

/// What the interpreter knows of its supervisor.
pub struct Supervision {
    /// Ends when the supervisor does.
    socket: Arc<UnixStream>,
    /// The supervisor's process id, that of the shell for its user.
    pid: i32,
    marker: Marker,
    options: SupervisorOptions,
    /// What was blocked before; now everything is that a supervisor passes on.
    mask: sys::Mask,
}

/// What is to be done at the end of a shell.
pub type AtEnd = Rc<dyn Fn(Status)>;

/// What a supervisor does besides.
#[derive(Clone, Default)]
pub struct SupervisorOptions {
    /// Collects what is printed, and shows it if the run fails.
    pub capture: Option<Rc<OutputCapture>>,
    /// Outlives an `exec`, whose program takes the interpreter's place instead, and holds what is
    /// open now to its end.
    pub stay: bool,
    /// What to do to the terminal if the interpreter is killed.
    pub restore: Option<Rc<TerminalRestore>>,
    /// Is told last of all how the interpreter ended, when nothing of it is left and all has been shown.
    pub at_end: Option<AtEnd>,
    /// Where others see which of the two processes live.
    pub lifelines: Option<Rc<Lifelines>>,
    /// When the interpreter and all that it has started are killed, whatever they do.
    pub limit: Option<Limit>,
}

impl SupervisorOptions {
    fn stays(&self) -> bool {
        self.stay || self.capture.is_some()
    }
}

impl Supervision {
    /// Whether the supervisor outlives an `exec`.
    pub fn stays(&self) -> bool {
        self.options.stays()
    }

    /// The supervisor was killed: does what it was to do at the end.
    pub fn finish_alone(&self) {
        if let Some(capture) = &self.options.capture {
            capture.finish_alone(Status::Signaled(libc::SIGKILL));
        }
    }

    /// Leaves the supervisor's group, if `error` is why there is no terminal and says that there is
    /// none; other signals to the group are passed on.
    pub fn part_without_terminal(error: &io::Error) {
        if error.raw_os_error() == Some(libc::ENXIO) {
            let (this, new) = (Pid::from_raw(0), Pid::from_raw(0));
            let _ = setpgid(this, new);
        }
    }

    /// Lets in the signals that were held back until there are handlers for them.
    pub fn release_signals(&self) {
        sys::release_signals(&self.mask);
    }

    /// The process id of the shell as its user knows it, `$$`.
    pub fn shell_pid(&self) -> u32 {
        self.pid as u32
    }

    /// The supervisor's process id.
    pub fn supervisor(&self) -> i32 {
        self.pid
    }

    /// Readable when the supervisor has ended.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes what the supervisor is to hold, or to do.
    pub fn socket(&self) -> Arc<UnixStream> {
        self.socket.clone()
    }

    /// The name of this run, that both processes know.
    pub fn marker(&self) -> &Marker {
        &self.marker
    }

    /// Has the supervisor execute a program in its own place, and ends. Returns only if that can't
    /// be asked for.
    pub fn replace(&self, replacement: &Replacement) -> io::Error {
        match replacement.send(&self.socket) {
            Ok(()) => sys::exit_now(0),
            Err(error) => error,
        }
    }
}

/// Splits this process in two: `interpret` runs in a child, and this process becomes its supervisor.
/// Without a supervisor where the system cannot provide one: then `interpret` runs in this process.
///
/// To be called while there is one thread only, and before a driver is made.
#[expect(unsafe_code, reason = "the supervisor's split")]
pub fn supervise(
    options: SupervisorOptions,
    interpret: impl FnOnce(Option<Supervision>) -> Infallible,
) -> ! {
    // Children from before this program was executed are not this shell's to kill.
    let pid = std::process::id() as i32;
    let has_none = sys::has_no_children();
    let preexisting = if has_none { Ok(Vec::new()) } else { list::children(pid) };
    let (Ok((ours, theirs)), Ok(marker), Ok(preexisting_children)) =
        (sockets(), Marker::new(), preexisting)
    else {
        match interpret(None) {}
    };
    let supervisor = SupervisorProcess {
        interpreter: 0,
        marked: (!become_subreaper()).then(|| marker.clone()),
        preexisting_children,
        mask: sys::hold_signals(),
        socket: ours,
        capture: options.capture.clone(),
        restore: options.restore.clone(),
        at_end: options.at_end.clone(),
        limit: options.limit,
    };
    // SAFETY: there is one thread.
    match unsafe { sys::fork() } {
        Ok(None) => {
            let mask = supervisor.mask.clone();
            // Closes the supervisor's end of the socket.
            drop(supervisor);
            // Stopped, the interpreter could not clean up after a killed supervisor.
            sys::continue_without_parent();
            die_of_panics();
            if let Some(lifelines) = &options.lifelines {
                lifelines.interprets();
            }
            let socket = Arc::new(theirs);
            match interpret(Some(Supervision { socket, pid, marker, options, mask })) {}
        }
        Ok(Some(interpreter)) => {
            drop(theirs);
            if let Some(lifelines) = &options.lifelines {
                lifelines.supervises();
            }
            // Never returns, so that nothing else of the interpreter's is dropped here: its locks are shared.
            SupervisorProcess { interpreter, ..supervisor }.perform()
        }
        Err(_) => {
            sys::release_signals(&supervisor.mask);
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

/// A panic ends the interpreter by a signal, so that the supervisor cleans up.
fn die_of_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}
