//! Handing the terminal to commands and taking it back.
//!
//! Each command is a process group of its own, so one at a time is in the terminal's foreground:
//! the first that may read from it, or the one that was stopped because it wanted to. A command
//! keeps the terminal while it reads from it or has set it in its own way.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};

use super::super::procs::{Activity, list, terminal_activity};
use super::key_monitor::KeySignalMonitor;
use super::keys::Keys;
use super::queue::{TerminalQueue, Use};
use super::restore::settings;
use ftsh_machine::event::Status;
use ftsh_sys as sys;

/// Time from the start of a command with the terminal to the first look at the signals that it catches. Each
/// further look comes after twice the time.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// The terminal that the shell was started from.
pub struct Terminal {
    tty: OwnedFd,
    /// The shell's group.
    own: Pid,
    holder: Option<Holder>,
    /// Tells what the holder's user types; started for the first holder.
    monitor: Option<KeySignalMonitor>,
    /// Processes that were stopped before they were known, and by which signal.
    early: Vec<(i32, i32)>,
    /// Commands that are stopped until the terminal is free.
    queue: TerminalQueue,
}

/// The group in the foreground.
struct Holder {
    group: i32,
    /// The terminal's modes before.
    modes: Option<Termios>,
    /// Signals that its command caught or ignored when looked at. Some programs, such as python and perl,
    /// restore the default before they exit: a look at the ended process alone comes too late.
    answers: u64,
    since: Instant,
    /// Time of the next look at them.
    look: Instant,
    keys: Keys,
    /// Its use of the terminal.
    using: Use,
}

