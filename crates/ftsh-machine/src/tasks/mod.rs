//! Tasks: positions in the program with stacks of frames. Also the instructions' results and the
//! timers that drive tasks.

mod replacing;
mod table;
mod task;

pub(crate) use self::replacing::Replacing;
pub(crate) use self::table::Tasks;
pub(crate) use self::task::{
    AfterEmptied, Cancellation, CommittingFiles, ParentContext, RunningCommand, Task, TaskState,
    branch_results,
};
