//! Random programs in attempts that fail and in attempts that succeed.

use std::path::{Path, PathBuf};

use super::program::{has_links, perform, plant};
use super::snapshot::{Snapshot, assert_same, differences, snapshot};
use super::{assert_clean, begin, child, is_nobody, is_root, rounds, scratch};
use crate::{Attempt, CommitFailure};

/// Number of operations of a program.
pub(super) const LENGTH: usize = 25;

#[test]
fn random_programs_as_root() {
    if is_root() {
        try_programs();
    }
}

#[test]
fn random_programs_as_nobody() {
    if is_nobody("programs::random_programs_as_nobody") {
        try_programs();
    }
}

fn try_programs() {
    let (mut refused, mut changed) = (0, 0);
    let first = std::env::var("FTSH_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = first.unwrap_or(0_u64);
    let rounds = rounds(20);
    for seed in first..first + rounds {
        let Some(found) = try_program(seed) else { return };
        refused += u64::from(found == Outcome::Refused);
        changed += u64::from(found == Outcome::Changed);
    }
    eprintln!("{rounds} programs: {changed} changed the tree, {refused} refused for hard links");
    assert!(rounds < 20 || changed > rounds / 3, "most programs change nothing");
    assert!(refused <= rounds / 2, "programs without links are refused");
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Unchanged,
    Changed,
    Refused,
}

/// Runs one program in a failing attempt, in a succeeding one, and without any. Returns none where
/// attempts are forbidden.
fn try_program(seed: u64) -> Option<Outcome> {
    let context = format!("seed {seed}");
    let scratch = scratch();
    let [plain, tried] = ["plain", "tried"].map(|name| scratch.path().join(name));
    plant(&plain, seed);
    plant(&tried, seed);
    let before = snapshot(&tried);
    assert_same(&before, &snapshot(&plain), &context);
    let times = inodes(&tried);
    perform(&plain, seed, LENGTH);

    let failing = begin(&[&tried])?;
    perform_within(&failing, &tried, seed);
    failing.discard().expect("nothing of it");
    assert_same(&snapshot(&tried), &before, &format!("{context}, discarded"));
    assert_eq!(inodes(&tried), times, "{context}");

    let succeeding = begin(&[&tried])?;
    perform_within(&succeeding, &tried, seed);
    let result = succeeding.commit();
    assert_clean(&tried);
    match result {
        Ok(_) => {
            let (is, should_be) = (snapshot(&tried), snapshot(&plain));
            assert_same(&is, &should_be, &format!("{context}, committed"));
            let is_changed = !differences(&is, &before).is_empty();
            Some(if is_changed { Outcome::Changed } else { Outcome::Unchanged })
        }
        Err(CommitFailure::Linked { .. })
            if has_links(seed) && !rustix::process::geteuid().is_root() =>
        {
            assert_same(&snapshot(&tried), &before, &format!("{context}, refused"));
            assert_eq!(inodes(&tried), times, "{context}");
            Some(Outcome::Refused)
        }
        Err(error) => panic!("{context}: {error}"),
    }
}

/// Returns inode and time of every entry of a tree.
fn inodes(root: &Path) -> Vec<(PathBuf, u64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let paths: Snapshot = snapshot(root);
    let found = paths.into_keys().map(|path| {
        let found = root.join(&path).symlink_metadata().expect("an entry");
        (path, found.ino(), found.mtime_nsec() ^ found.mtime())
    });
    found.collect()
}

/// Runs a program in a process within an attempt.
pub(super) fn perform_within(attempt: &Attempt, root: &Path, seed: u64) {
    let root = root.to_str().expect("a name").to_owned();
    let variables = [("FTSH_TEST_ROOT", root), ("FTSH_TEST_PROGRAM", seed.to_string())];
    assert_eq!(child(Some(attempt), "programs::performed", &variables), 0);
}

/// Body of the process within an attempt, and no test otherwise.
#[test]
fn performed() {
    let variable = |name| std::env::var(name).ok();
    if let (Some(root), Some(seed)) = (variable("FTSH_TEST_ROOT"), variable("FTSH_TEST_PROGRAM")) {
        perform(Path::new(&root), seed.parse().expect("a number"), LENGTH);
    }
}
