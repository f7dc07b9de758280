//! Assignment of the terminal's foreground to commands.
//!
//! Each command is its own process group, so only one command at a time is in the foreground: the
//! first command that may read from the terminal, or one that was stopped for trying to. A command
//! keeps the terminal while it reads from it or has changed the modes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};

use super::key_monitor::KeySignalMonitor;
use super::keys::Keys;
use super::queue::{TerminalQueue, TerminalUse};
use super::restore::settings;
use crate::procs::{ProcDir, TerminalActivity, terminal_activity};
use ftsh_machine::event::CommandStatus;
use ftsh_sys as sys;

/// Time from the start of a command in the foreground to the first check of the signals that it
/// catches. Each further check comes after twice the time.
const FIRST_INTERVAL: Duration = Duration::from_millis(10);

/// Controlling terminal of the shell.
pub(crate) struct Terminal {
    tty: OwnedFd,
    /// Process group of the shell.
    own: Pid,
    holder: Option<ForegroundCommand>,
    /// Monitor of keys typed in the foreground; started for the first holder.
    monitor: Option<KeySignalMonitor>,
    /// Processes stopped before their command was known, with the signals.
    early: Vec<(i32, i32)>,
    /// Commands that are stopped until the terminal is free.
    queue: TerminalQueue,
}

struct ForegroundCommand {
    group: i32,
    /// Modes of the terminal before the command.
    modes: Option<Termios>,
    /// Signals that the command caught or ignored at any check. Some programs, such as python and
    /// perl, restore the default before they exit, so a check of the ended process alone comes too
    /// late.
    handled_signals: u64,
    since: Instant,
    /// Time of the next check of these signals.
    look: Instant,
    keys: Keys,
    /// Use of the terminal by the command.
    using: TerminalUse,
}

