//! Names of the files of branches, by `takes` and `gives`.

use std::collections::BTreeSet;

/// Returns a name in its shortest form: without `.`, and without a slash at its end.
///
/// # Errors
///
/// Returns the reason if the name does not lead to a file in the directory of the branch.
pub fn relative(name: &[u8]) -> Result<Vec<u8>, String> {
    let parts = name.split(|byte| *byte == b'/');
    let inside: Vec<&[u8]> = parts.filter(|part| !part.is_empty() && *part != b".").collect();
    let shown = if name.is_empty() { "\"\"".into() } else { String::from_utf8_lossy(name) };
    if name.starts_with(b"/") {
        Err(absolute(&shown))
    } else if inside.contains(&&b".."[..]) {
        Err(format!("`{shown}` leads out of the directory of the branch"))
    } else if inside.is_empty() {
        Err(format!("`{shown}` is not a file in the directory of the branch"))
    } else {
        Ok(inside.join(&b'/'))
    }
}

pub(crate) fn absolute(name: &str) -> String {
    format!("`{name}` is absolute, but files of a branch are relative to its directory")
}

/// Returns true if a name, a directory around it or a file below it is among the names.
pub fn is_in(names: &BTreeSet<Vec<u8>>, name: &[u8]) -> bool {
    let mut around = (0..=name.len()).filter(|at| name.get(*at).is_none_or(|byte| *byte == b'/'));
    let below = [name, b"/"].concat();
    around.any(|end| names.contains(&name[..end]))
        || names.range(below.clone()..).next().is_some_and(|first| first.starts_with(&below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_relative_and_short() {
        for (name, short) in [("a", "a"), ("./a//b/", "a/b"), ("a/./b", "a/b"), ("...", "...")] {
            assert_eq!(relative(name.as_bytes()), Ok(short.into()));
        }
        for name in ["", ".", "./", "/", "/a", "..", "a/../b", "a/.."] {
            assert!(relative(name.as_bytes()).is_err(), "{name}");
        }
    }

    #[test]
    fn a_directory_holds_its_files() {
        let names = BTreeSet::from([b"a/b".to_vec(), b"a.c".to_vec(), b"d".to_vec()]);
        for (name, is) in
            [("a/b", true), ("a", true), ("a/b/c", true), ("d/e", true), ("a.", false)]
        {
            assert_eq!(is_in(&names, name.as_bytes()), is, "{name}");
        }
        assert!(!is_in(&names, b"a/c") && !is_in(&names, b"a-") && !is_in(&names, b"dd"));
    }
}
