//! Parts of the end of a run that vary by themselves, such as dates and temporary names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use crate::tree::{EntryContent, FinalTree, TreeEntry, shown};

/// Number of patterns of names, at most.
const MAX_PATTERNS: usize = 64;

/// Parts that differ between two undisturbed runs.
#[derive(Debug, Default)]
pub(crate) struct Variation {
    names: Vec<NamePattern>,
    /// Lines that vary, by path.
    lines: BTreeMap<PathBuf, Vec<Affixes>>,
    /// Entries that are not compared.
    excluded: BTreeSet<PathBuf>,
}

/// Names in a directory that differ between their affixes.
#[derive(Debug)]
struct NamePattern {
    parent: PathBuf,
    affixes: Affixes,
}

/// Beginning and end that two texts share.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Affixes {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
}

impl Affixes {
    fn of(one: &[u8], other: &[u8]) -> Self {
        let common = |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| {
            pairs.take_while(|(one, other)| one == other).count()
        };
        let start = common(&mut one.iter().zip(other));
        let (one_rest, other_rest) = (&one[start..], &other[start..]);
        let end = common(&mut one_rest.iter().rev().zip(other_rest.iter().rev()));
        Self { prefix: one[..start].to_vec(), suffix: one[one.len() - end..].to_vec() }
    }

    /// Returns affixes without the word that borders on the varying part, which two texts may share
    /// by chance.
    fn without_words(mut self) -> Self {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
        while self.prefix.last().is_some_and(is_word) {
            self.prefix.pop();
        }
        let word = self.suffix.iter().take_while(|byte| is_word(byte)).count();
        self.suffix.drain(..word);
        self
    }

    fn is_empty(&self) -> bool {
        self.prefix.is_empty() && self.suffix.is_empty()
    }

    fn apply_to(&self, text: &[u8]) -> bool {
        text.len() >= self.prefix.len() + self.suffix.len()
            && text.starts_with(&self.prefix)
            && text.ends_with(&self.suffix)
    }

    /// True if every text with the affixes of `other` has the own affixes as well.
    fn covers(&self, other: &Self) -> bool {
        other.prefix.starts_with(&self.prefix) && other.suffix.ends_with(&self.suffix)
    }

    fn text(&self) -> Vec<u8> {
        [&self.prefix, b"*".as_slice(), &self.suffix].concat()
    }
}

impl Variation {
    /// Adds the parts that differ between two undisturbed runs.
    pub(crate) fn extend(&mut self, one: &FinalTree, other: &FinalTree) {
        while self.names.len() < MAX_PATTERNS && self.add_pattern(one, other) {}
        let (first, second) = (self.masked(one), self.masked(other));
        for (path, entry) in &first.0 {
            match second.0.get(path) {
                Some(same) if same == entry => {}
                Some(TreeEntry { content: EntryContent::Text(text), mode })
                    if *mode == entry.mode =>
                {
                    self.add_lines(path, &entry.content, text);
                }
                _ => _ = self.excluded.insert(path.clone()),
            }
        }
        let new = second.0.into_keys().filter(|path| !first.0.contains_key(path));
        self.excluded.extend(new);
    }

    /// Adds a pattern for a name that only one of the runs has. Returns false if there is none.
    fn add_pattern(&mut self, one: &FinalTree, other: &FinalTree) -> bool {
        let (one, other) = (self.with_names(one), self.with_names(other));
        let only = |here: &FinalTree, there: &FinalTree| {
            let mut paths: Vec<_> =
                here.0.keys().filter(|path| !there.0.contains_key(*path)).cloned().collect();
            paths.sort_by_key(|path| path.components().count());
            paths
        };
        let (one_only, other_only) = (only(&one, &other), only(&other, &one));
        for path in &one_only {
            let same_place = other_only.iter().find(|it| it.parent() == path.parent());
            if let (Some(twin), Some(parent)) = (same_place, path.parent()) {
                let affixes = Affixes::of(name(path), name(twin));
                let shorter = affixes.clone().without_words();
                let affixes = if shorter.is_empty() { affixes } else { shorter };
                self.names.retain(|it| it.parent != parent || !affixes.covers(&it.affixes));
                self.names.push(NamePattern { parent: parent.into(), affixes });
                return true;
            }
        }
        false
    }

    /// Adds the lines that differ between two texts. Texts of different length are excluded.
    fn add_lines(&mut self, path: &Path, one: &EntryContent, other: &[u8]) {
        let EntryContent::Text(one) = one else {
            self.excluded.insert(path.into());
            return;
        };
        let (one, other): (Vec<_>, Vec<_>) = (one.lines().collect(), other.lines().collect());
        if one.len() != other.len() {
            self.excluded.insert(path.into());
            return;
        }
        let pairs = one.iter().zip(&other).filter(|(one, other)| one != other);
        let affixes = self.lines.entry(path.into()).or_default();
        for (one, other) in pairs {
            let new = Affixes::of(one, other).without_words();
            affixes.retain(|it| !new.covers(it));
            affixes.push(new);
        }
    }

