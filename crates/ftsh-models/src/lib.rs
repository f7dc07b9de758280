//! Models of commands, written as `wget fails 30% takes 2s to 20s`.

mod model;
mod parse;
mod state;
mod tokens;

pub use model::{CommandModel, DurationRange, Fails, Outage, last_name};
pub use parse::CLAUSES;
pub use state::{ModelState, PlannedRun};
pub use tokens::without_comment;
