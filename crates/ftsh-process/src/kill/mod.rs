//! Killing of process trees: of scopes, of a dead shell, and of earlier starts of a run.

mod kill_tree;
mod shutdown_sweep;
mod stale_runs;

pub use self::kill_tree::{adopt_orphans, kill_children, kill_subtree};
pub(crate) use self::kill_tree::{become_subreaper, stop_and_kill};
pub use self::shutdown_sweep::CLIENTS;
pub(crate) use self::shutdown_sweep::ShutdownSweep;
pub use self::stale_runs::kill_stale_runs;
