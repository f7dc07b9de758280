//! Umask, memory and load of the machine, and exit statuses.

mod memory;
mod process;

pub(crate) use self::memory::{KillCount, free_resources, kilobytes, limits_memory};
pub(crate) use self::process::command_status;
pub use self::process::{assume_umask, umask};
