//! The side that receives the files: new files, directories and links.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::PathBuf;

use bstr::ByteSlice;
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;

use super::entries::{EntryKind, FileEntry};

/// Creates entries. `content` writes a file.
pub(super) fn build(
    entries: &[FileEntry],
    place: impl Fn(&[u8]) -> PathBuf,
    mut content: impl FnMut(&FileEntry, &mut File) -> io::Result<()>,
) -> io::Result<()> {
    for entry in entries {
        let path = place(&entry.path);
        match &entry.kind {
            EntryKind::Directory => DirBuilder::new().mode(0o700).create(&path)?,
            EntryKind::Link(target) => symlink(target.to_path_lossy(), &path)?,
            EntryKind::File(..) => {
                let new = File::options().write(true).create_new(true).mode(0o600).open(&path);
                content(entry, &mut new?)?;
            }
        }
    }
    // Directories last: each entry in a directory changes its time and needs its permissions.
    for entry in entries.iter().rev() {
        let path = place(&entry.path);
        if !matches!(entry.kind, EntryKind::Link(_)) {
            fs::set_permissions(&path, Permissions::from_mode(entry.mode))?;
        }
        let (old, flag) = (TimeSpec::UTIME_OMIT, UtimensatFlags::NoFollowSymlink);
        let time = TimeSpec::new(entry.modified.0, entry.modified.1);
        utimensat(AT_FDCWD, &path, &old, &time, flag)?;
    }
    Ok(())
}
