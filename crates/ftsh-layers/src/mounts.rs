//! Mount points and file systems of the machine.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use ftsh_sys::{MountFailure, MountStep};
use nix::errno::Errno;
use rustix::fs::fstatfs;

use crate::entry::{NESTED, PREFIX};
use crate::error::CoverError;

/// Returns a mount point below a directory, if there is one.
pub(crate) fn mounted_below(directory: &Path) -> io::Result<Option<PathBuf>> {
    let mut points = all()?.into_iter().map(|mount| mount.point);
    Ok(points.find(|point| point != directory && point.starts_with(directory)))
}

/// Mounted file system.
struct Mount {
    point: PathBuf,
    kind: Vec<u8>,
    source: PathBuf,
}

/// Returns the mounts that this process sees, in the order of their mounting.
fn all() -> io::Result<Vec<Mount>> {
    let text = std::fs::read("/proc/thread-self/mountinfo")?;
    let mounts = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let point = unescape(fields.nth(4)?).into();
        // The number of optional fields varies.
        let mut further = fields.skip_while(|field| *field != b"-").skip(1);
        let kind = further.next()?.to_vec();
        Some(Mount { point, kind, source: unescape(further.next()?).into() })
    });
    Ok(mounts.collect())
}

/// Returns the overlay of an outer shell that shows a path: the covered directory, and the layers.
pub(crate) fn outer_overlay(path: &Path) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let above = all()?.into_iter().filter(|mount| path.starts_with(&mount.point));
    // Of several mounts at one point, the last one is visible.
    let shown = above.max_by_key(|mount| mount.point.as_os_str().len());
    let is_ours = |mount: &Mount| {
        let name = mount.source.file_name().unwrap_or_default().as_encoded_bytes();
        mount.kind == b"overlay"
            && [PREFIX, NESTED].iter().any(|it| name.starts_with(it.as_bytes()))
    };
    Ok(shown.filter(is_ours).map(|mount| (mount.point, mount.source)))
}

/// Decodes the octal escapes of `mountinfo`.
fn unescape(text: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let code =
            digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes)
}

/// Returns the name of the file system of an open file.
pub(crate) fn file_system(file: impl AsFd) -> String {
    let Ok(found) = fstatfs(file) else { return "an unknown file system".into() };
    let kind = found.f_type as u32;
    let name = match kind {
        0x6969 => "NFS",
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => "SMB",
        0x6573_5546 => "FUSE",
        OVERLAY => "overlayfs",
        0x0102_1997 => "9p",
        0x4d44 => "FAT",
        0x9fa0 => "proc",
        0x6265_6572 => "sysfs",
        0xef53 => "ext4",
        0x0102_1994 => "tmpfs",
        0x5846_5342 => "XFS",
        0x9123_683e => "btrfs",
        _ => return format!("a file system of type {kind:#x}"),
    };
    name.into()
}

/// Number of an overlay in the results of `statfs`.
const OVERLAY: u32 = 0x794c_7630;

/// True if a file is on an overlay, over which the kernel mounts no other overlay.
pub(crate) fn is_on_overlay(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|found| found.f_type as u32 == OVERLAY)
}

/// Settings of the kernel that forbid namespaces, with the value that forbids them.
const SETTINGS: [(&str, &str, &str); 3] = [
    ("user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", "0"),
    ("kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone", "0"),
    (
        "kernel.apparmor_restrict_unprivileged_userns",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ),
];

/// Returns the setting that forbids namespaces, if there is one.
fn forbidding_setting() -> Option<&'static str> {
    let forbids = |path: &str, value: &str| {
        std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
    };
    let (name, ..) = SETTINGS.iter().find(|(_, path, value)| forbids(path, value))?;
    Some(name)
}

/// Explains a failure to mount over directories, of which `directory` returns path and descriptor.
pub(crate) fn refusal<'a, F: AsFd + 'a>(
    failure: MountFailure,
    directory: impl FnOnce(usize) -> Option<(&'a Path, &'a F)>,
) -> CoverError {
    let error = io::Error::from(failure.errno);
    let is_denied = matches!(failure.errno, Errno::EPERM | Errno::EACCES);
    match failure.step {
        MountStep::Start | MountStep::Open => CoverError::System(error),
        MountStep::Protection if !is_denied => CoverError::Protection(error),
        // AppArmor permits the namespace, and then no mount.
        MountStep::Overlay(index) if !is_denied => match directory(index) {
            None => CoverError::System(error),
            Some((path, _)) if failure.errno != Errno::EINVAL => {
                CoverError::Directory { path: path.into(), error }
            }
            Some((path, fd)) => {
                CoverError::FileSystem { path: path.into(), system: file_system(fd), error }
            }
        },
        _ => {
            let is_limit = failure.errno == Errno::ENOSPC;
            let setting = forbidding_setting().or(is_limit.then_some(SETTINGS[0].0));
            CoverError::Namespaces { setting, error }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_decoded() {
        assert_eq!(unescape(br"/a\040b\134c\"), OsString::from(r"/a b\c\"));
        assert_eq!(mounted_below(Path::new("/none")).expect("a list"), None);
        assert!(mounted_below(Path::new("/")).expect("a list").is_some());
    }
}
