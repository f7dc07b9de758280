//! Drivers of the machine.

pub mod simulated;
