//! System interfaces: readiness of descriptors, signals, worker threads, locks, clocks.

pub mod alarm;
pub mod cgroup;
pub mod clock;
pub mod ending;
pub mod locks;
pub mod poll;
pub mod reader;
pub mod signal;
pub mod umask;
pub mod workers;
