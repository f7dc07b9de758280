//! The boundary of the machine: effects, events, outcomes, records, settings, and the `Driver`
//! trait.

pub mod config;
pub mod control;
pub mod driver;
pub mod effect;
pub mod event;
pub(crate) mod id;
pub(crate) mod log;
pub mod outcome;
pub mod record;
pub(crate) mod requests;
pub mod time;
pub(crate) mod watch;
