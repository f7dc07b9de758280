//! The moment at which nothing of a shell may be left, which both of its processes know.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::os::alarm::Alarm;
use super::super::os::clock::since_boot;
use ftsh_sys as sys;

/// Such a moment, which copies and processes that are forked share. It is set by one of them.
#[derive(Clone, Copy)]
pub struct Limit(&'static AtomicU64);

impl Limit {
    /// A moment, since the machine was started.
    pub fn at(moment: Duration) -> io::Result<Self> {
        let limit = Self(sys::shared_number()?);
        limit.set(moment);
        Ok(limit)
    }

    /// It is this one from now on.
    pub fn set(self, moment: Duration) {
        let nanoseconds = u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(nanoseconds, Ordering::Relaxed);
    }

    /// Whether it has come; if not, the alarm is set to when it does, or is looked at again.
    pub fn has_come(self, alarm: &mut Alarm) -> bool {
        let moment = Duration::from_nanos(self.0.load(Ordering::Relaxed));
        if since_boot() >= moment {
            return true;
        }
        alarm.set(moment);
        false
    }
}
