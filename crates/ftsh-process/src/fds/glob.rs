//! Expansion of patterns to file names.

use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;

use bstr::BString;

use super::super::os::workers::Control;
use super::error::FdError;
use super::path::TaskDirectory;
use ftsh_machine::pattern::matches;

/// Returns the sorted names of existing files that match. In the pattern, `*`, `?` and `[…]` are
/// special unless preceded by a backslash. A leading dot is matched only by a dot.
///
/// # Errors
///
/// A path could not be read, so the result would be incomplete.
pub(super) fn expand(
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
pub(super) fn find(
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
        let is_there = are_listed || {
            let data = directory.resolve_link(&path).symlink_metadata();
            existing(data).map_err(|error| FdError::File { path: path.clone(), error })?.is_some()
        };
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
            let data = existing(directory.resolve_link(&path).symlink_metadata());
            let data = data.map_err(|error| FdError::File { path: path.clone(), error })?;
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
fn existing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) => match (error.kind(), error.raw_os_error()) {
            // A name with a zero byte is invalid input. A process may end while `/proc` is read.
            (
                ErrorKind::NotFound
                | ErrorKind::PermissionDenied
                | ErrorKind::NotADirectory
                | ErrorKind::InvalidInput,
                _,
            )
            | (_, Some(libc::ELOOP | libc::ENAMETOOLONG | libc::ESRCH)) => Ok(None),
            _ => Err(error),
        },
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
    let entries = existing(directory.resolve(place).read_dir()).map_err(trouble)?;
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
    let data = existing(directory.resolve(path).metadata());
    let data = data.map_err(|error| FdError::File { path: path.clone(), error })?;
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
            expand(&directory, pattern.as_bytes(), &Control::default()).expect("readable")
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
}
