//! Changes by other processes during an attempt.

use std::fs::{self, File};
use std::path::Path;

use super::{assert_clean, begin, is_nobody, is_root, scratch, sh};
use crate::CommitFailure;
use ftsh_sys::{FileLock, LockKind};

#[test]
fn conflicts_as_root() {
    if is_root() {
        try_conflicts();
    }
}

#[test]
fn conflicts_as_nobody() {
    if is_nobody("conflicts::conflicts_as_nobody") {
        try_conflicts();
    }
}

/// Commands of an attempt, a change outside, and the path of the conflict.
type Case = (&'static str, fn(&Path), Option<&'static str>);

const CASES: [Case; 18] = [
    ("echo x >> file", |it| write(&it.join("file")), Some("file")),
    ("echo x >> file", |it| fs::remove_file(it.join("file")).expect("a file"), Some("file")),
    ("rm file", |it| write(&it.join("file")), Some("file")),
    ("rm file", |it| fs::remove_file(it.join("file")).expect("a file"), None),
    ("echo x > new", |it| write(&it.join("new")), Some("new")),
    ("echo x > new", |it| write(&it.join("other")), None),
    ("echo x > sub/new", |it| write(&it.join("sub/other")), None),
    ("echo x > sub/new", |it| replace(&it.join("sub")), Some("sub")),
    ("echo x > sub/new", |it| fs::remove_dir_all(it.join("sub")).expect("it"), Some("sub")),
    ("echo x > sub/new", |it| rename(&it.join("sub")), Some("sub")),
    ("chmod 700 sub", |it| rename(&it.join("sub")), Some("sub")),
    ("rm sub/file", |it| rename(&it.join("sub")), Some("sub")),
    ("echo x > file", |it| write(&it.join("sub/file")), None),
    ("rm -r sub", |it| write(&it.join("sub/other")), Some("sub")),
    ("rm -r sub", |it| write(&it.join("sub/file")), Some("sub/file")),
    ("rm -r sub; mkdir sub", |it| write(&it.join("sub/file")), Some("sub/file")),
    (
        "chmod 700 sub",
        |it| fs::set_permissions(it.join("sub"), mode(0o711)).expect("it"),
        Some("sub"),
    ),
    ("mkdir made", |it| fs::create_dir(it.join("made")).expect("it"), Some("made")),
];

fn write(path: &Path) {
    fs::write(path, "outside").expect("a file");
}

fn rename(path: &Path) {
    fs::rename(path, path.with_extension("old")).expect("a directory");
}

fn replace(path: &Path) {
    rename(path);
    fs::create_dir(path).expect("a directory");
}

fn mode(mode: u32) -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(mode)
}

/// Waits until the clock of the file system has passed the begin of an attempt.
pub(super) fn wait_for_tick(directory: &Path) {
    use std::os::unix::fs::MetadataExt;
    let probe = directory.join("probe");
    let time = || {
        fs::write(&probe, "").expect("a file");
        let found = probe.metadata().expect("a file");
        let time = (found.ctime(), found.ctime_nsec());
        fs::remove_file(&probe).expect("a file");
        time
    };
    let first = time();
    while time() == first {}
}

fn try_conflicts() {
    for (commands, change, conflict) in CASES {
        let scratch = scratch();
        let directory = scratch.path().join("it");
        fs::create_dir_all(directory.join("sub")).expect("a directory");
        fs::write(directory.join("file"), "old").expect("a file");
        fs::write(directory.join("sub/file"), "old").expect("a file");
        let Some(attempt) = begin(&[&directory]) else { return };
        wait_for_tick(scratch.path());
        assert_eq!(sh(&attempt, &directory, commands), 0, "{commands}");
        change(&directory);
        let before = super::snapshot::snapshot(&directory);
        match (attempt.commit(), conflict) {
            (Ok(_), None) => {}
            (Err(CommitFailure::Conflict { path }), Some(expected)) => {
                assert_eq!(path, directory.join(expected), "{commands}");
                assert_eq!(super::snapshot::snapshot(&directory), before, "{commands}");
            }
            (result, expected) => panic!("{commands}: {result:?} instead of {expected:?}"),
        }
        assert_clean(&directory);
    }
}

