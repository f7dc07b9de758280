//! The experiments. Each has its `Options`, and `run`, which gives a report.

pub mod advise;
pub mod delays;
pub mod occ;
pub mod outage;
pub mod recovery;
