//! Signals to the shell, delivered through a pipe in the event loop.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::alarm;

use crate::clock::since_boot;
use ftsh_machine::effect;
use ftsh_sys as sys;
use ftsh_sys::Caught;

/// Signals that end the shell, unless they were ignored at its start.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Returns the signals of the line editor's thread, which other threads must block.
pub(crate) fn editor_signals() -> SigSet {
    SigSet::from_iter([Signal::SIGINT, Signal::SIGWINCH])
}

/// Returns the number that a signal of a script has on this system.
pub(crate) fn signal_number(signal: effect::Signal) -> i32 {
    match signal {
        effect::Signal::Term => libc::SIGTERM,
        effect::Signal::Int => libc::SIGINT,
        effect::Signal::Hup => libc::SIGHUP,
        effect::Signal::Quit => libc::SIGQUIT,
        effect::Signal::Usr1 => libc::SIGUSR1,
        effect::Signal::Usr2 => libc::SIGUSR2,
        effect::Signal::Alrm => libc::SIGALRM,
        effect::Signal::Abrt => libc::SIGABRT,
        effect::Signal::Winch => libc::SIGWINCH,
        effect::Signal::Kill => libc::SIGKILL,
    }
}

/// Signals caught by handlers.
pub(crate) struct Signals {
    pipe: PipeReader,
    children: bool,
    /// Filter for signals delivered twice.
    pub interrupts: Interrupts,
}

impl Signals {
    /// Catches the signals that end or stop the shell or request its status. Only one instance per
    /// process may exist at a time.
    pub(crate) fn catch() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let pipe = PipeReader::from(sys::move_up(reader.into())?);
        let writer = sys::move_up(writer.into())?;
        sys::add_flags(pipe.as_fd(), OFlag::O_NONBLOCK)?;
        sys::add_flags(writer.as_fd(), OFlag::O_NONBLOCK)?;
        let signals: Vec<i32> = ENDING
            .into_iter()
            .chain([libc::SIGTSTP, libc::SIGUSR1])
            .filter(|&signal| !sys::is_ignored(signal))
            .collect();
        sys::catch(&signals, writer);
        sys::catch_children(false);
        Ok(Self { pipe, children: false, interrupts: Interrupts::default() })
    }

    /// True if SIGCHLD is caught.
    pub(crate) fn catches_children(&self) -> bool {
        self.children
    }

    /// Starts or stops catching SIGCHLD. Returns true when catching starts: earlier signals may
    /// have been missed.
    pub(crate) fn catch_children(&mut self, wanted: bool) -> bool {
        if wanted == self.children {
            return false;
        }
        self.children = wanted;
        sys::catch_children(wanted);
        wanted
    }

    /// Returns a descriptor that is readable after a signal.
    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Returns the signals caught since the last call, oldest first.
    pub(crate) fn take(&mut self) -> Vec<Caught> {
        let mut caught = Vec::new();
        let mut bytes = [0; 64 * Caught::SIZE];
        while let Ok(count) = self.pipe.read(&mut bytes) {
            caught.extend(bytes[..count].as_chunks().0.iter().copied().map(Caught::from_bytes));
            if count < bytes.len() {
                break;
            }
        }
        caught
    }
}

/// True if a signal ends the shell.
pub(crate) fn is_ending(signal: i32) -> bool {
    ENDING.contains(&signal)
}

/// Ends this process by a signal, as its parent can see in the wait status.
pub fn die_by(signal: i32) -> ! {
    sys::die_by(signal)
}

/// Detects one signal delivered twice. A signal to the shell's group reaches the interpreter
/// directly and again through its supervisor. `timeout` signals the shell and then its group.
#[derive(Default)]
pub(crate) struct Interrupts {
    /// Signals that arrived on one of the two ways; true for those forwarded by the supervisor.
    single: Vec<(i32, bool, Instant)>,
    /// Last ending signal that the supervisor forwarded.
    ending: Option<(i32, Instant)>,
}

/// Maximum delay between two deliveries of one signal, on a busy machine.
const DUPLICATE_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum delay between two forwarded copies of one signal. People send two separate signals with
/// a longer pause.
const FORWARDED_INTERVAL: Duration = Duration::from_millis(500);

impl Interrupts {
    /// Records a signal. Returns false if the signal is a second delivery.
    pub(crate) fn count(&mut self, signal: i32, forwarded: bool) -> bool {
        self.count_at(Instant::now(), signal, forwarded)
    }

