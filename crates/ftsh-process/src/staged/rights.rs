//! Metadata that a new file takes from the file it replaces: owner, mode, access control list,
//! attributes.

use std::ffi::CStr;
use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::stat::{Mode, fchmod, fstat, mode_t};
use nix::unistd::{Gid, Uid, fchown, geteuid};

use ftsh_sys as sys;

/// Access control list, which Linux stores as an attribute.
const LIST: &CStr = c"system.posix_acl_access";
const LABEL: &CStr = c"security.selinux";

/// Copies owner, permissions and attributes of the old file to the new one, as far as permitted.
/// The new file never gets more permissions.
pub(crate) fn take_after(new: &OwnedFd, path: &Path, old: &Metadata) -> io::Result<()> {
    let own = fstat(new)?;
    if own.st_uid != old.uid() {
        let _ = fchown(new, Some(Uid::from_raw(old.uid())), None);
    }
    let group =
        own.st_gid == old.gid() || fchown(new, None, Some(Gid::from_raw(old.gid()))).is_ok();
    // Without its access control list, the file would give the group permissions that the list
    // denies.
    let names = match sys::attributes(path) {
        Err(error) if may_lack_attributes(error.kind()) => Vec::new(),
        names => names?,
    };
    let has_list = names.iter().any(|name| name.as_c_str() == LIST);
    // The new file may have inherited a list from its directory.
    let _ = sys::remove_attribute(new.as_fd(), LIST);
    // As after a write, set-user-ID bits are dropped. Group permissions are dropped if the group
    // cannot be set, or if a list exists: then they are the mask of the list.
    let kept = if geteuid().is_root() { 0o7777 } else { 0o1777 };
    let mode = old.mode() & if group && !has_list { kept } else { kept & !0o070 };
    set_mode(new, Mode::from_bits_truncate(mode as mode_t))?;
    for name in names {
        let is_plain = name.as_bytes().starts_with(b"user.") || name.as_c_str() == LABEL;
        if is_plain || group && name.as_c_str() == LIST {
            let _ = sys::attribute(path, &name)
                .and_then(|value| sys::set_attribute(new.as_fd(), &name, &value));
        }
    }
    Ok(())
}

/// True for errors of file systems without attributes.
fn may_lack_attributes(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(kind, Unsupported | PermissionDenied | InvalidInput)
}

/// Sets the mode of a file, if different.
pub(crate) fn set_mode(file: &OwnedFd, mode: Mode) -> io::Result<()> {
    if fstat(file)?.st_mode & 0o7777 != mode.bits() {
        fchmod(file, mode)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Returns `user::rw, user:12345:rw, group::---, mask::rw, other::---` in the kernel's format.
    fn list() -> Vec<u8> {
        let nobody = u32::MAX;
        let entries =
            [(1, 6, nobody), (2, 6, 12345), (4, 0, nobody), (16, 6, nobody), (32, 0, nobody)];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            list.extend(u16::to_le_bytes(tag));
            list.extend(u16::to_le_bytes(rights));
            list.extend(u32::to_le_bytes(id));
        }
        list
    }

    /// Creates an old and a new file with these attributes and copies the metadata. Returns mode,
    /// access control list and note of the new file; none if the file system has no attributes.
    fn taken(of_old: &[(&CStr, &[u8])], of_new: &[(&CStr, &[u8])]) -> Option<(u32, Value, Value)> {
        let place = tempfile::tempdir().expect("a directory");
        let make = |name, attributes: &[(&CStr, &[u8])]| {
            let path = place.path().join(name);
            let file = File::create(&path).expect("a file");
            file.set_permissions(Permissions::from_mode(0o640)).expect("permissions");
            let set =
                |(name, value): &(&CStr, &[u8])| sys::set_attribute(file.as_fd(), name, value);
            attributes.iter().all(|it| set(it).is_ok()).then_some((path, file))
        };
        let ((old, _), (path, new)) = (make("old", of_old)?, make("new", of_new)?);
        let found = fs::metadata(&old).expect("it is there");
        take_after(&new.into(), &old, &found).expect("its own file");
        let attribute = |name| sys::attribute(&path, name).ok();
        let mode = fs::metadata(&path).expect("it is there").mode() & 0o777;
        Some((mode, attribute(LIST), attribute(NOTE)))
    }

    /// Value of an attribute.
    type Value = Option<Vec<u8>>;

    const NOTE: &CStr = c"user.note";

    #[test]
    fn access_lists_and_attributes_are_copied() {
        let list = list();
        let with = taken(&[(LIST, &list), (NOTE, b"mine")], &[]);
        let Some(with) = with else { return eprintln!("this file system has no attributes") };
        assert_eq!(with, (0o660, Some(list.clone()), Some(b"mine".to_vec())));
        assert_eq!(taken(&[], &[(LIST, &list)]), Some((0o640, None, None)));
    }
}
