//! The process that passes signals on to the interpreter, and cleans up after its death.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::super::cleanup::clean_up_after_interpreter;
use super::super::marks::Marker;
use super::super::os::alarm::{ALARM, Alarm};
use super::super::os::cgroup::KillCount;
use super::super::os::ending;
use super::super::os::signal::is_ending;
use super::super::oversight::Limit;
use super::super::procs::kill_tree;
use super::super::procs::remains::Remains;
use super::super::program::Replacement;
use super::super::tty::TerminalRestore;
use super::AtEnd;
use super::capture::{OutputCapture, Patient};
use ftsh_machine::event::Status;
use ftsh_sys as sys;
use ftsh_sys::Parcel;
use ftsh_sys::os_error::plain;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::getpgrp;

/// A run that is over sooner does without the count of kills for lack of memory.
const MOMENT: Duration = Duration::from_millis(20);

/// A program that doesn't begin for this long hangs.
const BEGINNING: Duration = Duration::from_secs(5);

/// What a supervisor has to look after.
pub struct SupervisorProcess {
    /// The interpreter's process id.
    pub interpreter: i32,
    /// Ends for the interpreter when the supervisor ends; brings the locks of what is to be removed, and
    /// the program that is to take the shell's place.
    pub socket: UnixStream,
    /// The name of this run, by which its processes are found; none if orphans come to this process.
    pub marked: Option<Marker>,
    /// Children that this process had before.
    pub preexisting_children: Vec<i32>,
    /// The signals that were blocked before.
    pub mask: sys::Mask,
    /// What is printed, if that is kept.
    pub capture: Option<Rc<OutputCapture>>,
    /// What to do to the terminal if the interpreter is killed.
    pub restore: Option<Rc<TerminalRestore>>,
    /// To be called last of all.
    pub at_end: Option<AtEnd>,
    /// When all is to be killed.
    pub limit: Option<Limit>,
}

impl SupervisorProcess {
    /// Passes signals on, until the interpreter ends; then ends likewise, with nothing left.
    pub fn perform(self) -> ! {
        let collector = self.capture.as_ref().map(|capture| (capture, capture.collect()));
        if let Some((_, Err(error))) = &collector {
            eprintln!("ftsh: can't keep what is printed: {}", plain(error));
            let _ = sys::kill(self.interpreter, libc::SIGKILL);
        }
        let mut kill_count = KillCount::default();
        let status = self.accompany(&mut kill_count);
        let why = kill_count.explain(status);
        if !matches!(status, Status::Exited(_)) {
            self.await_begun();
            let remains = self.remains();
            remains.kill();
            remains.outlast_clients();
            if let Some(restore) = &self.restore {
                restore.apply();
            }
        }
        if why == Status::OutOfMemory && collector.is_none() {
            let said = "ftsh: killed by SIGKILL: the system had too little memory\n";
            let _ = Patient::briefly(io::stderr().as_fd()).write_all(said.as_bytes());
        }
        let program = self.take_parcels();
        if let Some((capture, collector)) = collector {
            capture.finish(collector, why);
        }
        if status == Status::Exited(0)
            && let Some(program) = program
        {
            let Some(replacement) = Replacement::received(program) else {
                eprintln!(
                    "ftsh: exec: the program to execute did not arrive whole; \
                     if descriptors are scarce, `ulimit -n` raises their limit"
                );
                sys::exit_now(126)
            };
            sys::release_signals(&self.mask);
            let error = replacement.execute(self.marked.is_none());
            eprintln!("ftsh: {}: {}", replacement.file(), plain(&error));
            sys::exit_now(126);
        }
        // The socket stays open up to here.
        drop(self.socket);
        if let Some(at_end) = self.at_end {
            at_end(status);
        }
        match status {
            Status::Exited(code) => sys::exit_now(code),
            Status::Signaled(signal) => sys::die_by(signal),
            Status::OutOfMemory => sys::die_by(libc::SIGKILL),
            Status::Lost => {
                eprintln!("ftsh: how the interpreter ended is lost: an internal error of ftsh");
                sys::exit_now(1);
            }
        }
    }

    /// What the interpreter has left running.
    fn remains(&self) -> Remains {
        match &self.marked {
            None => Remains::Children(self.preexisting_children.iter().copied().collect()),
            Some(marker) => Remains::Marked(marker.clone(), Vec::new()),
        }
    }

