//! Runs the scripts of `tests/scripts`, a folder a test: a sentence of the language reference each.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::expectations;

/// Scripts of a folder that run at once: most of their time is spent waiting.
const WORKERS: usize = 4;

/// The scripts below a folder, sorted.
pub fn scripts(folder: &Path) -> Vec<PathBuf> {
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

/// Where the scripts are.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

fn folder(name: &str) {
    let scripts = scripts(&root().join(name));
    assert!(!scripts.is_empty(), "no scripts in {name}");
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(path) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let troubles = expectations::run(path);
                    if !troubles.is_empty() {
                        failures.lock().expect("no worker panics").push((path, troubles));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no worker panics");
    failures.sort();
    let mut report = String::new();
    for (path, troubles) in &failures {
        let shown = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(path);
        let _ = write!(report, "\n{}\n{troubles}", shown.display());
    }
    assert!(failures.is_empty(), "{} of {} failed\n{report}", failures.len(), scripts.len());
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
    attempts backoff failures cancel hints cli
}
