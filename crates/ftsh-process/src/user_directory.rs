//! Private directory of the user, shared by all shells of the user on this machine.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use thiserror::Error;

use ftsh_sys::os_error::plain;

/// Returns the path. It depends only on the user, so shells started by cron, at a prompt and as
/// services agree.
pub fn path() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let user = nix::unistd::geteuid();
        if user.is_root() && Path::new("/run").is_dir() {
            "/run/ftsh".into()
        } else {
            format!("/tmp/ftsh-{user}").into()
        }
    };
    PATH.get_or_init(find).clone()
}

/// Reason why a directory cannot be used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// A system call failed.
    #[error("{}", plain(.0))]
    System(#[from] io::Error),
    /// The path is not a directory, perhaps a link.
    #[error("it is not a directory")]
    NoDirectory,
    /// Another user owns the directory.
    #[error("it belongs to another user")]
    SomebodyElses,
    /// Other users may write to the directory.
    #[error("other users can write to it")]
    Shared,
}

/// Creates a directory that only this user can write to, or checks an existing one.
pub fn make_private(directory: &Path) -> Result<(), DirectoryError> {
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    // Does not follow a link, which any user could create in `/tmp`.
    let found = std::fs::symlink_metadata(directory)?;
    if !found.is_dir() {
        Err(DirectoryError::NoDirectory)
    } else if found.uid() != nix::unistd::geteuid().as_raw() {
        Err(DirectoryError::SomebodyElses)
    } else if found.mode() & 0o022 != 0 {
        Err(DirectoryError::Shared)
    } else {
        Ok(())
    }
}
