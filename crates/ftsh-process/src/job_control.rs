//! Job control: terminal foreground, stopped and continued commands, keys, and signals to the
//! shell.

use std::time::Instant;

use super::procs::list;
use super::tty::{KeySignalMonitor, Keys, TerminalUse};
use super::{KEYS, ProcessDriver};
use ftsh_machine::event::{CommandStatus, Event};
use ftsh_sys as sys;

impl ProcessDriver {
    /// Handles children that were stopped, perhaps because they want the terminal.
    pub(super) fn handle_stopped(&mut self) {
        while self.tty.terminal.is_some()
            && let Some((pid, signal)) = sys::stopped_child()
        {
            self.child_stopped(pid, signal);
        }
    }

    /// Handles a stopped child.
    fn child_stopped(&mut self, pid: i32, signal: i32) {
        let Some(terminal) = &mut self.tty.terminal else { return };
        if self.children.get(pid).is_none() {
            // A worker may just have started the process as a command.
            if self.work.starting > 0 {
                terminal.note_early(pid, signal);
            }
            return;
        }
        match signal {
            // The command wants the terminal.
            libc::SIGTTIN | libc::SIGTTOU => terminal.queue().request(pid, Instant::now()),
            libc::SIGTSTP if terminal.held() == Some(pid) => self.suspend(signal, Some(pid)),
            _ => {}
        }
    }

    /// Hands the terminal to the command whose turn it is, if no other command needs it.
    pub(super) fn grant_terminal(&mut self, now: Instant) {
        let Some(terminal) = &mut self.tty.terminal else { return };
        let Some(group) = terminal.next_group(now) else { return };
        let Ok(is_ours) = terminal.is_ours() else {
            return terminal.queue().postpone(group, now);
        };
        if is_ours {
            self.tty.status_line.hide();
            self.hand_terminal(group, TerminalUse::requested(now));
            // Ctrl-Z was typed since the command stopped: SIGCONT would drop the key's signal.
            if list::pending_signals(group) >> (libc::SIGTSTP - 1) & 1 == 1 {
                return self.suspend(libc::SIGTSTP, Some(group));
            }
            let _ = sys::kill(-group, libc::SIGCONT);
        } else {
            // The shell itself is in the background: it stops until it is in the foreground.
            self.suspend(libc::SIGTTIN, Some(group));
        }
    }

    /// Handles a started command, which may want the terminal or be stopped already.
    pub(super) fn offer_terminal(&mut self, pid: i32, interactive: bool) {
        let Some(terminal) = &self.tty.terminal else { return };
        if interactive && terminal.is_to_give() {
            self.hand_terminal(pid, TerminalUse::default());
        }
        let Some(terminal) = &mut self.tty.terminal else { return };
        let stopped = terminal.early(pid);
        if self.work.starting == 0 {
            terminal.forget_early();
        }
        if let Some(signal) = stopped {
            self.child_stopped(pid, signal);
        }
    }

    /// Stops all commands, and then the shell by a signal, until the shell is continued. Then the
    /// terminal goes to `wanting`, or to the command that had it. If a command wants the terminal
    /// or was stopped at the terminal, the whole process group of the shell stops; a signal to the
    /// shell stops the shell alone.
    pub(super) fn suspend(&mut self, signal: i32, wanting: Option<i32>) {
        self.tty.status_line.hide_for_output();
        let mut groups: Vec<i32> = self.children.pids().collect();
        if let Some(terminal) = &mut self.tty.terminal {
            // Continued, these commands would request the terminal again, in any order.
            groups.retain(|&group| !terminal.queue().contains(group));
        }
        for group in &groups {
            let _ = sys::kill(-group, libc::SIGSTOP);
        }
        let mut holder = wanting;
        let mut modes = None;
        if let Some(terminal) = &mut self.tty.terminal {
            if let Some(held) = terminal.held() {
                holder = holder.or(Some(held));
                modes = terminal.modes();
            }
            terminal.take_back(true);
        }
        let mut channels = Vec::new();
        self.take_turns(|turns, outside| {
            channels = turns.leave_queues(outside);
            None
        });
        sys::suspend(signal, wanting.is_some());
        self.take_turns(|turns, outside| turns.rejoin_queues(outside, &channels));
        if let Some(terminal) = &mut self.tty.terminal
            && let Some(group) = holder
            && terminal.is_own()
        {
            terminal.hand_to(group, TerminalUse::requested(Instant::now()));
            if let Some(modes) = &modes {
                terminal.set_modes(modes);
            }
        }
        for group in groups {
            let _ = sys::kill(-group, libc::SIGCONT);
        }
    }

