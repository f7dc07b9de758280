//! Stages of pipelines, and the combined results of tasks.

pub(crate) mod results;
pub(crate) mod stages;
pub(crate) mod tally;
