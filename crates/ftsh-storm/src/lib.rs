//! Runs of a script with one fault each.
//!
//! [`storm()`] runs a script undisturbed, and then once for each command and fault, each time in a
//! fresh copy of the directories. [`StormDriver`] injects the fault and lets delays pass in virtual
//! time. A difference between the end of a run and that of the undisturbed run shows a command that
//! cannot be repeated.

mod calls;
mod command;
mod compare;
mod driver;
mod fault;
mod judge;
mod observe;
mod plan;
mod report;
mod spec;
mod storm;
mod trace;
mod tree;
mod variation;
mod world;

pub use calls::{ModelledEnd, SharedModels};
pub use command::CommandId;
pub use driver::{StormDriver, SystemHooks};
pub use fault::CommandFault;
pub use report::{CommandReport, FaultVerdict, Finding, StormReport};
pub use spec::{Injection, RunSpec};
pub use storm::{StormError, StormSettings, TALKING, storm};
pub use trace::RunTrace;
pub use tree::{Changes, EntryContent, TreeEntry};
pub use world::{RunEnd, StormWorld};
