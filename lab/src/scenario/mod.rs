//! The experiments. Each has options and a function `run` that returns a report.

pub mod advise;
pub mod blackhole;
pub mod buffer;
pub mod channels;
pub mod cluster;
pub mod delays;
pub mod discipline;
pub mod ethernet;
pub mod last_attempt;
pub mod limits;
pub mod occ;
pub mod outage;
pub mod overload;
pub mod paper;
pub mod recovery;
pub mod rehearse;
