//! Main loop of the supervisor: forwards signals to the interpreter, and cleans up after its death.

use std::cell::RefCell;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::getpgrp;

use super::caller::Caller;
use super::capture::{OutputCapture, WaitingWriter};
use crate::carried::cancel_jobs;
use crate::cleanup::sweep_interpreter;
use crate::control::SharedDeadline;
use crate::events::{ALARM, DeadlineAlarm, is_ending};
use crate::kill::{ShutdownSweep, stop_and_kill};
use crate::program::Replacement;
use crate::system::{KillCount, command_status};
use crate::tag::Tagger;
use crate::tty::TerminalRestore;
use ftsh_machine::event::CommandStatus;
use ftsh_sys as sys;
use ftsh_sys::Parcel;
use ftsh_sys::os_error::plain;

/// Action at the end of a shell.
pub type AtEnd = Rc<dyn Fn(CommandStatus)>;

/// Duration of short runs, which need no count of out-of-memory kills.
const SHORT_RUN: Duration = Duration::from_millis(20);

/// Time after which a program that is still being started counts as hanging.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for an interpreter to end after it has sent its exit status. An interpreter that takes longer
/// has a worker that hangs in the kernel, and is left behind.
const PART_TIMEOUT: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(1);

/// State of a supervisor.
pub(super) struct SupervisorProcess {
    /// Process id of the interpreter.
    pub interpreter: i32,
    /// Socket to the interpreter. It transfers the locks of files to remove and the program that
    /// replaces the shell, and reports the end of the supervisor.
    pub socket: UnixStream,
    /// Parcels received before the end of the interpreter.
    pub parcels: RefCell<Vec<(Parcel, Vec<OwnedFd>)>>,
    /// Name of the run, whose tag identifies its processes; none if orphans become children of this
    /// process.
    pub tagger: Option<Tagger>,
    /// Children of this process before the split.
    pub preexisting_children: Vec<i32>,
    /// Captured output, with `--cron`.
    pub capture: Option<Rc<OutputCapture>>,
    /// State of the terminal to restore if the interpreter is killed.
    pub restore: Option<Rc<TerminalRestore>>,
    /// Called last.
    pub at_end: Option<AtEnd>,
    /// Time at which all processes are killed.
    pub limit: Option<SharedDeadline>,
    /// Process whose end ends the run.
    pub caller: Option<Arc<Caller>>,
}

impl SupervisorProcess {
    /// Forwards signals until the interpreter ends, kills the remaining processes, and ends in the
    /// same way.
    pub(super) fn perform(mut self) -> ! {
        if let Some(caller) = self.caller.take() {
            caller.watch();
        }
        let collector = self.capture.as_ref().map(|capture| (capture, capture.collect()));
        if let Some((_, Err(error))) = &collector {
            eprintln!("ftsh: cannot capture the output: {}", plain(error));
            // Nothing empties the pipe, so the script would block as soon as the pipe is full.
            let _ = sys::kill(self.interpreter, libc::SIGKILL);
        }
        let mut kill_count = KillCount::default();
        let End { status, is_left } = self.forward_signals(&mut kill_count);
        let why = kill_count.explain(status);
        if !matches!(status, CommandStatus::Exited(_)) {
            self.await_starts();
            let shutdown_sweep = self.shutdown_sweep(is_left);
            let given_up = shutdown_sweep.kill();
            shutdown_sweep.await_clients(&given_up);
            // After the kill: a process that still runs could change the modes again.
            if let Some(restore) = &self.restore {
                restore.apply();
            }
        }
        // A capture has this reason in the line before the output.
        if why == CommandStatus::OutOfMemory && collector.is_none() {
            let said = "ftsh: killed by SIGKILL: the system had too little memory\n";
            let _ = WaitingWriter::briefly(io::stderr().as_fd()).write_all(said.as_bytes());
        }
        let program = self.take_parcels();
        if let Some((capture, collector)) = collector {
            capture.finish(collector, why);
        }
        if status == CommandStatus::Exited(0)
            && let Some(program) = program
        {
            let Some(replacement) = Replacement::received(program) else {
                eprintln!(
                    "ftsh: exec: the program to execute did not arrive whole; \
                     if descriptors are scarce, `ulimit -n` raises their limit"
                );
                sys::exit_now(126)
            };
            sys::release_signals();
            let error = replacement.execute(self.tagger.is_none());
            eprintln!("ftsh: {}: {}", replacement.file(), plain(&error));
            sys::exit_now(126);
        }
        // Keeps the socket open up to here.
        drop(self.socket);
        if let Some(at_end) = self.at_end {
            at_end(status);
        }
        match status {
            CommandStatus::Exited(code) => sys::exit_now(code),
            CommandStatus::Signaled(signal) => sys::die_by(signal),
            CommandStatus::OutOfMemory => sys::die_by(libc::SIGKILL),
            CommandStatus::Lost => {
                eprintln!(
                    "ftsh: the exit status of the interpreter was lost: an internal error of ftsh"
                );
                sys::exit_now(1);
            }
        }
    }

