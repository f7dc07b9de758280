//! Search for programs, their start, replacement of the shell by a program, and filters of `json`.

mod detached;
mod exec;
mod filter;
mod reader;
mod spawn;

pub use self::detached::start_detached;
pub(crate) use self::exec::Replacement;
pub(crate) use self::filter::filter_results;
pub use self::filter::{is_filter, serve_filter};
pub(crate) use self::reader::{DaemonPipe, start_reader};
pub(crate) use self::spawn::{ProgramCache, ProgramSpec, StartedProgram};
