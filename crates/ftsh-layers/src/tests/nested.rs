//! Attempts within attempts.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::program::{MOVES, has_links, plant};
use super::snapshot::{Snapshot, assert_same, snapshot};
use super::{assert_clean, begin, child, is_nobody, is_root, mark, rounds, scratch, sh};
use crate::{Attempt, CommitFailure, CoverError, Directories};

/// Distance of the seeds of the outer and the inner program.
const INNER: u64 = 10_000;

#[test]
fn random_programs_as_root() {
    if is_root() {
        try_programs();
    }
}

#[test]
fn random_programs_as_nobody() {
    if is_nobody("nested::random_programs_as_nobody") {
        try_programs();
    }
}

fn begin_within(outer: &Attempt, directories: &[&Path]) -> Result<Attempt, CoverError> {
    let places = Directories::find_within(directories, outer)?;
    Attempt::begin_within(&places, &mark(), outer)
}

fn try_programs() {
    // Without an index, changes of hard links are refused.
    let mut seeds = (0..).filter(|seed| !has_links(*seed) && !has_links(seed + INNER));
    for seed in seeds.by_ref().take(rounds(10) as usize) {
        if try_program(seed).is_none() {
            return;
        }
    }
}

/// Runs a random program in a process, within an attempt or outside.
fn perform(attempt: Option<&Attempt>, root: &Path, seed: u64) {
    let root = root.to_str().expect("a name").to_owned();
    let variables =
        [("FTSH_TEST_ROOT", root), ("FTSH_TEST_PROGRAM", seed.to_string()), (MOVES, "1".into())];
    assert_eq!(child(attempt, "programs::performed", &variables), 0);
}

/// Returns what an attempt shows. Overlays do not show which names are links of one file.
fn view(path: &Path) -> Snapshot {
    let mut view = snapshot(path);
    for facts in view.values_mut() {
        facts.links = Default::default();
    }
    view
}

/// Runs a program in an attempt, and another one in inner attempts that fail and succeed. Returns
/// none where attempts are forbidden.
fn try_program(seed: u64) -> Option<()> {
    let scratch = scratch();
    let [plain, tried] = ["plain", "tried"].map(|name| scratch.path().join(name));
    plant(&plain, seed);
    plant(&tried, seed);
    let before = snapshot(&tried);
    let outer = begin(&[&tried])?;
    perform(Some(&outer), &tried, seed);
    perform(None, &plain, seed);
    let shown = outer.translate(&tried, true).expect("a path");
    assert_same(&view(&shown), &view(&plain), &format!("seed {seed}, in the outer attempt"));

    // Changes of links are not always found, and the removal of a directory that keeps its entries
    // depends on their order.
    let is_uncertain = snapshot(&plain)
        .values()
        .any(|facts| facts.links.1 > 1 || facts.kind == 'd' && facts.mode & 0o200 == 0);
    if is_uncertain {
        return Some(());
    }
    let failing = begin_within(&outer, &[&tried]).expect("an inner attempt");
    perform(Some(&failing), &tried, seed + INNER);
    failing.discard().expect("nothing of it");
    assert_same(&view(&shown), &view(&plain), &format!("seed {seed}, discarded"));

    let succeeding = begin_within(&outer, &[&tried]).expect("an inner attempt");
    perform(Some(&succeeding), &tried, seed + INNER);
    let _ = succeeding.commit().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    perform(None, &plain, seed + INNER);
    assert_same(&view(&shown), &view(&plain), &format!("seed {seed}, committed within"));
    assert_same(&snapshot(&tried), &before, &format!("seed {seed}, outside"));

    let _ = outer.commit().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_same(&snapshot(&tried), &snapshot(&plain), &format!("seed {seed}, committed"));
    assert_clean(&tried);
    Some(())
}

#[test]
fn inner_attempts_change_a_part_and_other_directories() {
    let scratch = scratch();
    let [covered, other] = ["covered", "other"].map(|name| scratch.path().join(name));
    let part = covered.join("part");
    for directory in [&covered, &other, &part] {
        fs::create_dir(directory).expect("a directory");
    }
    let Some(outer) = begin(&[&covered]) else { return };
    assert_eq!(sh(&outer, &part, "echo outer > f"), 0);
    let inner = begin_within(&outer, &[&part, &other]).expect("an inner attempt");
    let commands = "cat f && echo inner >> f && echo part > ../part.txt && echo x > ../../other/x";
    assert_eq!(sh(&inner, &part, commands), 0);
    // The inner attempt does not cover the directory above.
    assert_eq!(sh(&outer, &covered, "grep part part.txt && ! grep inner part/f"), 0);
    let reached = inner.translate(&covered.join("part.txt"), true).expect("a path");
    assert!(!inner.covers(&reached) && outer.covers(&reached));
    let _ = inner.commit().expect("a commit");
    assert_eq!(sh(&outer, &covered, "grep inner part/f"), 0);
    assert_eq!(fs::read_to_string(other.join("x")).expect("a file"), "x\n");
    assert!(!part.join("f").exists());
    let _ = outer.commit().expect("a commit");
    assert_eq!(fs::read_to_string(part.join("f")).expect("a file"), "outer\ninner\n");
    assert_clean(&covered);
}

