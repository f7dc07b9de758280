//! A signal at a moment, for who waits for signals only.

use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::alarm;

use super::clock::since_boot;

/// The signal that comes.
pub const ALARM: i32 = Signal::SIGALRM as i32;

/// One moment of this process. Where it can, it comes also if the machine sleeps until then.
#[derive(Default)]
pub struct Alarm {
    timer: Option<nix::sys::timer::Timer>,
}

impl Alarm {
    /// Has the signal come then, instead of when it was to come.
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
        // Zero would be never; and the kernel refuses absurd times.
        let moment = moment.clamp(Duration::from_nanos(1), LONGEST);
        let once = Expiration::OneShot(TimeSpec::from_duration(moment));
        timer.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME)
    }
}

/// Nobody waits longer.
const LONGEST: Duration = Duration::from_secs(1 << 32);