#[test]
fn branches_that_add_names_do_not_conflict() {
    if !is_nobody("conflicts::branches_that_add_names_do_not_conflict") {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path().join("it");
    fs::create_dir_all(directory.join("sub")).expect("a directory");
    let attempts: Vec<_> = (0..5).filter_map(|_| begin(&[&directory])).collect();
    for (index, attempt) in attempts.into_iter().enumerate() {
        let commands = format!("echo {index} > sub/{index}; mkdir {index}; touch {index}/x");
        assert_eq!(sh(&attempt, &directory, &commands), 0);
        let _ = attempt.commit().expect("a commit");
        assert!(directory.join(format!("{index}/x")).exists());
    }
    assert_clean(&directory);
}

#[test]
fn a_commit_waits_for_the_disk_without_the_lock() {
    let scratch = scratch();
    let directory = scratch.path().join("it");
    fs::create_dir(&directory).expect("a directory");
    let Some(attempt) = begin(&[&directory]) else { return };
    assert_eq!(sh(&attempt, &directory, "echo x > new"), 0);
    let file = File::open(&directory).expect("a directory");
    let mut lock = FileLock::lock(file, LockKind::ExclusiveNow).ok();
    let mut steps = 0;
    let result = attempt.commit_observed(false, &mut || {
        steps += 1;
        // The first step follows the survey, and the second one precedes the sync.
        if steps == 2 {
            lock = None;
        }
    });
    let _ = result.expect("a commit");
    assert!(directory.join("new").exists());
}

#[test]
fn a_moved_directory_is_an_error() {
    let scratch = scratch();
    let directory = scratch.path().join("it");
    fs::create_dir(&directory).expect("a directory");
    let Some(attempt) = begin(&[&directory]) else { return };
    assert_eq!(sh(&attempt, &directory, "echo x > new"), 0);
    let moved = scratch.path().join("moved");
    fs::rename(&directory, &moved).expect("a directory");
    let result = attempt.commit();
    assert!(matches!(result, Err(CommitFailure::Moved { .. })), "{result:?}");
    assert_clean(&moved);
    assert_eq!(fs::read_dir(moved).expect("a directory").count(), 0);
}

const CHANGES: &str =
    "echo x > a; echo x >> file; rm -r sub; mkdir sub; touch sub/x; rm gone; echo x > zz
    touch closed/new; chmod 500 closed; rm kind; mkdir kind; touch kind/x";

#[test]
fn steps_before_a_conflict_are_undone() {
    if !is_nobody("conflicts::steps_before_a_conflict_are_undone") {
        return;
    }
    for late in 3.. {
        let scratch = scratch();
        let directory = scratch.path().join("it");
        for name in ["sub", "closed"] {
            fs::create_dir_all(directory.join(name)).expect("a directory");
        }
        for name in ["file", "sub/file", "gone", "kind"] {
            fs::write(directory.join(name), "old").expect("a file");
        }
        let before = super::snapshot::snapshot(&directory);
        let Some(attempt) = begin(&[&directory]) else { return };
        assert_eq!(sh(&attempt, &directory, CHANGES), 0);
        // Another process creates the last new file after the comparison.
        let (mut steps, new) = (0, directory.join("zz"));
        let result = attempt.commit_observed(false, &mut || {
            steps += 1;
            if steps == late && !new.exists() {
                write(&new);
            }
        });
        assert_clean(&directory);
        match result {
            Ok(_) => {
                assert!(late > 8, "the file came too late for step {late}");
                return;
            }
            Err(CommitFailure::Conflict { path }) => assert_eq!(path, new),
            Err(error) => panic!("{error}"),
        }
        fs::remove_file(&new).expect("a file");
        assert_eq!(super::snapshot::snapshot(&directory), before, "step {late}");
    }
}
