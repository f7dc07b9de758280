//! Runs resumed in another process.

pub(crate) mod loss;
pub(crate) mod run;