impl Terminal {
    /// Opens the controlling terminal. Fails with ENXIO in a cron job or a daemon, which have none.
    pub(crate) fn open() -> io::Result<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty")?;
        let tty = sys::move_up(tty.into())?;
        let queue = TerminalQueue::default();
        Ok(Self { tty, own: getpgrp(), holder: None, monitor: None, early: Vec::new(), queue })
    }

    /// True if the shell itself is in the foreground.
    pub(crate) fn is_own(&self) -> bool {
        tcgetpgrp(self.tty.as_fd()) == Ok(self.own)
    }

    /// True if the shell is in the foreground and no command holds the terminal.
    pub(crate) fn is_to_give(&self) -> bool {
        self.holder.is_none() && self.is_own()
    }

    /// True if the foreground belongs to the shell, to a command in its foreground, or to a command
    /// of a nested shell. Fails if the foreground cannot be read now.
    pub(crate) fn is_ours(&self) -> io::Result<bool> {
        let Ok(current) = tcgetpgrp(self.tty.as_fd()) else { return Ok(false) };
        if current == self.own || Some(current.as_raw()) == self.held() {
            return Ok(true);
        }
        Ok(ProcDir(current.as_raw()).ancestry()?.contains(&Pid::this().as_raw()))
    }

    /// Returns the group that the shell has put in the foreground.
    pub(crate) fn held(&self) -> Option<i32> {
        self.holder.as_ref().map(|holder| holder.group)
    }

    /// Returns the queue of commands that wait for the terminal.
    pub(crate) fn queue(&mut self) -> &mut TerminalQueue {
        &mut self.queue
    }

    /// Returns the group that should get the terminal now, if any.
    pub(crate) fn next_group(&mut self, now: Instant) -> Option<i32> {
        let modes = self.modes();
        let holder = &mut self.holder;
        self.queue.next(now, || match holder {
            Some(holder) => holder.keeps(modes.as_ref(), now),
            // A builtin `read` of the shell itself.
            None => terminal_activity(&[Pid::this().as_raw()]) == TerminalActivity::Reading,
        })
    }

    pub(crate) fn monitor(&mut self) -> &mut Option<KeySignalMonitor> {
        &mut self.monitor
    }

    /// Returns the process id of the monitor, if it runs.
    pub(crate) fn monitor_pid(&self) -> Option<i32> {
        self.monitor.as_ref()?.pid()
    }

    /// Records the end of a child that runs no command, after it was reaped.
    pub(crate) fn helper_ended(&mut self, pid: i32) {
        if let Some(monitor) = self.monitor.as_mut().filter(|monitor| monitor.pid() == Some(pid)) {
            monitor.gone();
        }
    }

    /// Records a process that was stopped before its command was known.
    pub(crate) fn note_early(&mut self, pid: i32, signal: i32) {
        self.early.push((pid, signal));
    }

    /// Returns the signal that stopped a process before its command was known.
    pub(crate) fn early(&self, pid: i32) -> Option<i32> {
        self.early.iter().find(|(early, _)| *early == pid).map(|&(_, signal)| signal)
    }

    /// Drops all records of early stops.
    pub(crate) fn forget_early(&mut self) {
        self.early.clear();
    }

    /// Records the signals that the command in the foreground catches or ignores: at a key, and
    /// between its end and its reaping.
    pub(crate) fn note_handled_signals(&mut self, pid: i32) {
        if let Some(holder) = self.holder.as_mut().filter(|holder| holder.group == pid) {
            holder.handled_signals |= ProcDir(pid).handled_signals();
        }
    }

    /// Records the signals that the command in the foreground catches or ignores, if the check is
    /// due. The command may handle a key and restore the default before the shell learns of the
    /// key.
    pub(crate) fn look(&mut self, now: Instant) {
        if let Some(holder) = self.holder.as_mut().filter(|holder| holder.look <= now) {
            holder.handled_signals |= ProcDir(holder.group).handled_signals();
            holder.look = now + now.duration_since(holder.since).max(FIRST_INTERVAL);
        }
    }

    /// Returns the keys typed while the command was in the foreground.
    pub(crate) fn keys(&mut self) -> Option<&mut Keys> {
        self.holder.as_mut().map(|holder| &mut holder.keys)
    }

    /// Returns the time of the next check: of the queue, the holder's handlers, or keys.
    pub(crate) fn due(&self) -> Option<Instant> {
        let keys = self.holder.as_ref().and_then(|holder| holder.keys.due());
        let look = self.holder.as_ref().map(|holder| holder.look);
        [keys, look, self.queue.due()].into_iter().flatten().min()
    }

    /// Returns the terminal's modes.
    pub(crate) fn modes(&self) -> Option<Termios> {
        tcgetattr(self.tty.as_fd()).ok()
    }

    /// Sets the terminal's modes, even from the background.
    pub(crate) fn set_modes(&self, modes: &Termios) {
        // Does not wait until output is drained: after Ctrl-S, the wait would never end.
        let set = || tcsetattr(self.tty.as_fd(), SetArg::TCSANOW, modes);
        let _ = sys::without_stopping(set);
    }

    fn set_foreground(&self, group: Pid) -> bool {
        sys::set_foreground(self.tty.as_fd(), group.as_raw())
    }

    /// True if the process in the foreground reads single keys.
    pub(crate) fn is_for_keys(&self) -> bool {
        self.modes().is_some_and(|modes| !modes.local_flags.contains(LocalFlags::ICANON))
    }

    /// Puts a group in the foreground.
    pub(crate) fn hand_to(&mut self, group: i32, using: TerminalUse) {
        let modes = match self.holder.take() {
            // A command stopped at a password prompt may have left the echo off.
            Some(holder) => holder.modes.inspect(|modes| self.set_modes(modes)),
            None => self.modes(),
        };
        // The monitor joins first, so it misses no key.
        if let Some(monitor) = &self.monitor {
            monitor.join(group);
        }
        if self.set_foreground(Pid::from_raw(group)) {
            let since = Instant::now();
            let (keys, look) = (Keys::default(), since + FIRST_INTERVAL);
            self.holder = Some(ForegroundCommand {
                group,
                modes,
                handled_signals: 0,
                since,
                look,
                keys,
                using,
            });
        }
    }

    /// Takes the terminal back after the end of a group's command. Returns the signal that the user
    /// sent to the shell by a key, if any. Such a key ended the command, came too late for it, or
    /// made it fail. A killed command may have left the terminal in any state.
    pub(crate) fn take_back_from(&mut self, group: i32, status: CommandStatus) -> Option<i32> {
        let handled_signals =
            self.holder.as_ref().filter(|holder| holder.group == group)?.handled_signals;
        // Before the question to the monitor: a key in between signals the shell and is not lost.
        self.take_back(matches!(status, CommandStatus::Signaled(_)));
        let typed = self.monitor.as_mut().map(KeySignalMonitor::take_last_key);
        if let Some(Err(_)) = typed
            && let Some(monitor) = &mut self.monitor
        {
            monitor.gone(); // the next monitor may work
        }
        let typed = typed.and_then(Result::ok).flatten();
        match status {
            CommandStatus::Signaled(signal @ (libc::SIGINT | libc::SIGQUIT)) => Some(signal),
            CommandStatus::Exited(0) => {
                typed.filter(|signal| handled_signals >> (signal - 1) & 1 == 0)
            }
            _ => typed,
        }
    }

    /// Puts the shell in the foreground again, and optionally restores the modes.
    pub(crate) fn take_back(&mut self, restore: bool) {
        let Some(holder) = self.holder.take() else { return };
        // Skipped if another process, such as the user's shell, took the foreground.
        let current = tcgetpgrp(self.tty.as_fd()).map_or(0, Pid::as_raw);
        if current == holder.group || !sys::is_group_alive(current) {
            self.set_foreground(self.own);
            if restore && let Some(modes) = &holder.modes {
                self.set_modes(modes);
            }
        }
    }
}

impl ForegroundCommand {
    /// True if the command still needs the terminal, whose modes are these: it reads from the
    /// terminal, has changed the modes, or did either recently.
    fn keeps(&mut self, modes: Option<&Termios>, now: Instant) -> bool {
        if ProcDir(self.group).is_stopped() {
            return false;
        }
        let has_changed = modes.map(settings) != self.modes.as_ref().map(settings);
        // A command whose processes cannot be listed may be reading.
        let activity = || match ProcDir(self.group).tree() {
            Ok(tree) => terminal_activity(&tree),
            Err(_) => TerminalActivity::Reading,
        };
        self.using.check(now, if has_changed { TerminalActivity::Reading } else { activity() })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back(true);
    }
}
