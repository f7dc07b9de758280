//! Handing the terminal to commands and taking it back.
//!
//! Each command is a process group of its own, so one at a time is in the terminal's foreground:
//! the first that may read from it, or the one that was stopped because it wanted to.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};

use super::keys::Keys;
use super::witness::Witness;
use super::{KEYS, ProcessDriver, proc, sys};
use crate::machine::event::{Event, Status};

/// The terminal that the shell was started from.
pub struct Terminal {
    tty: OwnedFd,
    /// The shell's group.
    own: Pid,
    holder: Option<Holder>,
    /// Tells what the holder's user types; started for the first holder.
    witness: Option<Witness>,
    /// Processes that were stopped before they were known, and by which signal.
    early: Vec<(i32, i32)>,
}

/// The group in the foreground.
struct Holder {
    group: i32,
    /// The terminal's modes before.
    modes: Option<Termios>,
    /// The signals that its command had its own way to answer, when it ended.
    answers: u64,
    keys: Keys,
}

impl Terminal {
    /// The controlling terminal. In a cron job or a daemon, which have none, the error is ENXIO.
    pub fn open() -> io::Result<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty")?;
        let tty = sys::move_up(tty.into())?;
        Ok(Self { tty, own: getpgrp(), holder: None, witness: None, early: Vec::new() })
    }

    /// Whether the shell is in the foreground itself.
    fn is_own(&self) -> bool {
        tcgetpgrp(self.tty.as_fd()) == Ok(self.own)
    }

    /// Tells what is typed while a command has the terminal.
    pub fn witness_mut(&mut self) -> Option<&mut Witness> {
        self.witness.as_mut()
    }

    /// What has been typed while this command had the terminal.
    pub fn keys(&mut self) -> Option<&mut Keys> {
        self.holder.as_mut().map(|holder| &mut holder.keys)
    }

    /// When something is to be done because of that.
    pub fn due(&self) -> Option<Instant> {
        self.holder.as_ref()?.keys.due()
    }

    /// How the terminal is.
    pub fn modes(&self) -> Option<Termios> {
        tcgetattr(self.tty.as_fd()).ok()
    }

    fn set_modes(&self, modes: &Termios) {
        // Not once it has shown everything: under Ctrl-S it never does.
        let set = || tcsetattr(self.tty.as_fd(), SetArg::TCSANOW, modes);
        let _ = sys::without_stopping(set);
    }

    fn set_foreground(&self, group: Pid) -> bool {
        sys::set_foreground(self.tty.as_fd(), group.as_raw())
    }

    fn hand_to(&mut self, group: i32) {
        let modes = match self.holder.take() {
            Some(holder) => holder.modes,
            None => self.modes(),
        };
        // First, so that nothing that is typed is missed.
        if let Some(witness) = &self.witness {
            witness.join(group);
        }
        if self.set_foreground(Pid::from_raw(group)) {
            self.holder = Some(Holder { group, modes, answers: 0, keys: Keys::default() });
        }
    }

    /// A group's command has ended. If it had the terminal, returns the signal that the terminal's
    /// user sent the shell thereby, if any: one that ended the command or came too late for it, or
    /// that it answered by failing. A command that was killed may have left the terminal in any state.
    fn take_back_from(&mut self, group: i32, status: Status) -> Option<i32> {
        let answers = self.holder.as_ref().filter(|holder| holder.group == group)?.answers;
        self.take_back(matches!(status, Status::Signaled(_)));
        let typed = self.witness.as_mut().map(Witness::testify);
        if let Some(Err(_)) = typed
            && let Some(witness) = &mut self.witness
        {
            witness.gone(); // the next one will do better
        }
        let typed = typed.and_then(Result::ok).flatten();
        match status {
            Status::Signaled(signal @ (libc::SIGINT | libc::SIGQUIT)) => Some(signal),
            Status::Exited(0) => typed.filter(|signal| answers >> (signal - 1) & 1 == 0),
            _ => typed,
        }
    }

    fn take_back(&mut self, restore: bool) {
        let Some(holder) = self.holder.take() else { return };
        // Unless somebody else, like the user's shell, took it.
        let current = tcgetpgrp(self.tty.as_fd()).map_or(0, Pid::as_raw);
        if current == holder.group || !super::family::is_group_alive(current) {
            self.set_foreground(self.own);
            if restore && let Some(modes) = &holder.modes {
                self.set_modes(modes);
            }
        }
    }
}

impl ProcessDriver {
    /// Takes note of the children that were stopped, perhaps because they want the terminal.
    pub(super) fn look_for_stopped(&mut self) {
        while self.terminal.is_some()
            && let Some((pid, signal)) = sys::stopped_child()
        {
            self.child_stopped(pid, signal);
        }
    }

