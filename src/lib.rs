//! ftsh, the fault-tolerant shell, as a library.
//!
//! The shell is a pure interpreter ([`machine`]) that never touches the world, and drivers
//! ([`driver`]) that do. See `ARCHITECTURE.md` for the map.

pub mod cli;
pub mod log;
pub mod repl;
pub mod report;
pub mod timeline;
