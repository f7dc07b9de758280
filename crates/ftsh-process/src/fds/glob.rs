//! Expansion of patterns to file names.

use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;

use bstr::{BString, decode_utf8};

use super::super::os::workers::Control;
use super::error::FdError;
use super::path::resolve;
use ftsh_machine::effect::Directory;

/// Returns the sorted names of existing files that match. In the pattern, `*`, `?` and `[…]` are
/// special unless preceded by a backslash. A leading dot is matched only by a dot.
///
/// # Errors
///
/// A path could not be read, so the result would be incomplete.
pub(super) fn expand(
    directory: &Directory,
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
    directory: &Directory,
    pattern: &[u8],
    control: &Control,
) -> Result<Vec<BString>, FdError> {
    names(directory, pattern, true, control)
}

fn names(
    directory: &Directory,
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
            let data = resolve(directory, &path).symlink_metadata();
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
    directory: &Directory,
    prefix: &BString,
    control: &Control,
) -> Result<Vec<BString>, FdError> {
    let mut found = vec![prefix.clone()];
    let mut at = 0;
    while let Some(prefix) = found.get(at).cloned().filter(|_| !control.is_cancelled()) {
        let mut inside = Vec::new();
        matching(directory, &prefix, b"*", true, &mut inside)?;
        for mut path in inside {
            let data = existing(resolve(directory, &path).symlink_metadata());
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
    directory: &Directory,
    prefix: &BString,
    part: &[u8],
    directories_only: bool,
    found: &mut Vec<BString>,
) -> Result<(), FdError> {
    let place = if prefix.is_empty() { b"." } else { prefix.as_slice() };
    let trouble = |error| FdError::File { path: place.into(), error };
    let entries = existing(resolve(directory, place).read_dir()).map_err(trouble)?;
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

fn is_directory(directory: &Directory, path: &BString) -> Result<bool, FdError> {
    let data = existing(resolve(directory, path).metadata());
    let data = data.map_err(|error| FdError::File { path: path.clone(), error })?;
    Ok(data.is_some_and(|data| data.is_dir()))
}

/// True if a name matches a pattern without slashes. Takes time proportional to the product of the
/// lengths at most: only the last star is ever retried.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut rest, mut text) = (pattern, name);
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some(after) = rest.strip_prefix(b"*") {
            star = Some((after, text));
            rest = after;
            continue;
        }
        if text.is_empty() && rest.is_empty() {
            return true;
        }
        if !text.is_empty()
            && let Some((after, size)) = one(rest, text)
        {
            (rest, text) = (after, &text[size..]);
            continue;
        }
        // The last star matches one more character.
        match star {
            Some((after, start)) if !start.is_empty() => {
                let start = &start[decode_utf8(start).1..];
                star = Some((after, start));
                (rest, text) = (after, start);
            }
            _ => return false,
        }
    }
}

/// Matches one character. Returns the rest of the pattern and the size of the character.
fn one<'a>(pattern: &'a [u8], text: &[u8]) -> Option<(&'a [u8], usize)> {
    let size = decode_utf8(text).1;
    match pattern.first()? {
        b'?' => Some((&pattern[1..], size)),
        b'[' => match bracket(&pattern[1..], &text[..size]) {
            Some((true, after)) => Some((after, size)),
            Some((false, _)) => None,
            None => (text[0] == b'[').then_some((&pattern[1..], 1)), // no closing bracket
        },
        b'\\' if pattern.len() > 1 => (pattern[1] == text[0]).then_some((&pattern[2..], 1)),
        byte => (*byte == text[0]).then_some((&pattern[1..], 1)),
    }
}

/// Matches a character against `…]`. Returns the result and the rest of the pattern; none without a
/// closing bracket.
fn bracket<'a>(pattern: &'a [u8], character: &[u8]) -> Option<(bool, &'a [u8])> {
    let negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let mut rest = &pattern[usize::from(negated)..];
    let wanted = value(character);
    let mut hit = false;
    let mut first = true;
    loop {
        if rest.first() == Some(&b']') && !first {
            return Some((hit != negated, &rest[1..]));
        }
        first = false;
        if let Some((class, after)) = class(rest) {
            hit |= in_class(class, wanted);
            rest = after;
            continue;
        }
        let (low, after) = element(rest)?;
        match after {
            [b'-', next, ..] if *next != b']' => {
                let (high, after) = element(&after[1..])?;
                hit |= (low..=high).contains(&wanted);
                rest = after;
            }
            _ => {
                hit |= low == wanted;
                rest = after;
            }
        }
    }
}

/// Returns the position of a character in the order. Bytes outside UTF-8 follow all characters.
fn value(character: &[u8]) -> u32 {
    match decode_utf8(character).0 {
        Some(character) => u32::from(character),
        None => 0x11_0000 + character.first().copied().map_or(0, u32::from),
    }
}

fn element(pattern: &[u8]) -> Option<(u32, &[u8])> {
    let pattern = match pattern {
        [b'\\', rest @ ..] if !rest.is_empty() => rest,
        _ => pattern,
    };
    if pattern.is_empty() {
        return None;
    }
    let size = decode_utf8(pattern).1;
    Some((value(&pattern[..size]), &pattern[size..]))
}

fn class(pattern: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = pattern.strip_prefix(b"[:")?;
    let end = inner.windows(2).position(|pair| pair == b":]")?;
    Some((&inner[..end], &inner[end + 2..]))
}

fn in_class(name: &[u8], value: u32) -> bool {
    let Some(character) = char::from_u32(value) else { return false };
    match name {
        b"alpha" => character.is_alphabetic(),
        b"digit" => character.is_ascii_digit(),
        b"alnum" => character.is_alphanumeric(),
        b"upper" => character.is_uppercase(),
        b"lower" => character.is_lowercase(),
        b"space" => character.is_whitespace(),
        b"blank" => matches!(character, ' ' | '\t'),
        b"punct" => character.is_ascii_punctuation(),
        b"xdigit" => character.is_ascii_hexdigit(),
        b"cntrl" => character.is_control(),
        b"print" => !character.is_control(),
        b"graph" => !character.is_control() && !character.is_whitespace(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let yes = [
            ("*", ""),
            ("*", "a"),
            ("a*c", "abbc"),
            ("a*c*", "ac"),
            ("?", "é"),
            ("[a-c]", "b"),
            ("[!a-c]", "d"),
            ("[]]", "]"),
            ("[a-]", "-"),
            ("\\*", "*"),
            ("[é]", "é"),
            ("[", "["),
            ("[[:digit:]]x", "7x"),
            ("*.tar.*", "a.b.tar.tar.gz"),
            ("[\\]]", "]"),
            ("[\\!a]", "!"),
        ];
        for (pattern, name) in yes {
            assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        let no = [
            ("", "a"),
            ("?", ""),
            ("a*c", "abbd"),
            ("[a-c]", "d"),
            ("\\*", "a"),
            ("[!a]", "a"),
            ("[[:digit:]]", "x"),
            ("??", "é"),
        ];
        for (pattern, name) in no {
            assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        assert!(matches(b"?", b"\xff"));
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "a*".repeat(1000) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(2000).as_bytes()));
    }

    #[test]
    fn names_come_sorted_and_hidden_ones_only_when_asked_for() -> std::io::Result<()> {
        let place = tempfile::tempdir()?;
        for name in ["b.c", "a.c", ".hidden.c", "d/e.c", "[x]"] {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            std::fs::write(path, "")?;
        }
        let directory: Directory =
            Some(std::sync::Arc::new(place.path().as_os_str().as_encoded_bytes().into()));
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
