//! Watching of the processes of scopes, for `stalled` and `memory`.
//!
//! The event loop lists the first processes of each watched scope when a sample is due. A thread of
//! its own finds their descendants and reads their progress and memory, because reading `/proc` may
//! wait for a process. The thread wakes the loop only when a condition is met, or when the next
//! sample is due earlier than the loop expects.

mod memory;
mod progress;
mod reading;
mod sampler;
mod targets;

pub(crate) use self::sampler::SampleReport;
pub(crate) use self::targets::ScopeWatches;
