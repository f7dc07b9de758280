//! The pure interpreter. The machine never blocks, reads no clock, opens no file and starts no
//! process. Requests to the driver are [`Effect`]s, and their results are [`Event`]s.

#![forbid(unsafe_code)]

mod atomic;
pub mod channels;
mod commands;
pub mod durations;
mod eval;
mod forall;
mod forany;
mod grouped_output;
mod interface;
mod loops;
mod machine;
mod pipelines;
mod program;
mod remote;
mod resume;
mod scopes;
pub mod secrets;
pub mod status;
mod tasks;
mod tries;
mod unwind;
mod values;

pub use crate::config::Config;
pub use crate::effect::Effect;
pub use crate::event::Event;
pub use crate::grouped_output::escape::{TORN, escape_field};
pub use crate::machine::Machine;
pub use crate::outcome::{Failure, FailureKind, Outcome};
pub use crate::program::learned::learned_limits;
pub use crate::remote::state::Packed;
pub use crate::remote::unpack::failure;
pub use crate::time::{Deadline, Time};

pub use crate::commands::builtins;
pub use crate::eval::{arguments, functions};
pub use crate::interface::{config, control, driver, effect, event, outcome, record, time};
pub use crate::remote::packed;
pub use crate::tasks::trace;
pub use crate::values::{pattern, size};

use crate::effect::TaskId;

/// Version of the machine's behavior. Raise the version whenever a machine may produce other
/// effects than before from the same script, seed and events. Versions of `rand`, `rand_distr`,
/// `regex` and `strsim` count as behavior.
pub const BEHAVIOR: u32 = 9;

/// Next request of a machine to its driver.
#[derive(Debug)]
pub enum Output {
    /// Effect to perform.
    Effect(Effect),
    /// Nothing to do before this moment. Call `handle_timeout` then, or `handle_event` earlier.
    Timeout(Time),
    /// The run is over.
    Finished(Outcome),
}

/// Id of the script's own task.
const MAIN: TaskId = TaskId(0);
