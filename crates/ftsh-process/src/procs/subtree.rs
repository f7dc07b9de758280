//! Killing of processes by a shell that runs other shells.

use std::collections::HashSet;

use super::{features, kill_tree};

/// Makes this process the parent of the orphans among its descendants, where the system allows.
pub fn adopt_orphans() {
    features::become_subreaper();
}

/// Kills all children of this process, and the orphans that it adopts meanwhile. Blocks.
pub fn kill_children() {
    let _ = kill_tree::empty(&HashSet::new());
}

/// Kills a process and all its descendants.
pub fn kill_subtree(pid: i32) {
    kill_tree::stop_and_kill(&[pid]);
}