    /// Returns the method to find processes of the interpreter, without an interpreter that is left
    /// behind.
    fn shutdown_sweep(&self, is_left: bool) -> ShutdownSweep {
        match &self.tagger {
            None => {
                let left = is_left.then_some(self.interpreter);
                let except = self.preexisting_children.iter().copied().chain(left);
                ShutdownSweep::Children(except.collect())
            }
            Some(tagger) => ShutdownSweep::Tagged(tagger.clone(), Vec::new()),
        }
    }

    /// Waits for programs that the interpreter was starting at its end, up to a time limit. Until
    /// its start, a program has no tag to find it by, and it holds the interpreter's end of the
    /// socket open.
    fn await_starts(&self) {
        if self.tagger.is_none() {
            return;
        }
        let mut ends = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        let start = Instant::now();
        while let Some(left) = START_TIMEOUT.checked_sub(start.elapsed())
            && poll(&mut ends, PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO)).is_err()
        {
        }
    }

    /// Removes files registered by the interpreter and cancels its jobs. Returns the descriptors of the program to
    /// execute, if one was sent.
    fn take_parcels(&self) -> Option<Vec<OwnedFd>> {
        self.receive();
        let mut program = None;
        for (parcel, descriptors) in self.parcels.take() {
            match parcel {
                Parcel::Program => program = program.or(Some(descriptors)),
                Parcel::Lock => sweep_interpreter(&descriptors, cancel_jobs),
                Parcel::Exited(_) | Parcel::Signaled(_) => {}
            }
        }
        program
    }

    /// Receives all parcels that were sent.
    fn receive(&self) {
        let received = std::iter::from_fn(|| sys::receive_descriptors(&self.socket).ok());
        self.parcels.borrow_mut().extend(received);
    }

    /// Returns the exit status that the interpreter has sent, if any.
    fn sent_status(&self) -> Option<CommandStatus> {
        self.receive();
        self.parcels.borrow().iter().find_map(|(parcel, _)| match *parcel {
            Parcel::Exited(code) => Some(CommandStatus::Exited(code.into())),
            Parcel::Signaled(signal) => Some(CommandStatus::Signaled(signal.into())),
            Parcel::Program | Parcel::Lock => None,
        })
    }

    /// Forwards signals until the interpreter ends, killed at the limit if necessary. An ending
    /// signal takes precedence over the exit of an interpreter that ended before the signal
    /// arrived.
    fn forward_signals(&self, kill_count: &mut KillCount) -> End {
        let interpreter = self.interpreter;
        // A prompt continues after Ctrl-C, and a branch on another machine reports a signal in its
        // record.
        let may_survive = self.restore.is_some() || self.limit.is_some();
        let mut ending = None;
        let note = |signal| ending = Some(signal);
        let mut end =
            forward_signals(interpreter, self.limit, kill_count, note, || self.sent_status());
        if let (CommandStatus::Exited(_), Some(signal)) = (end.status, ending)
            && !may_survive
            && !sys::is_ignored(signal)
        {
            end.status = CommandStatus::Signaled(signal);
        }
        end
    }
}

