//! Work in progress: commands and their processes, relays of output, waits for channels.

pub(crate) mod children;
mod command;
mod reactor;
mod relays;
mod system_view;
mod turns;

pub(crate) use self::children::{Children, CommandChild};
pub(crate) use self::command::{ActiveCommand, CommandStage, JobRecipient, JobResult};
pub(crate) use self::reactor::Reactor;
pub(crate) use self::relays::{RELAYS, Relays};
pub(crate) use self::system_view::SystemView;
pub(crate) use self::turns::{Turns, UserNote};
