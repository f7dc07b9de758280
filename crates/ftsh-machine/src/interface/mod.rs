//! The boundary of the machine: effects, events, outcomes, records, settings, and the `Driver`
//! trait.

pub mod config;
pub mod control;
pub mod effect;
pub mod event;
mod id;
pub mod nesting;
pub mod outcome;
pub mod packed;
pub mod record;
pub mod time;
pub mod trace;
mod watch;