#[test]
fn layers_in_the_directory_can_be_nested() {
    if !is_nobody("nested::layers_in_the_directory_can_be_nested") {
        return;
    }
    let scratch = scratch();
    let parent = scratch.path().join("parent");
    let covered = parent.join("covered");
    for part in ["one", "two", "three"] {
        fs::create_dir_all(covered.join(part)).expect("directories");
    }
    fs::set_permissions(&parent, Permissions::from_mode(0o555)).expect("permissions");
    if let Some(outer) = begin(&[&covered]) {
        assert_eq!(sh(&outer, &covered, "echo outer | tee f one/f two/f three/f"), 0);
        let [one, two] = ["one", "two"].map(|name| covered.join(name));
        for is_good in [false, true] {
            let inner = begin_within(&outer, &[&one, &two]).expect("an inner attempt");
            let change = "for d in . one two three; do cat $d/f && echo inner >> $d/f; done";
            assert_eq!(sh(&inner, &covered, change), 0);
            if is_good {
                let _ = inner.commit().expect("a commit");
            } else {
                inner.discard().expect("nothing of it");
            }
        }
        // Both attempts have changed what they do not cover, and one of them the rest.
        assert_eq!(sh(&outer, &covered, "cat one/f two/f > part; cat f three/f > rest"), 0);
        let _ = outer.commit().expect("a commit");
        let read = |name| fs::read_to_string(covered.join(name)).expect("a file");
        assert_eq!(read("part"), "outer\ninner\n".repeat(2));
        assert_eq!(read("rest"), "outer\ninner\ninner\n".repeat(2));
        assert_clean(&covered);
    }
    fs::set_permissions(&parent, Permissions::from_mode(0o755)).expect("permissions");
}

#[test]
fn inner_attempts_add_names_to_one_directory() {
    let scratch = scratch();
    let covered = scratch.path().join("covered");
    fs::create_dir_all(covered.join("sub/sub")).expect("directories");
    let Some(outer) = begin(&[&covered]) else { return };
    let again = |commands: [&str; 2]| {
        let both = [(); 2].map(|()| begin_within(&outer, &[&covered]).expect("an inner attempt"));
        for (inner, commands) in both.iter().zip(commands) {
            assert_eq!(sh(inner, &covered, commands), 0);
        }
        let [first, second] = both;
        let _ = first.commit().expect("a commit");
        second.commit()
    };
    let _ = again(["echo 1 > sub/sub/1", "echo 2 > sub/sub/2"]).expect("a commit");
    assert_eq!(sh(&outer, &covered, "cat sub/sub/1 sub/sub/2"), 0);
    let conflict = again(["rm -r sub && mkdir -p sub/sub", "echo 3 > sub/sub/3"]);
    let conflict = conflict.expect_err("a conflict");
    assert!(matches!(conflict, CommitFailure::Conflict { .. }), "{conflict}");
}

#[test]
fn inner_attempts_that_cannot_begin_are_refused() {
    let scratch = scratch();
    let covered = scratch.path().join("covered");
    fs::create_dir_all(covered.join("part")).expect("directories");
    let Some(outer) = begin(&[&covered.join("part")]) else { return };
    let above = begin_within(&outer, &[&covered]).err().expect("a refusal");
    assert!(matches!(above, CoverError::Mounted { .. }), "{above}");
    let inner = begin_within(&outer, &[&covered.join("part")]).expect("an inner attempt");
    let third = begin_within(&inner, &[&covered.join("part")]).err().expect("a refusal");
    assert!(matches!(third, CoverError::Stacked { .. }), "{third}");
}

#[test]
fn inner_attempts_at_the_same_time_conflict_over_the_same_file() {
    let scratch = scratch();
    let covered = scratch.path().join("covered");
    fs::create_dir(&covered).expect("a directory");
    let Some(outer) = begin(&[&covered]) else { return };
    assert_eq!(sh(&outer, &covered, "echo 0 > f"), 0);
    let both = [(); 2].map(|()| begin_within(&outer, &[&covered]).expect("an inner attempt"));
    for (number, inner) in both.iter().enumerate() {
        assert_eq!(sh(inner, &covered, &format!("echo {number} > own.{number}; echo x >> f")), 0);
    }
    let [first, second] = both;
    let _ = first.commit().expect("a commit");
    let conflict = second.commit().expect_err("a conflict");
    assert!(matches!(conflict, CommitFailure::Conflict { .. }), "{conflict}");
    assert_eq!(sh(&outer, &covered, "test -e own.0 && ! test -e own.1"), 0);
}
