//! Lowers the syntax tree to instructions.

mod jumps;
mod limits;
mod loops;
mod script;
mod taken_back;
mod tries;

pub use self::limits::learned_limits;
pub(crate) use self::script::{lower, lower_elsewhere, lower_file};
