//! Time of a run, clocks of the system, and local time.

mod clocks;
mod local_time;

pub use self::clocks::{BOOT_ID, boot_id, since_boot};
pub(crate) use self::clocks::{RunClock, since_1970};
pub use self::local_time::local_zone;
pub(crate) use self::local_time::{LocalTimeError, local_time};
