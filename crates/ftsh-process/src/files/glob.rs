//! Expansion of patterns to file names.

use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;

use bstr::{BString, ByteSlice};

use crate::paths::{FdError, TaskDirectory};
use crate::workers::Control;
use ftsh_machine::pattern::matches;

/// Longest name of a file in bytes.
const NAME_MAX: usize = libc::NAME_MAX as usize;

/// Number of bytes of a path that the message about its length shows.
const SHOWN: usize = 100;

/// Returns the sorted names of existing files that match. In the pattern, `*`, `?` and `[…]` are
/// special unless preceded by a backslash. A leading dot is matched only by a dot.
///
/// # Errors
///
/// A path could not be read, so the result would be incomplete.
pub(crate) fn expand_pattern(
    directory: &TaskDirectory,
    pattern: &[u8],
    control: &Control,
) -> Result<Vec<BString>, FdError> {
    names(directory, pattern, false, control)
}

/// Returns the names like `expand`. A part `**` matches any number of directories, without those
/// whose names begin with a dot, and without symbolic links.
///
/// # Errors
///
/// A path could not be read, so the result would be incomplete.
pub(crate) fn find_files(
    directory: &TaskDirectory,
    pattern: &[u8],
    control: &Control,
) -> Result<Vec<BString>, FdError> {
    names(directory, pattern, true, control)
}

fn names(
    directory: &TaskDirectory,
    pattern: &[u8],
    finds_below: bool,
    control: &Control,
) -> Result<Vec<BString>, FdError> {
    let mut found = vec![BString::default()];
    let mut are_listed = false;
    let mut parts = pattern.split(|&byte| byte == b'/').peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let mut next = Vec::new();
        for prefix in &found {
            if control.is_cancelled() {
                return Ok(Vec::new());
            }
            are_listed = is_special(part);
            if finds_below && part == b"**" {
                let above = below(directory, prefix, control)?;
                if last {
                    for prefix in &above {
                        matching(directory, prefix, b"*", false, &mut next)?;
                    }
                } else {
                    // A slash follows the last name of each path.
                    next.extend(above);
                }
            } else if are_listed {
                matching(directory, prefix, part, !last, &mut next)?;
            } else {
                let mut path = prefix.clone();
                path.extend(literal(part));
                next.push(path);
            }
        }
        let is_below = finds_below && part == b"**";
        if !last && !is_below {
            for path in &mut next {
                path.push(b'/');
            }
        }
        found = next;
    }
    let mut names = Vec::new();
    for path in found {
        let is_there = are_listed
            || existing(&path, directory.resolve_link(&path).symlink_metadata())?.is_some();
        if is_there {
            names.push(path);
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Returns a directory and all directories below, each as a prefix of names.
fn below(
    directory: &TaskDirectory,
    prefix: &BString,
    control: &Control,
) -> Result<Vec<BString>, FdError> {
    let mut found = vec![prefix.clone()];
    let mut at = 0;
    while let Some(prefix) = found.get(at).cloned().filter(|_| !control.is_cancelled()) {
        let mut inside = Vec::new();
        matching(directory, &prefix, b"*", true, &mut inside)?;
        for mut path in inside {
            let data = existing(&path, directory.resolve_link(&path).symlink_metadata())?;
            if data.is_some_and(|data| data.is_dir()) {
                path.push(b'/');
                found.push(path);
            }
        }
        at += 1;
    }
    Ok(found)
}

/// Returns none for errors of missing or inaccessible files, as shells do. Other errors would hide
/// existing names.
fn existing<T>(path: &[u8], result: io::Result<T>) -> Result<Option<T>, FdError> {
    let error = match result {
        Ok(found) => return Ok(Some(found)),
        Err(error) => error,
    };
    match (error.kind(), error.raw_os_error()) {
        // A name with a zero byte is invalid input. A process may end while `/proc` is read.
        (
            ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidInput,
            _,
        )
        | (_, Some(libc::ELOOP | libc::ESRCH)) => Ok(None),
        // A path with a name of more than 255 bytes is missing. The file of another path may exist.
        (_, Some(libc::ENAMETOOLONG)) if path.split_str("/").any(|name| name.len() > NAME_MAX) => {
            Ok(None)
        }
        (_, Some(libc::ENAMETOOLONG)) => {
            let path = [&path[..path.len().min(SHOWN)], "…".as_bytes()].concat().into();
            Err(FdError::File { path, error: io::Error::other("the path is too long") })
        }
        _ => Err(FdError::File { path: path.into(), error }),
    }
}

fn is_special(part: &[u8]) -> bool {
    let mut bytes = part.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'*' | b'?' | b'[' => return true,
            _ => {}
        }
    }
    false
}

