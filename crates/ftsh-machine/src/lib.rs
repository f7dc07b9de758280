//! The pure interpreter: it never blocks, reads no clock, opens no file and starts no process. It
//! says what it wants done ([`Effect`]) and is told what came of it ([`Event`]).

#![forbid(unsafe_code)]

mod atomic;
pub mod channels;
mod commands;
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
pub use crate::grouped_output::relay::field;
pub use crate::machine::Machine;
pub use crate::outcome::{Failure, FailureKind, Outcome};
pub use crate::remote::state::Packed;
pub use crate::remote::unpack::failure;
pub use crate::time::Time;

pub use crate::commands::builtins;
pub use crate::eval::functions;
pub use crate::interface::{config, control, driver, effect, event, outcome, record, time};
pub use crate::remote::packed;
pub use crate::tasks::trace;
pub use crate::values::size;

use crate::effect::TaskId;

/// Which machine it takes to repeat a run: to be raised whenever a machine may do something else than
/// before when it is told the same. What decides counts: `rand`, `rand_distr`, `regex`, `strsim`.
pub const BEHAVIOR: u32 = 6;

/// What to do next.
#[derive(Debug)]
pub enum Output {
    /// Carry this out.
    Effect(Effect),
    /// Nothing to do before this moment; call `handle_timeout` then, or `handle_event` earlier.
    Timeout(Time),
    /// The run is over.
    Finished(Outcome),
}

/// The script's own task.
const MAIN: TaskId = TaskId(0);
