//! Private directory of the user, shared by all shells of the user on this machine.

use std::fs::{Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
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

impl From<DirectoryError> for io::Error {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::System(error) => error,
            error => Self::other(error),
        }
    }
}

/// Creates the directories above a place for files that stay, except a missing home. System users have
/// homes that no shell should create, as `/nonexistent`.
pub fn make_above(home: Option<&Path>, place: &Path) -> io::Result<()> {
    if let Some(home) = home.filter(|home| place.starts_with(home) && !home.is_dir()) {
        let reason = format!("there is no home directory `{}`", home.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, reason));
    }
    let above = place.parent().unwrap_or(place);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(above)
}

/// Creates a directory that only this user can write to, or checks an existing one.
///
/// The user's own permissions are complete afterwards. Otherwise a shell with a umask such as 0400
/// would leave a directory that no later shell can list.
pub fn make_private(directory: &Path) -> Result<(), DirectoryError> {
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    let found = check_private(directory)?;
    if found.mode() & 0o700 == 0o700 {
        Ok(())
    } else {
        // Only this user can have replaced the directory by a link meanwhile.
        let mode = Permissions::from_mode(found.mode() & 0o7777 | 0o700);
        Ok(std::fs::set_permissions(directory, mode)?)
    }
}

/// Checks that only this user can write to a directory, without a change. Follows no link, which
/// any user could create in `/tmp`.
pub fn check_private(directory: &Path) -> Result<Metadata, DirectoryError> {
    let found = std::fs::symlink_metadata(directory)?;
    if !found.is_dir() {
        Err(DirectoryError::NoDirectory)
    } else if found.uid() != nix::unistd::geteuid().as_raw() {
        Err(DirectoryError::SomebodyElses)
    } else if found.mode() & 0o022 != 0 {
        Err(DirectoryError::Shared)
    } else {
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_of_the_user_are_completed() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("d");
        let mode = || std::fs::metadata(&directory).expect("a directory").mode() & 0o777;
        for before in [0o300, 0o400, 0o755] {
            let _ = std::fs::create_dir(&directory);
            std::fs::set_permissions(&directory, Permissions::from_mode(before)).expect("a mode");
            make_private(&directory).expect("a private directory");
            assert_eq!(mode(), before | 0o700);
        }
    }
}
