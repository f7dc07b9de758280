//! Search for programs, their start, and replacement of the shell by a program.

mod exec;
mod spawn;

pub use self::exec::Replacement;
pub use self::spawn::{ProgramCache, ProgramSpec, StartedProgram};