impl Terminal {
    /// The controlling terminal. In a cron job or a daemon, which have none, the error is ENXIO.
    pub fn open() -> io::Result<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty")?;
        let tty = sys::move_up(tty.into())?;
        let queue = TerminalQueue::default();
        Ok(Self { tty, own: getpgrp(), holder: None, monitor: None, early: Vec::new(), queue })
    }

    /// Whether the shell is in the foreground itself.
    pub fn is_own(&self) -> bool {
        tcgetpgrp(self.tty.as_fd()) == Ok(self.own)
    }

    /// Whether no command has the terminal, and it is the shell's to give.
    pub fn is_to_give(&self) -> bool {
        self.holder.is_none() && self.is_own()
    }

    /// Returns true if the foreground is the shell's, a command's that has the terminal from the
    /// shell, or that of a command of a nested shell. Fails if that cannot be read at the moment.
    pub fn is_ours(&self) -> io::Result<bool> {
        let Ok(current) = tcgetpgrp(self.tty.as_fd()) else { return Ok(false) };
        if current == self.own || Some(current.as_raw()) == self.held() {
            return Ok(true);
        }
        Ok(list::ancestry(current.as_raw())?.contains(&Pid::this().as_raw()))
    }

    /// The group that the shell gave the terminal to.
    pub fn held(&self) -> Option<i32> {
        self.holder.as_ref().map(|holder| holder.group)
    }

    /// Commands that are stopped until the terminal is free.
    pub fn queue(&mut self) -> &mut TerminalQueue {
        &mut self.queue
    }

    /// Returns the group that is to get the terminal now, if there is one.
    pub fn next_group(&mut self, now: Instant) -> Option<i32> {
        let modes = self.modes();
        let holder = &mut self.holder;
        self.queue.next(now, || match holder {
            Some(holder) => holder.keeps(modes.as_ref(), now),
            // A builtin `read` of the shell's.
            None => terminal_activity(&[Pid::this().as_raw()]) == Activity::Reading,
        })
    }

    /// Tells what is typed while a command has the terminal.
    pub fn monitor(&mut self) -> &mut Option<KeySignalMonitor> {
        &mut self.monitor
    }

    /// The process that does, if there is one.
    pub fn monitor_pid(&self) -> Option<i32> {
        self.monitor.as_ref()?.pid()
    }

    /// A child that is no command has ended and was waited for.
    pub fn helper_ended(&mut self, pid: i32) {
        if let Some(monitor) = self.monitor.as_mut().filter(|monitor| monitor.pid() == Some(pid)) {
            monitor.gone();
        }
    }

    /// Takes note of a process that was stopped before it was known.
    pub fn note_early(&mut self, pid: i32, signal: i32) {
        self.early.push((pid, signal));
    }

    /// The signal that stopped a process before it was known.
    pub fn early(&self, pid: i32) -> Option<i32> {
        self.early.iter().find(|(early, _)| *early == pid).map(|&(_, signal)| signal)
    }

    /// All that were stopped are known by now.
    pub fn forget_early(&mut self) {
        self.early.clear();
    }

    /// Notes the signals that a command catches or ignores, if it has the terminal: at a key, and at its end
    /// before it is reaped.
    pub fn note_answers(&mut self, pid: i32) {
        if let Some(holder) = self.holder.as_mut().filter(|holder| holder.group == pid) {
            holder.answers |= list::answers(pid);
        }
    }

    /// Notes the signals that the holder catches or ignores, if the time has come. A key may be handled, and the
    /// default restored, before the shell learns of the key.
    pub fn look(&mut self, now: Instant) {
        if let Some(holder) = self.holder.as_mut().filter(|holder| holder.look <= now) {
            holder.answers |= list::answers(holder.group);
            holder.look = now + now.duration_since(holder.since).max(FIRST_LOOK);
        }
    }

    /// What has been typed while this command had the terminal.
    pub fn keys(&mut self) -> Option<&mut Keys> {
        self.holder.as_mut().map(|holder| &mut holder.keys)
    }

    /// Returns the time when something is due: a check of the queue, a look at the holder's
    /// handlers, or because of keys.
    pub fn due(&self) -> Option<Instant> {
        let keys = self.holder.as_ref().and_then(|holder| holder.keys.due());
        let look = self.holder.as_ref().map(|holder| holder.look);
        [keys, look, self.queue.due()].into_iter().flatten().min()
    }

    /// How the terminal is.
    pub fn modes(&self) -> Option<Termios> {
        tcgetattr(self.tty.as_fd()).ok()
    }

    /// Sets how it is, also from the background.
    pub fn set_modes(&self, modes: &Termios) {
        // Not once it has shown everything: under Ctrl-S it never does.
        let set = || tcsetattr(self.tty.as_fd(), SetArg::TCSANOW, modes);
        let _ = sys::without_stopping(set);
    }

    fn set_foreground(&self, group: Pid) -> bool {
        sys::set_foreground(self.tty.as_fd(), group.as_raw())
    }

    /// Whether who has the terminal reads keys one by one.
    pub fn is_for_keys(&self) -> bool {
        self.modes().is_some_and(|modes| !modes.local_flags.contains(LocalFlags::ICANON))
    }

    /// Puts a group in the foreground.
    pub fn hand_to(&mut self, group: i32, using: Use) {
        let modes = match self.holder.take() {
            // Stopped in a question, it may have left the echo off.
            Some(holder) => holder.modes.inspect(|modes| self.set_modes(modes)),
            None => self.modes(),
        };
        // First, so that nothing that is typed is missed.
        if let Some(monitor) = &self.monitor {
            monitor.join(group);
        }
        if self.set_foreground(Pid::from_raw(group)) {
            let since = Instant::now();
            let (keys, look) = (Keys::default(), since + FIRST_LOOK);
            self.holder = Some(Holder { group, modes, answers: 0, since, look, keys, using });
        }
    }

    /// A group's command has ended. If it had the terminal, returns the signal that the terminal's
    /// user sent the shell thereby, if any: one that ended the command or came too late for it, or
    /// that it answered by failing. A command that was killed may have left the terminal in any state.
    pub fn take_back_from(&mut self, group: i32, status: Status) -> Option<i32> {
        let answers = self.holder.as_ref().filter(|holder| holder.group == group)?.answers;
        self.take_back(matches!(status, Status::Signaled(_)));
        let typed = self.monitor.as_mut().map(KeySignalMonitor::testify);
        if let Some(Err(_)) = typed
            && let Some(monitor) = &mut self.monitor
        {
            monitor.gone(); // the next one will do better
        }
        let typed = typed.and_then(Result::ok).flatten();
        match status {
            Status::Signaled(signal @ (libc::SIGINT | libc::SIGQUIT)) => Some(signal),
            Status::Exited(0) => typed.filter(|signal| answers >> (signal - 1) & 1 == 0),
            _ => typed,
        }
    }

    /// The shell is in the foreground again, with the modes of before if these are to be restored.
    pub fn take_back(&mut self, restore: bool) {
        let Some(holder) = self.holder.take() else { return };
        // Unless somebody else, like the user's shell, took it.
        let current = tcgetpgrp(self.tty.as_fd()).map_or(0, Pid::as_raw);
        if current == holder.group || !sys::is_group_alive(current) {
            self.set_foreground(self.own);
            if restore && let Some(modes) = &holder.modes {
                self.set_modes(modes);
            }
        }
    }
}

impl Holder {
    /// Returns true if the command still needs the terminal, whose modes are these: it is reading
    /// from the terminal, has changed the modes, or did either just now.
    fn keeps(&mut self, modes: Option<&Termios>, now: Instant) -> bool {
        if list::is_stopped(self.group) {
            return false;
        }
        let has_changed = modes.map(settings) != self.modes.as_ref().map(settings);
        // A command whose processes cannot be listed now may be reading.
        let activity = || match list::tree(self.group) {
            Ok(tree) => terminal_activity(&tree),
            Err(_) => Activity::Reading,
        };
        self.using.check(now, if has_changed { Activity::Reading } else { activity() })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back(true);
    }
}
