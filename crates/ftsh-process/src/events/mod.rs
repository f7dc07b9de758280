//! Readiness of descriptors, signals to the shell, and an alarm at a set time.

mod poll;
mod signal;

pub(crate) use self::poll::{Poller, Token};
pub use self::signal::die_by;
pub(crate) use self::signal::{
    ALARM, DeadlineAlarm, Signals, editor_signals, is_ending, signal_number,
};
