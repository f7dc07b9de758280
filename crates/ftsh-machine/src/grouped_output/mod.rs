//! Output of branches that is kept together or tagged line by line.

pub(crate) mod held;
pub(crate) mod let_out;
pub(crate) mod relay;
pub(crate) mod relaying;
