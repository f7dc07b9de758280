//! ftsh, the fault-tolerant shell, as a library.
//!
//! The shell is a pure interpreter ([`ftsh_machine`]) that never touches the world, and drivers
//! ([`ftsh_process`]) that do. See `ARCHITECTURE.md` for the map.

pub mod cli;
pub mod log;
pub mod repl;
pub mod report;
mod state;
pub mod telemetry;
pub mod timeline;
