//! Paths of the shell to what the programs of an attempt see.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Component, Path, PathBuf};

/// Maximum number of links on a path, as in the kernel.
const MAX_LINKS: usize = 40;

/// Resolves an absolute path below another root, component by component.
///
/// The kernel resolves absolute links from the root of this process, so this function resolves the
/// links itself. Paths into `/proc` depend on the process, and stay unresolved. A missing component
/// is kept, unless `..` follows. `root_of` returns the root directory below which the shell reaches a
/// path, or none for paths that are the same for this process.
pub(crate) fn translate(
    root: BorrowedFd,
    path: &Path,
    follow: bool,
    root_of: &dyn Fn(&Path) -> Option<PathBuf>,
) -> io::Result<PathBuf> {
    let view = self::root(root);
    let within = |path: &Path| match path.strip_prefix("/") {
        Ok(rest) => view.join(rest),
        Err(_) => view.join(path),
    };
    let has_end_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let mut rest: VecDeque<OsString> = components(path).collect();
    let (mut resolved, mut links) = (PathBuf::from("/"), 0);
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            if !std::fs::metadata(within(&resolved))?.is_dir() {
                return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
            }
            resolved.pop();
            continue;
        }
        let next = resolved.join(&name);
        if next == Path::new("/proc") {
            return Ok(path.into());
        }
        let is_followed = follow || has_end_slash || !rest.is_empty();
        match std::fs::read_link(within(&next)) {
            Ok(target) if is_followed => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::from_raw_os_error(libc::ELOOP));
                }
                if target.is_absolute() {
                    resolved = PathBuf::from("/");
                }
                for component in components(&target).collect::<Vec<_>>().into_iter().rev() {
                    rest.push_front(component);
                }
            }
            _ => resolved = next,
        }
    }
    let Some(root) = root_of(&resolved) else { return Ok(path.into()) };
    let mut translated = root.join(resolved.strip_prefix("/").unwrap_or(&resolved));
    if has_end_slash {
        translated.push("");
    }
    Ok(translated)
}

/// Returns the path of a directory that is open.
pub(crate) fn root(root: BorrowedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd()))
}

/// Returns names and `..` of a path.
fn components(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        _ => None,
    })
}
