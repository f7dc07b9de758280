//! A signal at a set time, for processes that wait only for signals.

use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::alarm;

use super::clock::since_boot;

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
