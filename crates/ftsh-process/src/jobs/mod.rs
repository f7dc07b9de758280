//! Work in progress: commands and their processes, relays of output, waits for channels.

mod command;
mod reactor;
mod relays;
mod turns;

pub(crate) use self::command::{ActiveCommand, CommandStage, JobRecipient, JobResult};
pub(crate) use self::reactor::Reactor;
pub(crate) use self::relays::{RELAYS, Relays};
pub(crate) use self::turns::{Turns, UserNote};
