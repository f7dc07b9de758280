//! Directory of the user for files that stay, such as histories.

use std::path::PathBuf;

/// Returns `$XDG_STATE_HOME`, or `~/.local/state` by the XDG rules; `None` without a home.
pub(crate) fn directory(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(home(&variable)?.join(".local/state")))
}

/// Returns the home directory, which may be missing.
pub(crate) fn home(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    variable("HOME").filter(|home| home.is_absolute())
}