/// End of an interpreter.
struct End {
    status: CommandStatus,
    /// True if a hanging worker keeps the process alive.
    is_left: bool,
}

/// Forwards signals until the interpreter ends, killed at the limit if necessary. Calls `note` for
/// each ending signal, including those pending at the end. `sent_status` returns the exit status that
/// the interpreter has sent.
fn forward_signals(
    interpreter: i32,
    limit: Option<SharedDeadline>,
    kill_count: &mut KillCount,
    mut note: impl FnMut(i32),
    sent_status: impl Fn() -> Option<CommandStatus>,
) -> End {
    let mut alarm = DeadlineAlarm::default();
    let mut check_deadline = |limit: SharedDeadline| {
        if limit.has_come(&mut alarm) {
            // Kills its descendants too: where no signal reaches the interpreter, its children may
            // still run.
            stop_and_kill(&[interpreter]);
        }
    };
    limit.into_iter().for_each(&mut check_deadline);
    let mut first_wait = Some(SHORT_RUN);
    loop {
        let is_together = shares_group(interpreter);
        // Keys at the terminal signal the interpreter directly.
        let is_for_both = |caught: &sys::Caught| {
            let is_key = matches!(caught.signal, libc::SIGINT | libc::SIGQUIT | libc::SIGTSTP);
            is_key && caught.sender == 0 && is_together
        };
        let is_passed_on =
            |caught: &sys::Caught| caught.sender != interpreter && !is_for_both(caught);
        let change = sys::wait_for(interpreter, true);
        let end = match change {
            Ok(Some((_, sys::ChildChange::Ended(ended)))) => {
                Some(End { status: command_status(ended), is_left: false })
            }
            Ok(None) => sent_status().map(|status| End { status, is_left: !ends(interpreter) }),
            _ => None,
        };
        if let Some(end) = end {
            while let Some(late) = sys::next_signal(Some(Duration::ZERO)) {
                if is_ending(late.signal) && is_passed_on(&late) {
                    note(late.signal);
                }
            }
            return end;
        }
        match change {
            // Another process stopped the interpreter. If the interpreter were killed now, this
            // process would have to clean up.
            Ok(
                Some((_, sys::ChildChange::Stopped(libc::SIGSTOP) | sys::ChildChange::Ended(_)))
                | None,
            ) => {}
            // The interpreter stopped itself and its commands. The shell stops by the same signal,
            // so that a shell around it sees the reason. Where no process could continue this one,
            // the interpreter continues at once.
            Ok(Some((_, sys::ChildChange::Stopped(signal)))) => {
                sys::suspend_self(signal);
                let _ = sys::kill(interpreter, libc::SIGCONT);
            }
            Err(_) => return End { status: CommandStatus::Lost, is_left: false },
        }
        // Orphans of a running script: its daemons that have ended.
        reap_others(interpreter);
        if first_wait.is_none() {
            kill_count.begin();
        }
        let Some(caught) = sys::next_signal(first_wait.take()) else { continue };
        match caught.signal {
            libc::SIGCHLD => {}
            ALARM if limit.is_some() => limit.into_iter().for_each(&mut check_deadline),
            signal if is_passed_on(&caught) => {
                let _ = sys::kill(interpreter, signal);
                if is_ending(signal) {
                    note(signal);
                }
            }
            _ => {}
        }
        if is_ending(caught.signal) {
            // A stopped interpreter could not handle the signal.
            let _ = sys::kill(interpreter, libc::SIGCONT);
        }
    }
}

/// Waits for the end of an interpreter that has sent its exit status. Returns false after
/// [`PART_TIMEOUT`].
fn ends(interpreter: i32) -> bool {
    let start = Instant::now();
    while start.elapsed() < PART_TIMEOUT {
        if sys::wait_for(interpreter, false) != Ok(None) {
            return true;
        }
        std::thread::sleep(PAUSE);
    }
    false
}

/// True if a signal to this process's group also reaches the interpreter.
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
