//! Drivers of the machine.

pub mod process;
pub mod simulated;
