//! Programs: finding them, starting them, and having one take the shell's place.

mod exec;
mod spawn;

pub use self::exec::Replacement;
pub use self::spawn::{Found, Program, Started};
