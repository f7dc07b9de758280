//! What the system offers to watch over processes: found out once, and which fallback is taken instead.

use std::sync::OnceLock;

use super::list;
use ftsh_sys as sys;

/// For tests, and only in builds for them: `pidfd` does without pidfds, `1` without subreapers as well,
/// `ps` also without `/proc`.
const TEST_FALLBACK: &str = "FTSH_TEST_FALLBACK";

fn is_asked_for(fallbacks: &[&str]) -> bool {
    cfg!(debug_assertions)
        && std::env::var_os(TEST_FALLBACK)
            .is_some_and(|value| fallbacks.iter().any(|fallback| value == **fallback))
}

/// Whether pidfds tell of the end of children.
pub fn has_pidfds() -> bool {
    static PIDFDS: OnceLock<bool> = OnceLock::new();
    *PIDFDS.get_or_init(|| !is_asked_for(&["pidfd", "1", "ps"]) && sys::has_pidfds())
}

/// Has orphans come to this process from now on, if that can be had and their list as well.
pub fn become_subreaper() -> bool {
    !is_asked_for(&["1", "ps"]) && list::lists_children() && sys::become_subreaper(true)
}

/// Whether files without a name may be asked for.
pub fn has_unnamed_files() -> bool {
    !is_asked_for(&["1", "ps"])
}

/// Whether `ps` has to be asked for processes.
pub fn needs_ps() -> bool {
    is_asked_for(&["ps"]) || !list::has_proc()
}
