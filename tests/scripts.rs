//! Runs the scripts of `tests/scripts`, a folder per test. Each script covers a sentence of the
//! language reference.

use std::path::{Path, PathBuf};

use crate::compatibility;
use crate::support::expectations;
use crate::support::side_by_side::none;

/// Returns the scripts below a folder, sorted.
pub(crate) fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of scripts") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if path.extension().is_some_and(|extension| extension == "ftsh") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Folder of the scripts.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

fn folder(name: &str) {
    none(scripts(&root().join(name)), |path| {
        let as_before = |finished: &_| compatibility::difference(&path, finished);
        let troubles = expectations::run_and(&path, as_before);
        let shown = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(&path);
        (!troubles.is_empty()).then(|| format!("{}\n{troubles}", shown.display()))
    });
}

macro_rules! folders {
    ($($name:ident)*) => {
        $(#[test] fn $name() { folder(stringify!($name)); })*

        #[test]
        fn every_folder_is_run() {
            let mut known = vec![$(stringify!($name)),*];
            known.sort_unstable();
            let mut found: Vec<_> = std::fs::read_dir(root())
                .expect("the folder of scripts")
                .map(|entry| entry.expect("a readable folder").path())
                .filter(|path| path.is_dir())
                .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
                .collect();
            found.sort();
            assert_eq!(known, found);
        }
    };
}

folders! {
    words variables commands redirection pipelines groups loops functions expressions
    attempts atomic backoff failures cancel hints cli
}
