//! Process supervision features of the system, tested once, and the choice of fallbacks.

use std::sync::OnceLock;

use super::list;
use ftsh_sys as sys;

/// Selects fallbacks in test builds: `pidfd` disables pidfds, `1` also disables subreapers, `ps`
/// also disables `/proc`.
const TEST_FALLBACK: &str = "FTSH_TEST_FALLBACK";

fn is_asked_for(fallbacks: &[&str]) -> bool {
    cfg!(debug_assertions)
        && std::env::var_os(TEST_FALLBACK)
            .is_some_and(|value| fallbacks.iter().any(|fallback| value == **fallback))
}

/// True if pidfds report the end of children.
pub(crate) fn has_pidfds() -> bool {
    static PIDFDS: OnceLock<bool> = OnceLock::new();
    *PIDFDS.get_or_init(|| !is_asked_for(&["pidfd", "1", "ps"]) && sys::has_pidfds())
}

/// Makes this process the parent of orphans. Returns false where the system lacks subreapers or
/// lists of children.
pub(crate) fn become_subreaper() -> bool {
    !is_asked_for(&["1", "ps"]) && list::lists_children() && sys::become_subreaper(true)
}

/// True if unnamed files may be used.
pub(crate) fn has_unnamed_files() -> bool {
    !is_asked_for(&["1", "ps"])
}

/// True if processes must be listed by `ps`.
pub(crate) fn needs_ps() -> bool {
    is_asked_for(&["ps"]) || !list::has_proc()
}