fn literal(part: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let mut bytes = part.iter().copied();
    std::iter::from_fn(move || match bytes.next()? {
        b'\\' => bytes.next().or(Some(b'\\')),
        byte => Some(byte),
    })
}

/// Adds the names in a directory that match one part of a pattern.
fn matching(
    directory: &TaskDirectory,
    prefix: &BString,
    part: &[u8],
    directories_only: bool,
    found: &mut Vec<BString>,
) -> Result<(), FdError> {
    let place = if prefix.is_empty() { b"." } else { prefix.as_slice() };
    let trouble = |error| FdError::File { path: place.into(), error };
    let entries = existing(place, directory.resolve(place).read_dir())?;
    let dots = part.first() == Some(&b'.') || part.starts_with(b"\\.");
    for entry in entries.into_iter().flatten() {
        let name = entry.map_err(trouble)?.file_name().into_vec();
        if name.first() == Some(&b'.') && !dots || !matches(part, &name) {
            continue;
        }
        let mut path = prefix.clone();
        path.extend(&name);
        if directories_only && !is_directory(directory, &path)? {
            continue;
        }
        found.push(path);
    }
    Ok(())
}

fn is_directory(directory: &TaskDirectory, path: &BString) -> Result<bool, FdError> {
    let data = existing(path, directory.resolve(path).metadata())?;
    Ok(data.is_some_and(|data| data.is_dir()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_sorted_and_hidden_ones_only_when_asked_for() -> std::io::Result<()> {
        let place = tempfile::tempdir()?;
        for name in ["b.c", "a.c", ".hidden.c", "d/e.c", "[x]"] {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            std::fs::write(path, "")?;
        }
        let directory = TaskDirectory::at(place.path().as_os_str().as_encoded_bytes());
        let expand = |pattern: &str| {
            expand_pattern(&directory, pattern.as_bytes(), &Control::default()).expect("readable")
        };
        assert_eq!(expand("*.c"), ["a.c", "b.c"]);
        assert_eq!(expand(".*.c"), [".hidden.c"]);
        assert_eq!(expand("*/*.c"), ["d/e.c"]);
        assert_eq!(expand("*/"), ["d/"]);
        assert_eq!(expand("d/../?.c"), ["d/../a.c", "d/../b.c"]);
        assert_eq!(expand("\\[x\\]*"), ["[x]"]);
        for none in ["*.x", "a.c/*", "no/*", &format!("{}/*", "x".repeat(300)), "*/b.c"] {
            assert_eq!(expand(none), [] as [&str; 0], "{none}");
        }
        Ok(())
    }

    #[test]
    fn a_path_that_is_too_long_is_an_error() -> std::io::Result<()> {
        let place = tempfile::tempdir()?;
        let name = "e".repeat(200);
        let mut below = std::fs::File::open(place.path())?;
        for _ in 0..25 {
            nix::sys::stat::mkdirat(&below, name.as_str(), nix::sys::stat::Mode::S_IRWXU)?;
            let flags = nix::fcntl::OFlag::O_DIRECTORY;
            let mode = nix::sys::stat::Mode::empty();
            below = nix::fcntl::openat(&below, name.as_str(), flags, mode)?.into();
        }
        let directory = TaskDirectory::at(place.path().as_os_str().as_encoded_bytes());
        let find = |pattern: &str| find_files(&directory, pattern.as_bytes(), &Control::default());
        let long = format!("{name}/").repeat(25);
        for pattern in ["**", "**/leaf", &format!("{long}*"), &long] {
            let error = find(pattern).expect_err("a long path").to_string();
            assert!(
                error.starts_with("eee") && error.ends_with("…: the path is too long"),
                "{error}"
            );
        }
        assert_eq!(find("*/*").expect("short paths").len(), 1);
        drop(below);
        ftsh_sys::remove_tree(place.path())
    }
}
