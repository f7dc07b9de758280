//! Job control: terminal foreground, stopped and continued commands, and keys.

use std::time::Instant;

use nix::sys::termios::Termios;

use super::console::Console;
use super::processes::Processes;
use super::tokens::KEYS;
use crate::jobs::Reactor;
use crate::procs::ProcDir;
use crate::tty::{KeySignalMonitor, Keys, Terminal, TerminalRestore, TerminalUse};
use ftsh_machine::event::{CommandStatus, Event};
use ftsh_sys as sys;

/// Terminal of a shell, as far as available.
pub(super) struct JobControl {
    /// Foreground control; none without a terminal.
    terminal: Option<Terminal>,
    /// State to restore if the supervisor is killed; set only at a prompt.
    restore: Option<TerminalRestore>,
}

/// Signal that stops the shell, and the command that gets the terminal when the shell continues.
pub(super) type Stop = (i32, i32);

impl JobControl {
    /// Creates the control of a terminal, if there is one.
    pub(super) fn new(terminal: Option<Terminal>, restore: Option<TerminalRestore>) -> Self {
        Self { terminal, restore }
    }

    /// Returns the terminal, if there is one.
    pub(super) fn terminal(&mut self) -> &mut Option<Terminal> {
        &mut self.terminal
    }

    /// True if there is a terminal.
    pub(super) fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Returns the time of the next check of the terminal.
    pub(super) fn due(&self) -> Option<Instant> {
        self.terminal.as_ref().and_then(Terminal::due)
    }

    /// Returns the state to restore, if there is one.
    pub(super) fn restore(&self) -> Option<&TerminalRestore> {
        self.restore.as_ref()
    }

    /// Resets the terminal for a prompt.
    pub(super) fn reset(&mut self) {
        if let Some(restore) = &mut self.restore {
            restore.repair();
        }
    }

    /// Gives the terminal back, in its former state.
    pub(super) fn leave(&mut self) {
        self.terminal = None;
        if let Some(restore) = &self.restore {
            restore.apply();
        }
    }

    /// Handles a stopped child, which `is_command` if it is known as one. A worker may be starting
    /// an unknown one. Returns true if the command in the foreground was stopped by its key.
    pub(super) fn child_stopped(
        &mut self,
        pid: i32,
        signal: i32,
        is_command: bool,
        is_starting: bool,
    ) -> bool {
        let Some(terminal) = &mut self.terminal else { return false };
        match signal {
            _ if !is_command => {
                if is_starting {
                    // The result of the worker that started this child is not handled yet.
                    terminal.note_early(pid, signal);
                }
                false
            }
            // The command wants the terminal.
            libc::SIGTTIN | libc::SIGTTOU => {
                terminal.queue().request(pid, Instant::now());
                false
            }
            _ => signal == libc::SIGTSTP && terminal.held() == Some(pid),
        }
    }

    /// Hands the terminal to the command whose turn it is, if no other command needs it. Returns a
    /// stop of the shell that must come first.
    pub(super) fn grant(
        &mut self,
        processes: &mut Processes,
        reactor: &mut Reactor,
        console: &mut Console,
        now: Instant,
    ) -> Option<Stop> {
        let terminal = self.terminal.as_mut()?;
        let group = terminal.next_group(now)?;
        let Ok(is_ours) = terminal.is_ours() else {
            terminal.queue().postpone(group, now);
            return None;
        };
        if !is_ours {
            // The shell itself is in the background: it stops until it is in the foreground.
            return Some((libc::SIGTTIN, group));
        }
        console.line().hide();
        self.hand_to(processes, reactor, group, TerminalUse::requested(now));
        // Ctrl-Z was typed since the command stopped: SIGCONT would drop the key's signal.
        if ProcDir(group).pending_signals() >> (libc::SIGTSTP - 1) & 1 == 1 {
            return Some((libc::SIGTSTP, group));
        }
        let _ = sys::kill(-group, libc::SIGCONT);
        None
    }

    /// Handles a started command, which may want the terminal or be stopped already. Returns the
    /// signal that has stopped the command.
    pub(super) fn offer(
        &mut self,
        processes: &mut Processes,
        reactor: &mut Reactor,
        pid: i32,
        interactive: bool,
    ) -> Option<i32> {
        if interactive && self.terminal.as_ref()?.is_to_give() {
            self.hand_to(processes, reactor, pid, TerminalUse::default());
        }
        let terminal = self.terminal.as_mut()?;
        let stopped = terminal.early(pid);
        if !reactor.is_starting() {
            terminal.forget_early();
        }
        stopped
    }

    /// Returns the process id of the key monitor, if any.
    pub(super) fn key_monitor(&self) -> Option<i32> {
        self.terminal.as_ref()?.monitor_pid()
    }

    /// Hands the terminal to a group, with a key monitor.
    fn hand_to(
        &mut self,
        processes: &mut Processes,
        reactor: &mut Reactor,
        group: i32,
        using: TerminalUse,
    ) {
        if self.key_monitor().is_none() {
            self.stop_key_monitor(reactor);
            self.start_key_monitor(processes, reactor);
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.hand_to(group, using);
        }
    }

