//! What the environment of a process says: whose it is, until when its limit counts, and how long it
//! may take to kill what it started.

mod kill_timeout;
pub mod lease;
mod mark;

pub use self::kill_timeout::KillTimeout;
pub use self::lease::{Leases, forget_dead_limit};
pub use self::mark::{Mark, Marker, VARIABLE, find, innermost};