    /// A child of ours was stopped.
    fn child_stopped(&mut self, pid: i32, signal: i32) {
        let Some(terminal) = &mut self.terminal else { return };
        if self.children.get(pid).is_none() {
            // It may be a command that a worker has only just started.
            if self.starting > 0 {
                terminal.early.push((pid, signal));
            }
            return;
        }
        let held = terminal.holder.as_ref().map(|holder| holder.group);
        match signal {
            // It wants the terminal.
            libc::SIGTTIN | libc::SIGTTOU => {
                self.live.hide();
                let current = tcgetpgrp(terminal.tty.as_fd()).map(Pid::as_raw).ok();
                if current == Some(terminal.own.as_raw()) || current.is_some() && current == held {
                    self.hand_terminal(pid);
                    let _ = sys::kill(-pid, libc::SIGCONT);
                } else {
                    // The shell isn't in the foreground itself: it stops, until it is.
                    self.suspend(Some(pid));
                }
            }
            libc::SIGTSTP if held == Some(pid) => self.suspend(Some(pid)),
            _ => {}
        }
    }

    /// A command is known now: it may want the terminal, or have been stopped already.
    pub(super) fn offer_terminal(&mut self, pid: i32, interactive: bool) {
        let Some(terminal) = &mut self.terminal else { return };
        if interactive && terminal.holder.is_none() && terminal.is_own() {
            self.hand_terminal(pid);
        }
        let Some(terminal) = &mut self.terminal else { return };
        let stopped = terminal.early.iter().find(|(early, _)| *early == pid).copied();
        if self.starting == 0 {
            terminal.early.clear();
        }
        if let Some((pid, signal)) = stopped {
            self.child_stopped(pid, signal);
        }
    }

    /// Stops all commands and the shell, until it is continued.
    pub(super) fn suspend(&mut self, wanting: Option<i32>) {
        self.live.give_way();
        let groups: Vec<i32> = self.children.pids().collect();
        for group in &groups {
            let _ = sys::kill(-group, libc::SIGSTOP);
        }
        let mut holder = wanting;
        let mut modes = None;
        if let Some(terminal) = &mut self.terminal {
            if let Some(held) = &terminal.holder {
                holder = holder.or(Some(held.group));
                modes = terminal.modes();
            }
            terminal.take_back(true);
        }
        sys::suspend_group();
        if let Some(terminal) = &mut self.terminal
            && let Some(group) = holder
            && terminal.is_own()
        {
            terminal.hand_to(group);
            if let Some(modes) = &modes {
                terminal.set_modes(modes);
            }
        }
        for group in groups {
            let _ = sys::kill(-group, libc::SIGCONT);
        }
    }

    /// The process that remembers what is typed, if there is one.
    pub(super) fn witness(&self) -> Option<i32> {
        self.terminal.as_ref()?.witness.as_ref()?.pid()
    }

    /// Hands the terminal to a group, and has a witness for what is typed then.
    fn hand_terminal(&mut self, group: i32) {
        if self.witness().is_none() {
            self.dismiss_witness();
            self.employ_witness();
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.hand_to(group);
        }
    }

    fn employ_witness(&mut self) {
        let Some(terminal) = &mut self.terminal else { return };
        let Ok(witness) = Witness::start() else { return };
        self.children.preexisting.extend(witness.pid());
        // Without this a second key is just not heard of.
        let _ = self.poller.add(witness.readiness(), KEYS);
        terminal.witness = Some(witness);
    }

    /// Does without a witness until the terminal is handed over again.
    pub(super) fn dismiss_witness(&mut self) {
        if let Some(witness) = self.terminal.as_mut().and_then(|it| it.witness.take()) {
            self.poller.remove(witness.readiness());
        }
    }

    /// A child that is no command has ended and was waited for.
    pub(super) fn helper_ended(&mut self, pid: i32) {
        if self.witness() == Some(pid)
            && let Some(witness) = self.terminal.as_mut().and_then(|it| it.witness.as_mut())
        {
            witness.gone();
        }
    }

    /// A child may have ended, but is still there.
    pub(super) fn note_answers(&mut self, pid: i32) {
        let holder = self.terminal.as_mut().and_then(|terminal| terminal.holder.as_mut());
        if let Some(holder) = holder.filter(|holder| holder.group == pid) {
            holder.answers = proc::answers(pid);
        }
    }

    /// A command's process has ended: it loses the terminal.
    pub(super) fn release_terminal(&mut self, pid: i32, status: Status) {
        let Some(terminal) = &mut self.terminal else { return };
        if let Some(signal) = terminal.take_back_from(pid, status)
            && !sys::is_ignored(signal)
        {
            self.ready.push_back(Event::Interrupted(signal));
        }
    }

    /// Takes note of a signal to the shell.
    pub(super) fn interrupted(&mut self, signal: i32, sender: i32) {
        if sender == self.pid {
            return; // meant for another thread, which waited no longer
        }
        let forwarded = self.supervision.as_ref().is_some_and(|it| it.supervisor() == sender);
        if self.interrupts.count(signal, forwarded) {
            self.ready.push_back(Event::Interrupted(signal));
        }
    }

    /// Somebody asks what the run is doing.
    pub(super) fn asked(&mut self, sender: i32) {
        let forwarded = self.supervision.as_ref().is_some_and(|it| it.supervisor() == sender);
        if self.interrupts.count(libc::SIGUSR1, forwarded) {
            self.live.ask();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back(true);
    }
}
