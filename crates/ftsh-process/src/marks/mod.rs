//! Environment variables for child processes: the tag of their scope, the validity of their time
//! limit, and their kill timeout.

mod kill_timeout;
pub mod lease;
mod mark;

pub use self::kill_timeout::KillTimeout;
pub use self::lease::{Leases, forget_dead_limit};
pub use self::mark::{Mark, Marker, VARIABLE, find, innermost};
