//! Deadline of a whole shell, shared by the interpreter and its supervisor.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::os::alarm::DeadlineAlarm;
use super::super::os::clock::since_boot;
use ftsh_sys as sys;

/// Time at which all processes of a shell are killed. Copies and forked processes share the value;
/// only one process sets it.
#[derive(Clone, Copy)]
pub struct SharedDeadline(&'static AtomicU64);

impl SharedDeadline {
    /// Creates a limit in shared memory, as time since boot.
    pub fn at(moment: Duration) -> io::Result<Self> {
        let limit = Self(sys::shared_number()?);
        limit.set(moment);
        Ok(limit)
    }

    /// Changes the limit.
    pub fn set(self, moment: Duration) {
        let nanoseconds = u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(nanoseconds, Ordering::Relaxed);
    }

    /// True if the limit has passed. Otherwise sets the alarm to the limit.
    pub fn has_come(self, alarm: &mut DeadlineAlarm) -> bool {
        let moment = Duration::from_nanos(self.0.load(Ordering::Relaxed));
        if since_boot() >= moment {
            return true;
        }
        alarm.set(moment);
        false
    }
}