    fn start_key_monitor(&mut self, processes: &mut Processes, reactor: &mut Reactor) {
        let Some(terminal) = &mut self.terminal else { return };
        let Ok(monitor) = KeySignalMonitor::start() else { return };
        // As a helper, so that no scope adopts the monitor and waits for its end.
        processes.children().preexisting.extend(monitor.pid());
        // Errors are ignored: only a repeated key would go unnoticed.
        let _ = reactor.poller().add(monitor.readiness(), KEYS);
        *terminal.monitor() = Some(monitor);
    }

    /// Stops the key monitor until the terminal is handed over again.
    pub(super) fn stop_key_monitor(&mut self, reactor: &mut Reactor) {
        if let Some(monitor) = self.terminal.as_mut().and_then(|it| it.monitor().take()) {
            reactor.poller().remove(monitor.readiness());
        }
    }

    /// Records the signals that a child caught, between its end and its reaping.
    pub(super) fn note_handled_signals(&mut self, pid: i32) {
        if let Some(terminal) = &mut self.terminal {
            terminal.note_handled_signals(pid);
        }
    }

    /// Handles the end of a command's process: takes back the terminal, and removes the command
    /// from the queue.
    pub(super) fn release(&mut self, reactor: &mut Reactor, pid: i32, status: CommandStatus) {
        let Some(terminal) = &mut self.terminal else { return };
        terminal.queue().remove(pid, Instant::now());
        if let Some(signal) = terminal.take_back_from(pid, status)
            && !sys::is_ignored(signal)
        {
            reactor.emit(Event::Interrupted(signal));
        }
    }

    /// Handles keys typed while a command has the terminal.
    pub(super) fn read_keys(&mut self, reactor: &mut Reactor) {
        let Some(terminal) = &mut self.terminal else { return };
        let heard = terminal.monitor().as_mut().map(KeySignalMonitor::read_signals);
        match heard {
            Some(Ok(signals)) => {
                let now = Instant::now();
                let apart = terminal.is_for_keys();
                if let Some(holder) = terminal.held().filter(|_| !signals.is_empty()) {
                    terminal.note_handled_signals(holder);
                }
                let Some(keys) = terminal.keys() else { return };
                for signal in signals {
                    keys.note(signal, now);
                }
                if apart {
                    *keys = Keys::default();
                }
            }
            Some(Err(_)) => self.stop_key_monitor(reactor),
            None => {}
        }
    }

    /// Ends a command that has not reacted to a repeated key.
    pub(super) fn kill_after_keys(&mut self, reactor: &mut Reactor, now: Instant) {
        let Some(terminal) = &mut self.terminal else { return };
        terminal.look(now);
        let Some(signal) = terminal.keys().and_then(|keys| keys.take_due(now)) else { return };
        if terminal.is_for_keys() {
            return;
        }
        if let Some(monitor) = terminal.monitor() {
            monitor.forget(); // the key is reported here
        }
        // Two signals: the first key, which only the command received, and the second.
        for _ in 0..2 {
            reactor.emit(Event::Interrupted(signal));
        }
    }

    /// Stops these commands before the shell stops, and takes the terminal back. Commands that wait
    /// for the terminal stay stopped. Returns the state for `resume_all`.
    pub(super) fn stop_all(&mut self, mut groups: Vec<i32>, wanting: Option<i32>) -> StoppedJobs {
        if let Some(terminal) = &mut self.terminal {
            // Continued, these commands would request the terminal again, in any order.
            groups.retain(|&group| !terminal.queue().contains(group));
        }
        for group in &groups {
            // A command may ignore SIGTSTP, and would run on without the terminal.
            let _ = sys::kill(-group, libc::SIGSTOP);
        }
        let (mut holder, mut modes) = (wanting, None);
        if let Some(terminal) = &mut self.terminal {
            if let Some(held) = terminal.held() {
                holder = holder.or(Some(held));
                modes = terminal.modes();
            }
            terminal.take_back(true);
        }
        StoppedJobs { groups, holder, modes }
    }

    /// Continues commands after the shell was continued.
    pub(super) fn resume_all(&mut self, suspended: StoppedJobs) {
        let StoppedJobs { groups, holder, modes } = suspended;
        if let Some(terminal) = &mut self.terminal
            && let Some(group) = holder
            && terminal.is_own()
        {
            // Before SIGCONT: a command that reads in the background would be stopped again.
            terminal.hand_to(group, TerminalUse::requested(Instant::now()));
            if let Some(modes) = &modes {
                terminal.set_modes(modes);
            }
        }
        for group in groups {
            let _ = sys::kill(-group, libc::SIGCONT);
        }
    }
}

/// Commands that were stopped with the shell.
pub(super) struct StoppedJobs {
    /// Groups to continue.
    groups: Vec<i32>,
    /// Group that gets the terminal.
    holder: Option<i32>,
    /// Modes of the terminal, if a command had it.
    modes: Option<Termios>,
}