    /// Returns the process id of the key monitor, if any.
    pub(super) fn key_monitor(&self) -> Option<i32> {
        self.tty.terminal.as_ref()?.monitor_pid()
    }

    /// Hands the terminal to a group, with a key monitor.
    fn hand_terminal(&mut self, group: i32, using: TerminalUse) {
        if self.key_monitor().is_none() {
            self.stop_key_monitor();
            self.start_key_monitor();
        }
        if let Some(terminal) = &mut self.tty.terminal {
            terminal.hand_to(group, using);
        }
    }

    fn start_key_monitor(&mut self) {
        let Some(terminal) = &mut self.tty.terminal else { return };
        let Ok(monitor) = KeySignalMonitor::start() else { return };
        self.children.preexisting.extend(monitor.pid());
        // Errors are ignored: only a repeated key would go unnoticed.
        let _ = self.poller.add(monitor.readiness(), KEYS);
        *terminal.monitor() = Some(monitor);
    }

    /// Stops the key monitor until the terminal is handed over again.
    pub(super) fn stop_key_monitor(&mut self) {
        if let Some(monitor) = self.tty.terminal.as_mut().and_then(|it| it.monitor().take()) {
            self.poller.remove(monitor.readiness());
        }
    }

    /// Records the signals that a child caught, between its end and its reaping.
    pub(super) fn note_handled_signals(&mut self, pid: i32) {
        if let Some(terminal) = &mut self.tty.terminal {
            terminal.note_handled_signals(pid);
        }
    }

    /// Handles the end of a command's process: takes back the terminal, and removes the command
    /// from the queue.
    pub(super) fn release_terminal(&mut self, pid: i32, status: CommandStatus) {
        let Some(terminal) = &mut self.tty.terminal else { return };
        terminal.queue().remove(pid, Instant::now());
        if let Some(signal) = terminal.take_back_from(pid, status)
            && !sys::is_ignored(signal)
        {
            self.ready.push_back(Event::Interrupted(signal));
        }
    }

    /// Handles a signal to the shell.
    pub(super) fn interrupted(&mut self, signal: i32, sender: i32) {
        if sender == self.children.parent {
            return; // a late interrupt for another thread
        }
        let forwarded = self.supervision.as_ref().is_some_and(|it| it.supervisor() == sender);
        if self.signals.interrupts.count(signal, forwarded) {
            self.end_by(signal);
        }
    }

    /// Handles a request for the status.
    pub(super) fn status_requested(&mut self, sender: i32) {
        let forwarded = self.supervision.as_ref().is_some_and(|it| it.supervisor() == sender);
        if self.signals.interrupts.count(libc::SIGUSR1, forwarded) {
            self.tty.status_line.request_page();
        }
    }

    /// Handles keys typed while a command has the terminal.
    pub(super) fn read_keys(&mut self) {
        let Some(terminal) = &mut self.tty.terminal else { return };
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
            Some(Err(_)) => self.stop_key_monitor(),
            None => {}
        }
    }

    /// Ends a command that has not reacted to a repeated key.
    pub(super) fn kill_after_keys(&mut self, now: Instant) {
        let Some(terminal) = &mut self.tty.terminal else { return };
        terminal.look(now);
        let Some(signal) = terminal.keys().and_then(|keys| keys.take_due(now)) else { return };
        if terminal.is_for_keys() {
            return;
        }
        if let Some(monitor) = terminal.monitor() {
            monitor.forget(); // the key is reported here
        }
        // Two signals: the first key, which only the command received, and the second.
        self.ready.extend([Event::Interrupted(signal), Event::Interrupted(signal)]);
    }
}