    fn count_at(&mut self, now: Instant, signal: i32, forwarded: bool) -> bool {
        self.single.retain(|(_, _, since)| now.duration_since(*since) < DUPLICATE_INTERVAL);
        let other =
            self.single.iter().position(|&(other, how, _)| other == signal && how != forwarded);
        let again = self.ending.is_some_and(|(last, when)| {
            last == signal && now.duration_since(when) < FORWARDED_INTERVAL
        });
        if forwarded && is_ending(signal) && !again {
            self.ending = Some((signal, now));
        }
        if let Some(other) = other {
            self.single.remove(other);
            false
        } else if forwarded && again {
            false
        } else {
            self.single.push((signal, forwarded, now));
            true
        }
    }
}

/// Signal sent by an [`DeadlineAlarm`].
pub(crate) const ALARM: i32 = Signal::SIGALRM as i32;

/// One-shot timer of this process. With a POSIX timer, time in suspend counts. `alarm(2)` is the
/// fallback.
#[derive(Default)]
pub struct DeadlineAlarm {
    timer: Option<nix::sys::timer::Timer>,
}

impl DeadlineAlarm {
    /// Sets the time of the signal, as time since boot, and replaces an earlier setting.
    pub fn set(&mut self, moment: Duration) {
        if self.set_timer(moment).is_ok() {
            return;
        }
        let left = moment.saturating_sub(since_boot());
        let seconds = left.as_secs().saturating_add(1);
        alarm::set(u32::try_from(seconds).unwrap_or(u32::MAX));
    }

    fn set_timer(&mut self, moment: Duration) -> nix::Result<()> {
        use nix::sys::signal::{SigEvent, SigevNotify};
        use nix::sys::time::TimeSpec;
        use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
        use nix::time::ClockId;
        let notify = SigevNotify::SigevSignal { signal: Signal::SIGALRM, si_value: 0 };
        let timer = match &mut self.timer {
            Some(timer) => timer,
            none => none.insert(Timer::new(ClockId::CLOCK_BOOTTIME, SigEvent::new(notify))?),
        };
        // Zero would disarm the timer. The kernel rejects times far beyond `MAX_TIMER`.
        let moment = moment.clamp(Duration::from_nanos(1), MAX_TIMER);
        let once = Expiration::OneShot(TimeSpec::from_duration(moment));
        timer.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME)
    }
}

/// Upper bound of a timer, about 136 years.
const MAX_TIMER: Duration = Duration::from_secs(1 << 32);

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: i32 = libc::SIGTERM;

    /// Returns the decision for each signal. An item is a time in milliseconds, a signal, and true
    /// for a forwarded one.
    fn counted(signals: &[(u64, i32, bool)]) -> Vec<bool> {
        let mut interrupts = Interrupts::default();
        let start = Instant::now();
        let count = |&(after, signal, forwarded): &(u64, i32, bool)| {
            interrupts.count_at(start + Duration::from_millis(after), signal, forwarded)
        };
        signals.iter().map(count).collect()
    }

    #[test]
    fn a_signal_delivered_both_ways_counts_once() {
        assert_eq!(counted(&[(0, TERM, false), (1500, TERM, true)]), [true, false]);
        assert_eq!(counted(&[(0, TERM, true), (1, TERM, false)]), [true, false]);
        assert_eq!(counted(&[(0, TERM, false), (2500, TERM, true)]), [true, true]);
        assert_eq!(counted(&[(0, TERM, false), (1, libc::SIGINT, true)]), [true, true]);
        let twice = [(0, TERM, true), (0, TERM, false), (500, TERM, false), (501, TERM, true)];
        assert_eq!(counted(&twice), [true, false, true, false]);
    }

    #[test]
    fn a_signal_forwarded_twice_at_once_counts_once() {
        assert_eq!(counted(&[(0, TERM, true), (1, TERM, true)]), [true, false]);
        assert_eq!(counted(&[(0, TERM, true), (400, TERM, true)]), [true, false]);
        assert_eq!(counted(&[(0, TERM, true), (600, TERM, true)]), [true, true]);
        // `timeout` signals the shell and a group that includes the interpreter.
        for ways in [[true, false, true], [true, true, false], [false, true, true]] {
            let all = [(0, TERM, ways[0]), (1, TERM, ways[1]), (2, TERM, ways[2])];
            assert_eq!(counted(&all), [true, false, false], "{ways:?}");
        }
        // Signals sent directly in quick succession all count, and so do requests for the status.
        assert_eq!(counted(&[(0, TERM, false), (1, TERM, false)]), [true, true]);
        assert_eq!(counted(&[(0, libc::SIGUSR1, true), (1, libc::SIGUSR1, true)]), [true, true]);
    }
}
