//! A directory of the user's own, for what all of their shells on this machine share.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use thiserror::Error;

use ftsh_sys::os_error::plain;

/// Where it is: the same for runs by cron, at a prompt and as a service, so it depends on nothing but
/// the user.
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

/// Why a directory can't be used.
#[derive(Debug, Error)]
pub enum Unusable {
    /// The system says so.
    #[error("{}", plain(.0))]
    System(#[from] io::Error),
    /// Something else has its name, perhaps a link.
    #[error("it is no directory")]
    NoDirectory,
    /// It is another user's.
    #[error("it belongs to somebody else")]
    SomebodyElses,
    /// It is open to others.
    #[error("others can write to it")]
    Shared,
}

/// Makes a directory that nobody else can write to, or finds it.
pub fn make_private(directory: &Path) -> Result<(), Unusable> {
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    // Not following a link: in `/tmp` it could be anybody's.
    let found = std::fs::symlink_metadata(directory)?;
    if !found.is_dir() {
        Err(Unusable::NoDirectory)
    } else if found.uid() != nix::unistd::geteuid().as_raw() {
        Err(Unusable::SomebodyElses)
    } else if found.mode() & 0o022 != 0 {
        Err(Unusable::Shared)
    } else {
        Ok(())
    }
}
