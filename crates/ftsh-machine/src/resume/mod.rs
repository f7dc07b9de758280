//! Runs that go on in another process.

pub(crate) mod loss;
pub(crate) mod resuming;
