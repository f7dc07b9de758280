//! Tasks: positions in the program with stacks of frames. Also the instructions' results and the
//! timers that drive tasks.

pub(crate) mod core;
pub(crate) mod directory;
pub(crate) mod flow;
pub(crate) mod frame;
pub(crate) mod join;
pub(crate) mod random;
pub(crate) mod scheduler;
pub(crate) mod suspend;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod timer;
pub mod trace;
pub(crate) mod trace_walk;
