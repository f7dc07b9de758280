//! The pure interpreter. The machine never blocks, reads no clock, opens no file and starts no
//! process. Requests to the driver are [`Effect`]s, and their results are [`Event`]s.
//!
//! A program that embeds the language implements [`driver::Driver`], and calls [`driver::run`].
//! `examples/embed.rs` is such a program. Without a driver, the same loop is:
//!
//! ```
//! use ftsh_machine::event::CommandStatus;
//! use ftsh_machine::{Config, Effect, Event, Machine, Outcome, Output, Time};
//!
//! let script = ftsh_syntax::parse("hello", "hello world").expect("a script");
//! let mut machine = Machine::new(&script, Vec::new(), Vec::new(), Config::default(), 1);
//! machine.handle_timeout(Time::START);
//! let outcome = loop {
//!     match machine.poll_output() {
//!         Output::Effect(Effect::Run(run)) => {
//!             // A driver starts the command here. This command succeeds at once.
//!             let (process, status) = (run.process, CommandStatus::Exited(0));
//!             let event = Event::Exited { process, status, line: None, reader_gone: false };
//!             machine.handle_event(Time::START, event);
//!         }
//!         Output::Effect(_) => {}
//!         Output::Timeout(until) => machine.handle_timeout(until),
//!         Output::Finished(outcome) => break outcome,
//!     }
//! };
//! assert!(matches!(outcome, Outcome::Succeeded));
//! ```

#![forbid(unsafe_code)]

mod amounts;
mod atomic;
mod attempts;
mod branches;
pub mod channels;
mod commands;
mod core;
mod dropped;
pub mod durations;
mod elsewhere;
mod endings;
mod eval;
mod frames;
mod grouped_output;
mod interface;
mod invocation;
mod items;
mod loops;
mod lower;
mod machine;
mod modifiers;
mod outputs;
mod parallel;
mod program;
mod random;
mod remote;
mod resources;
mod scheduler;
pub mod secrets;
pub mod status;
mod supply;
mod tasks;
mod transactions;
mod tries;
mod unwind;
mod values;
mod variables;

pub use crate::config::Config;
pub use crate::effect::Effect;
pub use crate::elsewhere::Packed;
pub use crate::event::Event;
pub use crate::lower::learned_limits;
pub use crate::machine::Machine;
pub use crate::outcome::{Failure, FailureKind, Outcome};
pub use crate::outputs::{TORN, escape_field};
pub use crate::time::{Deadline, Time};

pub use crate::commands::builtins;
pub use crate::eval::{arguments, functions};
pub use crate::interface::{
    config, control, effect, event, nesting, outcome, packed, record, time, trace,
};
pub use crate::machine::driver;
pub use crate::values::{pattern, size};

use crate::effect::TaskId;

/// Version of the machine's behavior. Raise the version whenever a machine may produce other
/// effects than before from the same script, seed and events. Versions of `rand`, `rand_distr`,
/// `regex` and `strsim` count as behavior.
pub const BEHAVIOR: u32 = 12;

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
