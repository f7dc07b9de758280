//! Contents and attributes of a whole tree, for comparisons.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Time before which files of a test were last modified, unless a program touched them.
pub(super) const OLD: i64 = 1_500_000_000;

/// Facts about one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) kind: char,
    pub(super) mode: u32,
    owner: (u32, u32),
    /// Content of a file, or target of a link.
    pub(super) content: Vec<u8>,
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// First of the names of the same file, with their number.
    pub(super) links: (PathBuf, u64),
    /// Time of modification of an entry that nothing touched.
    time: Option<(i64, i64)>,
}

pub(super) type Snapshot = BTreeMap<PathBuf, Facts>;

/// Reads everything below a directory, the directory included.
pub(super) fn snapshot(root: &Path) -> Snapshot {
    let mut snapshot = Snapshot::new();
    let mut first = BTreeMap::new();
    visit(root, Path::new(""), &mut snapshot, &mut first);
    snapshot
}

fn visit(root: &Path, path: &Path, into: &mut Snapshot, first: &mut BTreeMap<u64, PathBuf>) {
    let full = root.join(path);
    let Ok(found) = full.symlink_metadata() else { return };
    let first_name = first.entry(found.ino()).or_insert_with(|| path.into()).clone();
    into.insert(path.into(), facts(&full, &found, first_name));
    if !found.is_dir() {
        return;
    }
    let mut names: Vec<_> =
        std::fs::read_dir(&full).into_iter().flatten().flatten().map(|it| it.file_name()).collect();
    names.sort();
    for name in names.iter().filter(|name| !name.as_bytes().starts_with(b".ftsh-")) {
        visit(root, &path.join(name), into, first);
    }
}

fn facts(full: &Path, found: &Metadata, first_name: PathBuf) -> Facts {
    let kind = found.file_type();
    let (kind, content) = if kind.is_dir() {
        ('d', Vec::new())
    } else if kind.is_symlink() {
        let target = std::fs::read_link(full).expect("a link");
        ('l', target.as_os_str().as_bytes().to_vec())
    } else {
        ('f', std::fs::read(full).unwrap_or_else(|error| error.to_string().into_bytes()))
    };
    let attributes = ftsh_sys::attributes(full).expect("attributes").into_iter().map(|name| {
        let value = ftsh_sys::attribute(full, &name).unwrap_or_default();
        (name.into_bytes(), value)
    });
    let mut attributes: Vec<_> = attributes.collect();
    attributes.sort();
    Facts {
        kind,
        mode: found.mode(),
        owner: (found.uid(), found.gid()),
        content,
        attributes,
        links: (first_name, if found.is_dir() { 0 } else { found.nlink() }),
        time: (found.mtime() < OLD).then(|| (found.mtime(), found.mtime_nsec())),
    }
}

/// Describes the differences between two trees.
pub(super) fn differences(is: &Snapshot, should_be: &Snapshot) -> Vec<String> {
    let mut paths: Vec<&PathBuf> = is.keys().chain(should_be.keys()).collect();
    paths.sort();
    paths.dedup();
    let different = paths.into_iter().filter(|path| is.get(*path) != should_be.get(*path));
    different
        .map(|path| {
            format!(
                "{path:?}\n  is        {:?}\n  should be {:?}",
                is.get(path),
                should_be.get(path)
            )
        })
        .collect()
}

/// Fails with the differences between two trees.
pub(super) fn assert_same(is: &Snapshot, should_be: &Snapshot, context: &str) {
    let found = differences(is, should_be);
    assert!(found.is_empty(), "{context}\n{}", found.join("\n"));
}
