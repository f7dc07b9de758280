//! Search for programs, their start, and replacement of the shell by a program.

mod exec;
mod spawn;

pub(crate) use self::exec::Replacement;
pub(crate) use self::spawn::{ProgramCache, ProgramSpec, StartedProgram};
