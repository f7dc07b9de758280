//! Killing of processes by a shell that runs other shells.

use std::collections::HashSet;

use super::{features, kill_tree, list};

/// Children of this process before it started any, as after an `exec`.
pub struct EarlierChildren(HashSet<i32>);

/// Makes this process the parent of the orphans among its descendants, where the system allows.
pub fn adopt_orphans() -> EarlierChildren {
    features::become_subreaper();
    EarlierChildren(
        list::children(std::process::id().cast_signed()).unwrap_or_default().into_iter().collect(),
    )
}

/// Kills all later children of this process, and the orphans that it adopts meanwhile. Blocks.
pub fn kill_children(except: &EarlierChildren) {
    let _ = kill_tree::empty(&except.0);
}

/// Kills a process and all its descendants.
pub fn kill_subtree(pid: i32) {
    kill_tree::stop_and_kill(&[pid]);
}
