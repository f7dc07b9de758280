//! Journals: the inputs of a machine, kept in a file to resume and replay its run.
//!
//! The machine is pure: the same beginning and the same events at the same times give the same run.
//! A [`Recorder`] is a driver around another driver, and records each event before its delivery.
//! [`replay()`] delivers the recorded events to a new machine, and nothing performs the effects.
//! The replayed effects are compared with the recorded ones, because another version may behave
//! differently.

mod anchor;
mod beginning;
mod digest;
mod entry;
mod fd_graph;
mod frame;
mod known;
mod last;
mod lengths;
mod live_state;
mod read;
mod recorder;
mod remake;
mod replay;
mod scopes;
mod started;
mod store;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

pub use self::anchor::{Clocks, elapsed};
pub use self::beginning::Beginning;
pub use self::entry::Over;
pub use self::last::{LastFrame, last};
pub use self::read::{Journal, NoMemory, Suspended, Unreadable, read};
pub use self::recorder::Recorder;
pub use self::replay::{ReplayObserver, ReplayResult, ReplayedWorld, Unrepeatable, replay};
pub use self::started::Started;
pub use self::store::Store;
pub use self::writer::{Writer, report};

pub use ftsh_machine::BEHAVIOR;