    /// Waits for the programs that the interpreter was starting when it ended, but not for what hangs: up to
    /// then they carry no mark, by which they would have to be found, and have the interpreter's end of the socket
    /// open.
    fn await_begun(&self) {
        if self.marked.is_none() {
            return;
        }
        let mut ends = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        let start = Instant::now();
        while let Some(left) = BEGINNING.checked_sub(start.elapsed())
            && poll(&mut ends, PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO)).is_err()
        {
        }
    }

    /// Removes what the interpreter noted and left, and takes the program that is to be executed, if it
    /// sent one.
    fn take_parcels(&self) -> Option<Vec<OwnedFd>> {
        loop {
            match sys::receive_descriptors(&self.socket).ok()? {
                (Parcel::Program, descriptors) => return Some(descriptors),
                (Parcel::Lock, locks) => clean_up_after_interpreter(&locks),
            }
        }
    }

    /// Passes signals on until the interpreter ends, or has to. A signal that tells the shell to end wins over
    /// the exit of an interpreter that it came too late for.
    fn accompany(&self, kill_count: &mut KillCount) -> Status {
        let interpreter = self.interpreter;
        // A prompt goes on after Ctrl-C, and a branch on another machine reports a signal by a record.
        let may_survive = self.restore.is_some() || self.limit.is_some();
        let mut ending = None;
        let status = accompany(interpreter, self.limit, kill_count, |signal| ending = Some(signal));
        match (status, ending) {
            (Status::Exited(_), Some(signal)) if !may_survive && !sys::is_ignored(signal) => {
                Status::Signaled(signal)
            }
            _ => status,
        }
    }
}

/// Passes signals on until the interpreter ends, or has to. Calls `note` for each one that tells the shell to
/// end, also if it is pending when the interpreter ends.
fn accompany(
    interpreter: i32,
    limit: Option<Limit>,
    kill_count: &mut KillCount,
    mut note: impl FnMut(i32),
) -> Status {
    let mut alarm = Alarm::default();
    let mut heed = |limit: Limit| {
        if limit.has_come(&mut alarm) {
            // Its own children with it, for it may be where no signal reaches it.
            kill_tree::stop_and_kill(&[interpreter]);
        }
    };
    limit.into_iter().for_each(&mut heed);
    let mut first_wait = Some(MOMENT);
    loop {
        let is_together = shares_group(interpreter);
        // What is typed at the terminal, the interpreter gets as well.
        let is_for_both = |caught: &sys::Caught| {
            let is_key = matches!(caught.signal, libc::SIGINT | libc::SIGQUIT | libc::SIGTSTP);
            is_key && caught.sender == 0 && is_together
        };
        let is_passed_on =
            |caught: &sys::Caught| caught.sender != interpreter && !is_for_both(caught);
        match sys::wait_for(interpreter, true) {
            Ok(Some((_, sys::Change::Ended(ended)))) => {
                let status = ending::status(ended);
                while let Some(late) = sys::next_signal(Some(Duration::ZERO)) {
                    if is_ending(late.signal) && is_passed_on(&late) {
                        note(late.signal);
                    }
                }
                return status;
            }
            // Somebody stopped it: were it killed now, this process would have to see to it.
            Ok(Some((_, sys::Change::Stopped(libc::SIGSTOP))) | None) => {}
            // The interpreter stopped itself and its commands: the shell stops by the same signal,
            // so that a shell around it sees the reason. Where no process could continue this one,
            // the interpreter goes on as well.
            Ok(Some((_, sys::Change::Stopped(signal)))) => {
                sys::suspend_self(signal);
                let _ = sys::kill(interpreter, libc::SIGCONT);
            }
            Err(_) => return Status::Lost,
        }
        // Orphans of a script that went on well while its daemons ended.
        reap_others(interpreter);
        if first_wait.is_none() {
            kill_count.begin();
        }
        let Some(caught) = sys::next_signal(first_wait.take()) else { continue };
        match caught.signal {
            libc::SIGCHLD => {}
            ALARM if limit.is_some() => limit.into_iter().for_each(&mut heed),
            signal if is_passed_on(&caught) => {
                let _ = sys::kill(interpreter, signal);
                if is_ending(signal) {
                    note(signal);
                }
            }
            _ => {}
        }
        if is_ending(caught.signal) {
            // Stopped by somebody, it could not obey.
            let _ = sys::kill(interpreter, libc::SIGCONT);
        }
    }
}

/// Whether a signal to this process's group reaches the interpreter as well.
fn shares_group(interpreter: i32) -> bool {
    sys::group_of(interpreter) == Some(getpgrp().as_raw())
}

fn reap_others(interpreter: i32) {
    while let Some(pid) = sys::ended_child() {
        if pid == interpreter || sys::wait_for(pid, false).is_err() {
            return;
        }
    }
}
