//! System interfaces: readiness of descriptors, signals, worker threads, locks, clocks.

pub(crate) mod alarm;
pub(crate) mod cgroup;
pub(crate) mod clock;
pub(crate) mod ending;
pub(crate) mod local_time;
pub(crate) mod locks;
pub(crate) mod poll;
pub(crate) mod reader;
pub(crate) mod resources;
pub(crate) mod signal;
pub(crate) mod umask;
pub(crate) mod workers;