    /// Returns a tree without what varies.
    pub(crate) fn masked(&self, tree: &FinalTree) -> FinalTree {
        let mut masked = self.with_names(tree);
        masked.0.retain(|path, _| !self.excluded.contains(path));
        for (path, affixes) in &self.lines {
            if let Some(TreeEntry { content: EntryContent::Text(text), .. }) =
                masked.0.get_mut(path)
            {
                let lines = text.lines().map(|line| {
                    let found = affixes.iter().find(|it| it.apply_to(line));
                    found.map_or_else(|| line.to_vec(), Affixes::text)
                });
                *text = lines.flat_map(|line| [line, b"\n".to_vec()].concat()).collect();
            }
        }
        masked
    }

    /// Returns a path without the part of its names that varies.
    pub(crate) fn masked_path(&self, path: &Path) -> PathBuf {
        let mut masked = PathBuf::new();
        for component in path.components() {
            let found = self.names.iter().find(|pattern| {
                pattern.parent == masked
                    && pattern.affixes.apply_to(component.as_os_str().as_bytes())
            });
            match found {
                Some(pattern) => masked.push(OsStr::from_bytes(&pattern.affixes.text())),
                None => masked.push(component),
            }
        }
        masked
    }

    /// Returns a tree with patterns in the place of names that vary. Further entries with the same
    /// pattern have a number.
    fn with_names(&self, tree: &FinalTree) -> FinalTree {
        let mut named = BTreeMap::new();
        for (path, entry) in &tree.0 {
            let masked = self.masked_path(path);
            let mut unique = masked.clone();
            let mut number = 1;
            while named.contains_key(&unique) {
                number += 1;
                let mut text = masked.clone().into_os_string().into_vec();
                text.extend_from_slice(format!(" ({number})").as_bytes());
                unique = PathBuf::from(OsStr::from_bytes(&text));
            }
            named.insert(unique, entry.clone());
        }
        FinalTree(named)
    }

    /// Returns the names of the parts for people, relative to a directory.
    pub(crate) fn left_out(&self, directory: &Path) -> Vec<String> {
        let patterns = self
            .names
            .iter()
            .map(|pattern| pattern.parent.join(OsStr::from_bytes(&pattern.affixes.text())));
        let lines = self.lines.keys().cloned();
        let all: BTreeSet<PathBuf> =
            patterns.chain(lines).chain(self.excluded.iter().cloned()).collect();
        all.iter().map(|path| shown(path, directory)).collect()
    }
}

/// Returns the last name of a path.
fn name(path: &Path) -> &[u8] {
    path.file_name().unwrap_or_default().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, &str)]) -> FinalTree {
        let entry = |text: &str| match text {
            "" => TreeEntry { mode: 0o755, content: EntryContent::Directory },
            text => TreeEntry { mode: 0o644, content: EntryContent::Text(text.into()) },
        };
        FinalTree(entries.iter().map(|(path, text)| (PathBuf::from(path), entry(text))).collect())
    }

    #[test]
    fn dates_and_temporary_names_are_masked() {
        let one = tree(&[
            ("/d/log", "begun 10:51 on h\nend\n"),
            ("/d/t.aX1", ""),
            ("/d/t.aX1/part", "x\n"),
        ]);
        let other = tree(&[
            ("/d/log", "begun 10:57 on h\nend\n"),
            ("/d/t.kq9", ""),
            ("/d/t.kq9/part", "x\n"),
        ]);
        let mut variation = Variation::default();
        variation.extend(&one, &other);
        assert_eq!(variation.masked(&one), variation.masked(&other));
        assert!(!variation.masked(&one).0.is_empty());
        let third = tree(&[
            ("/d/log", "begun 10:09 on h\nend\n"),
            ("/d/t.zzz", ""),
            ("/d/t.zzz/part", "x\n"),
        ]);
        assert_eq!(variation.masked(&one), variation.masked(&third));
        let twice = tree(&[
            ("/d/log", "begun 10:08 on h\nbegun 10:09 on h\nend\n"),
            ("/d/t.abc", ""),
            ("/d/t.abc/part", "x\n"),
            ("/d/t.def", ""),
            ("/d/t.def/part", "x\n"),
        ]);
        let masked = variation.masked(&twice);
        assert_ne!(variation.masked(&one), masked);
        assert_eq!(masked.0.len(), 5, "{masked:?}");
    }

    #[test]
    fn a_later_date_replaces_the_earlier_pattern() {
        let at = |time: &str, name: &str| {
            let log = format!("begun {time} on h\n");
            tree(&[("/d/log", log.as_str()), (&format!("/d/t.{name}"), "x\n")])
        };
        let one = at("10:09:51", "0909-1");
        let mut variation = Variation::default();
        variation.extend(&one, &at("10:09:57", "0909-2"));
        variation.extend(&one, &at("10:10:03", "0910-1"));
        for (time, name) in [("10:09:52", "0909-7"), ("10:10:04", "0910-3")] {
            assert_eq!(variation.masked(&at(time, name)), variation.masked(&one), "{time}");
        }
    }

    #[test]
    fn texts_of_different_length_are_left_out() {
        let (one, other) = (tree(&[("/d/a", "1\n"), ("/d/b", "")]), tree(&[("/d/a", "1\n2\n")]));
        let mut variation = Variation::default();
        variation.extend(&one, &other);
        assert_eq!(variation.left_out(Path::new("/d")), ["a", "b"]);
        assert!(variation.masked(&one).0.is_empty());
    }
}
