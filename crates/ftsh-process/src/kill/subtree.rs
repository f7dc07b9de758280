//! Killing of processes by a shell that runs other shells.

use std::collections::HashSet;

use super::kill_tree::{kill_all_except, stop_and_kill};
use crate::procs::{ProcDir, lists_children};
use ftsh_sys as sys;

/// Makes this process the parent of orphans. Returns false where the system lacks subreapers or
/// lists of children.
pub(crate) fn become_subreaper() -> bool {
    lists_children() && sys::become_subreaper(true)
}

/// Children of this process before it started any, as after an `exec`.
pub struct EarlierChildren(HashSet<i32>);

/// Makes this process the parent of the orphans among its descendants, where the system allows.
pub fn adopt_orphans() -> EarlierChildren {
    become_subreaper();
    EarlierChildren(
        ProcDir(std::process::id().cast_signed())
            .children()
            .unwrap_or_default()
            .into_iter()
            .collect(),
    )
}

/// Kills all later children of this process, and the orphans that it adopts meanwhile. Blocks.
pub fn kill_children(except: &EarlierChildren) {
    let _ = kill_all_except(&except.0);
}

/// Kills a process and all its descendants.
pub fn kill_subtree(pid: i32) {
    stop_and_kill(&[pid]);
}
