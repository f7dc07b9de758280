//! Search for programs, their start, replacement of the shell by a program, and filters of `json`.

mod exec;
pub(crate) mod filter;
mod spawn;

pub(crate) use self::exec::Replacement;
pub(crate) use self::spawn::{ProgramCache, ProgramSpec, StartedProgram};
