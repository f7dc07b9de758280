//! Paths as written in scripts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::BStr;

use ftsh_machine::effect::Directory;

/// Resolves a path against a task's directory.
pub(crate) fn resolve(directory: &Directory, path: &[u8]) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path));
    match &directory.path {
        Some(directory) => Path::new(OsStr::from_bytes(directory)).join(path),
        None => path.into(),
    }
}

/// Returns a path for messages.
pub(crate) fn shown(path: &BStr) -> &BStr {
    if path.is_empty() { "\"\"".into() } else { path }
}
