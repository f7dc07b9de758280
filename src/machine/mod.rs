//! The pure interpreter.

pub mod config;
pub mod effect;
pub mod event;
pub mod outcome;
pub mod record;
pub mod time;

pub use config::Config;
pub use effect::Effect;
pub use event::Event;
pub use outcome::{Failure, FailureKind, Outcome};
pub use time::Time;

/// What to do next.
pub enum Output {
    /// Carry this out.
    Effect(Effect),
    /// Nothing to do before this moment; call `handle_timeout` then, or `handle_event` earlier.
    Timeout(Time),
    /// The run is over.
    Finished(Outcome),
}
