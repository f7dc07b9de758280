//! Differences between the ends of two runs, in words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use crate::tree::{EntryContent, FinalTree, TreeEntry, shown};

/// Length of a line in a difference, at most.
const MAX_LINE: usize = 40;

/// Path of the entry that stands for standard output.
pub(crate) const OUTPUT: &str = "";

/// Difference of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryDifference {
    pub path: PathBuf,
    /// Description for people.
    pub text: String,
}

/// Returns the differences of a tree from the expected one: those of files, of directories, and of
/// the output.
///
/// With branches, the lines of a text may stand in any order.
pub(crate) fn differences(
    expected: &FinalTree,
    found: &FinalTree,
    has_branches: bool,
    directory: &Path,
) -> Vec<EntryDifference> {
    let missing = expected.0.iter().map(|(path, entry)| (path, Some(entry), found.0.get(path)));
    let new = found.0.iter().filter(|(path, _)| !expected.0.contains_key(*path));
    let new = new.map(|(path, entry)| (path, None, Some(entry)));
    let is_different =
        |(_, expected, found): &(&PathBuf, Option<&TreeEntry>, Option<&TreeEntry>)| {
            expected != found && !(has_branches && has_same_lines(*expected, *found))
        };
    let mut different: Vec<_> = missing.chain(new).filter(is_different).collect();
    let is_directory = |entry: Option<&TreeEntry>| {
        entry.is_some_and(|entry| entry.content == EntryContent::Directory)
    };
    different.sort_by_key(|(path, expected, found)| {
        let is_output = path.as_os_str() == OUTPUT;
        (is_output, is_directory(*expected) || is_directory(*found), *path)
    });
    let described = different.into_iter().map(|(path, expected, found)| {
        let name = match path.as_os_str().to_str() {
            Some(OUTPUT) => "the output".to_owned(),
            _ => format!("`{}`", shown(path, directory)),
        };
        EntryDifference { path: path.clone(), text: described(&name, expected, found) }
    });
    described.collect()
}

/// True if two texts have the same lines, in any order.
fn has_same_lines(one: Option<&TreeEntry>, other: Option<&TreeEntry>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let (EntryContent::Text(one), EntryContent::Text(other)) = (&one.content, &other.content)
    else {
        return false;
    };
    let (mut one, mut other): (Vec<_>, Vec<_>) = (one.lines().collect(), other.lines().collect());
    one.sort_unstable();
    other.sort_unstable();
    one == other
}

/// Describes the difference of an entry.
fn described(name: &str, expected: Option<&TreeEntry>, found: Option<&TreeEntry>) -> String {
    let (Some(expected), Some(found)) = (expected, found) else {
        return format!("{name} is {}", if found.is_some() { "left behind" } else { "missing" });
    };
    match (&expected.content, &found.content) {
        (EntryContent::Text(expected), EntryContent::Text(text)) if expected != text => {
            format!("{name} {}", difference_of_texts(expected, text))
        }
        (one, other) if one == other => {
            format!("{name} has the mode {:o} instead of {:o}", found.mode, expected.mode)
        }
        _ => format!("{name} differs"),
    }
}

/// Describes the difference between two texts.
fn difference_of_texts(expected: &[u8], found: &[u8]) -> String {
    let counts = |text: &[u8]| {
        let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for line in text.lines() {
            *counts.entry(line.to_vec()).or_default() += 1;
        }
        counts
    };
    let (before, after) = (counts(expected), counts(found));
    let count = |counts: &BTreeMap<_, _>, line: &[u8]| counts.get(line).copied().unwrap_or(0);
    let lines: Vec<&[u8]> = found.lines().collect();
    let repeated = lines.iter().find(|line| {
        let expected = count(&before, line);
        expected > 0 && count(&after, line) > expected
    });
    if let Some(line) = repeated {
        let line_text = short(line);
        return match (count(&before, line), count(&after, line)) {
            (1, 2) => format!("has the line `{line_text}` twice"),
            (expected, found) => {
                format!("has the line `{line_text}` {found} times instead of {expected}")
            }
        };
    }
    let missing = expected.lines().find(|line| count(&after, line) < count(&before, line));
    let new = lines.iter().find(|line| count(&before, line) == 0);
    match (missing, new) {
        (Some(missing), Some(new)) => {
            format!("has `{}` instead of `{}`", short(new), short(missing))
        }
        (Some(missing), None) => format!("lacks the line `{}`", short(missing)),
        (None, Some(new)) => format!("has the line `{}` besides", short(new)),
        (None, None) => "has its lines in another order".into(),
    }
}

fn short(line: &[u8]) -> String {
    let text = line.to_str_lossy();
    let mut short: String = text.chars().take(MAX_LINE).map(visible).collect();
    if text.chars().count() > MAX_LINE {
        short.push('…');
    }
    short
}

/// Returns a character that cannot control a terminal.
fn visible(character: char) -> char {
    if character.is_control() { '?' } else { character }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> TreeEntry {
        TreeEntry { mode: 0o644, content: EntryContent::Text(text.into()) }
    }

    #[test]
    fn differences_are_described_in_words() {
        let directory = TreeEntry { mode: 0o755, content: EntryContent::Directory };
        let secret = TreeEntry { mode: 0o600, ..text("a\n") };
        for (expected, found, words) in [
            (Some(text("a\n")), Some(text("a\na\n")), "`f` has the line `a` twice"),
            (
                Some(text("a\n")),
                Some(text("a\na\na\n")),
                "`f` has the line `a` 3 times instead of 1",
            ),
            (Some(text("2\n")), Some(text("3\n")), "`f` has `3` instead of `2`"),
            (Some(text("a\nb\n")), Some(text("a\n")), "`f` lacks the line `b`"),
            (Some(text("a\n")), Some(text("a\nb\n")), "`f` has the line `b` besides"),
            (Some(text("a\nb\n")), Some(text("b\na\n")), "`f` has its lines in another order"),
            (Some(text("a\n")), None, "`f` is missing"),
            (None, Some(text("a\n")), "`f` is left behind"),
            (None, Some(directory), "`f` is left behind"),
            (Some(text("a\n")), Some(secret), "`f` has the mode 600 instead of 644"),
        ] {
            let tree = |entry: Option<TreeEntry>| {
                FinalTree(entry.into_iter().map(|entry| (PathBuf::from("/d/f"), entry)).collect())
            };
            let (expected, found) = (tree(expected), tree(found));
            let differences = |tree| differences(tree, &found, false, Path::new("/d"));
            assert_eq!(differences(&expected)[0].text, words);
            assert_eq!(differences(&found), []);
        }
    }
}
