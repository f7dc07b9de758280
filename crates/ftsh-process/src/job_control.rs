//! Job control: which command has the terminal, who is stopped and goes on, what is typed meanwhile,
//! and which signals count.

use std::time::Instant;

use super::tty::{KeySignalMonitor, Keys, Use};
use super::{KEYS, ProcessDriver};
use ftsh_machine::event::{Event, Status};
use ftsh_sys as sys;

impl ProcessDriver {
    /// Takes note of the children that were stopped, perhaps because they want the terminal.
    pub(super) fn look_for_stopped(&mut self) {
        while self.tty.terminal.is_some()
            && let Some((pid, signal)) = sys::stopped_child()
        {
            self.child_stopped(pid, signal);
        }
    }

    /// A child of ours was stopped.
    fn child_stopped(&mut self, pid: i32, signal: i32) {
        let Some(terminal) = &mut self.tty.terminal else { return };
        if self.children.get(pid).is_none() {
            // It may be a command that a worker has only just started.
            if self.work.starting > 0 {
                terminal.note_early(pid, signal);
            }
            return;
        }
        match signal {
            // It wants the terminal.
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
            self.hand_terminal(group, Use::requested(now));
            let _ = sys::kill(-group, libc::SIGCONT);
        } else {
            // The shell isn't in the foreground itself: it stops, until it is.
            self.suspend(libc::SIGTTIN, Some(group));
        }
    }

    /// A command is known now: it may want the terminal, or have been stopped already.
    pub(super) fn offer_terminal(&mut self, pid: i32, interactive: bool) {
        let Some(terminal) = &self.tty.terminal else { return };
        if interactive && terminal.is_to_give() {
            self.hand_terminal(pid, Use::default());
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

    /// Stops all commands, and the shell by a signal, until the shell is continued. Then the
    /// terminal goes to `wanting`, or to the command that had it. A command that wants the terminal or was stopped
    /// there stops the shell's whole job, and so its process group; a signal to the shell stops the shell alone.
    pub(super) fn suspend(&mut self, signal: i32, wanting: Option<i32>) {
        self.tty.status_line.give_way();
        let mut groups: Vec<i32> = self.children.pids().collect();
        if let Some(terminal) = &mut self.tty.terminal {
            // Continued, they would ask for the terminal again, in any order.
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
            channels = turns.step_aside(outside);
            None
        });
        sys::suspend(signal, wanting.is_some());
        self.take_turns(|turns, outside| turns.come_again(outside, &channels));
        if let Some(terminal) = &mut self.tty.terminal
            && let Some(group) = holder
            && terminal.is_own()
        {
            terminal.hand_to(group, Use::requested(Instant::now()));
            if let Some(modes) = &modes {
                terminal.set_modes(modes);
            }
        }
        for group in groups {
            let _ = sys::kill(-group, libc::SIGCONT);
        }
    }

    /// The process that remembers what is typed, if there is one.
    pub(super) fn key_monitor(&self) -> Option<i32> {
        self.tty.terminal.as_ref()?.monitor_pid()
    }

    /// Hands the terminal to a group, with a monitor of what is typed then.
    fn hand_terminal(&mut self, group: i32, using: Use) {
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
        // Without this a second key is just not heard of.
        let _ = self.poller.add(monitor.readiness(), KEYS);
        *terminal.monitor() = Some(monitor);
    }

    /// Does without a monitor until the terminal is handed over again.
    pub(super) fn stop_key_monitor(&mut self) {
        if let Some(monitor) = self.tty.terminal.as_mut().and_then(|it| it.monitor().take()) {
            self.poller.remove(monitor.readiness());
        }
    }

    /// Notes the signals that a child caught which may have ended, but has not been reaped.
    pub(super) fn note_answers(&mut self, pid: i32) {
        if let Some(terminal) = &mut self.tty.terminal {
            terminal.note_answers(pid);
        }
    }

    /// A command's process has ended: it loses the terminal, or its place among those that wait
    /// for the terminal.
    pub(super) fn release_terminal(&mut self, pid: i32, status: Status) {
        let Some(terminal) = &mut self.tty.terminal else { return };
        terminal.queue().remove(pid, Instant::now());
        if let Some(signal) = terminal.take_back_from(pid, status)
            && !sys::is_ignored(signal)
        {
            self.ready.push_back(Event::Interrupted(signal));
        }
    }

    /// Takes note of a signal to the shell.
    pub(super) fn interrupted(&mut self, signal: i32, sender: i32) {
        if sender == self.children.parent {
            return; // meant for another thread, which waited no longer
        }
        let forwarded = self.supervision.as_ref().is_some_and(|it| it.supervisor() == sender);
        if self.signals.interrupts.count(signal, forwarded) {
            self.end_by(signal);
        }
    }

    /// Somebody asks what the run is doing.
    pub(super) fn asked(&mut self, sender: i32) {
        let forwarded = self.supervision.as_ref().is_some_and(|it| it.supervisor() == sender);
        if self.signals.interrupts.count(libc::SIGUSR1, forwarded) {
            self.tty.status_line.ask();
        }
    }

    /// Takes note of the keys that are typed while a command has the terminal.
    pub(super) fn heed_keys(&mut self) {
        let Some(terminal) = &mut self.tty.terminal else { return };
        let heard = terminal.monitor().as_mut().map(KeySignalMonitor::heed);
        match heard {
            Some(Ok(signals)) => {
                let now = Instant::now();
                let apart = terminal.is_for_keys();
                if let Some(holder) = terminal.held().filter(|_| !signals.is_empty()) {
                    terminal.note_answers(holder);
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

    /// Ends the command that two keys were typed at, if it hasn't answered the second one either.
    pub(super) fn insist(&mut self, now: Instant) {
        let Some(terminal) = &mut self.tty.terminal else { return };
        terminal.look(now);
        let Some(signal) = terminal.keys().and_then(|keys| keys.take_due(now)) else { return };
        if terminal.is_for_keys() {
            return;
        }
        if let Some(monitor) = terminal.monitor() {
            monitor.forget(); // it is told here
        }
        // The first one, which only the command has got, and the second.
        self.ready.extend([Event::Interrupted(signal), Event::Interrupted(signal)]);
    }
}
