//! Stages of pipelines, and results of tasks that decide together.

pub(crate) mod stages;
pub(crate) mod tally;
