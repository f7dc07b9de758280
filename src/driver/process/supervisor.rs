//! A process ahead of the interpreter, so that nothing outlives even a shell killed by SIGKILL.
//!
//! The process the user started stays as the supervisor: it does nothing but pass signals on and
//! end as the interpreter, its child, ends. If that is killed, all it was running comes to the
//! supervisor, a subreaper, which kills it. If the supervisor is killed, a socket tells the
//! interpreter, which does the same.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::io::plain;
use super::replace::Replacement;
use super::tag::Key;
use super::{proc, purge, sys};
use crate::machine::event::Status;

/// What the interpreter knows of its supervisor.
pub struct Supervision {
    /// Ends when the supervisor does.
    socket: UnixStream,
    /// The supervisor's process id, that of the shell for its user.
    pid: i32,
    key: Key,
}

impl Supervision {
    /// The process id of the shell as its user knows it, `$$`.
    pub fn shell_pid(&self) -> u32 {
        self.pid as u32
    }

    /// The supervisor's process id.
    pub(super) fn supervisor(&self) -> i32 {
        self.pid
    }

    /// Readable when the supervisor has ended.
    pub(super) fn readiness(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The name of this run, that both processes know.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Has the supervisor execute a program in its own place, and ends. Returns only if that can't
    /// be asked for.
    pub(super) fn replace(&self, replacement: &Replacement) -> io::Error {
        match replacement.send(&self.socket) {
            Ok(()) => sys::exit_now(0),
            Err(error) => error,
        }
    }
}

/// Splits this process in two and returns in the interpreter; the supervisor never returns.
/// To be called while there is one thread only, and before a driver is made.
/// On an error there is one process, as before.
pub fn supervise() -> io::Result<Supervision> {
    let key = Key::new();
    let pid = std::process::id() as i32;
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = UnixStream::from(sys::move_up(theirs.into())?);
    let portable = super::is_portable();
    let subreaper = !portable && sys::become_subreaper(true);
    // What was here before is none of ours.
    let strangers: HashSet<i32> = if sys::has_no_children() {
        HashSet::new()
    } else {
        proc::children(pid).into_iter().collect()
    };
    let mask = sys::hold_signals();
    let interpreter = match sys::fork() {
        Ok(None) => {
            sys::release_signals(&mask);
            drop(ours);
            die_of_panics();
            return Ok(Supervision { socket: theirs, pid, key });
        }
        Ok(Some(interpreter)) => interpreter,
        Err(error) => {
            sys::release_signals(&mask);
            sys::become_subreaper(false);
            return Err(error.into());
        }
    };
    drop(theirs);
    let status = accompany(interpreter);
    if matches!(status, Status::Signaled(_)) {
        if subreaper {
            purge::empty(&strangers);
        } else {
            purge::empty_marked(&key);
        }
    }
    if status == Status::Exited(0)
        && let Some(replacement) = Replacement::receive(&ours)
    {
        sys::release_signals(&mask);
        let error = replacement.execute(subreaper);
        eprintln!("ftsh: {}: {}", replacement.file(), plain(&error));
        sys::exit_now(126);
    }
    // The socket stays open up to here.
    drop(ours);
    match status {
        Status::Exited(code) => sys::exit_now(code),
        Status::Signaled(signal) => sys::die_by(signal),
    }
}

/// Passes signals on until the interpreter ends.
fn accompany(interpreter: i32) -> Status {
    loop {
        let caught = sys::next_signal();
        match caught.signal {
            libc::SIGCHLD => match sys::wait_for(interpreter, true) {
                Ok(Some((_, sys::Change::Ended(status)))) => return status,
                // The interpreter stopped itself and its commands: so does the shell.
                Ok(Some((_, sys::Change::Stopped(_)))) => sys::stop_self(),
                Ok(None) => {}
                Err(_) => return Status::Signaled(libc::SIGKILL),
            },
            // What is typed at the terminal, the interpreter gets as well.
            libc::SIGINT | libc::SIGQUIT | libc::SIGTSTP if caught.sender == 0 => {}
            signal if caught.sender != interpreter => drop(sys::kill(interpreter, signal)),
            _ => {}
        }
        // Orphans of a script that went on well while its daemons ended.
        reap_others(interpreter);
    }
}

fn reap_others(interpreter: i32) {
    while let Some(pid) = sys::ended_child() {
        if pid == interpreter || sys::wait_for(pid, false).is_err() {
            return;
        }
    }
}

/// A panic ends the interpreter by a signal, so that the supervisor cleans up.
fn die_of_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}
