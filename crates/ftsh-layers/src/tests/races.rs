//! Changes by other processes while a commit takes place.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rustix::fs::{XattrFlags, setxattr};

use super::conflicts::wait_for_tick;
use super::program::{has_links, plant};
use super::programs::perform_within;
use super::snapshot::{Snapshot, assert_same, snapshot};
use super::{assert_clean, begin, is_nobody, is_root, layers_in, rounds, scratch, sh};
use crate::{CommitFailure, Directories};

#[test]
fn changes_during_a_commit_survive_as_root() {
    if is_root() {
        try_cases();
    }
}

#[test]
fn changes_during_a_commit_survive_as_nobody() {
    if is_nobody("races::changes_during_a_commit_survive_as_nobody") {
        try_cases();
    }
}

/// Commands of an attempt, a change outside, the path of the change, and the content there.
type Case = (&'static str, fn(&Path) -> io::Result<()>, &'static str, Option<&'static str>);

const CASES: [Case; 12] = [
    ("echo x >> file", |it| fs::write(it.join("file"), "outside"), "file", Some("outside")),
    ("echo x >> file", |it| replace(&it.join("file")), "file", Some("outside")),
    ("echo x >> file", |it| fs::remove_file(it.join("file")), "file", None),
    ("rm file; mkdir file", |it| fs::write(it.join("file"), "outside"), "file", Some("outside")),
    ("rm file", |it| fs::write(it.join("file"), "outside"), "file", Some("outside")),
    ("rm file", |it| replace(&it.join("file")), "file", Some("outside")),
    ("echo x > new", |it| fs::write(it.join("new"), "outside"), "new", Some("outside")),
    ("rm -r sub", |it| fs::write(it.join("sub/new"), "outside"), "sub/new", Some("outside")),
    ("rm -r sub", |it| append(&it.join("sub/in/file")), "sub/in/file", Some("old outside")),
    ("rm -r sub; mkdir sub", |it| replace(&it.join("sub/file")), "sub/file", Some("outside")),
    ("rm -r sub; echo x > sub", |it| append(&it.join("sub/file")), "sub/file", Some("old outside")),
    ("mv sub moved", |it| append(&it.join("sub/file")), "sub/file", Some("old outside")),
];

fn replace(path: &Path) -> io::Result<()> {
    let new = path.with_extension("replacement");
    fs::write(&new, "outside").and_then(|()| fs::rename(new, path))
}

fn append(path: &Path) -> io::Result<()> {
    let mut file = fs::File::options().append(true).open(path)?;
    io::Write::write_all(&mut file, b" outside")
}

fn without(mut tree: Snapshot, path: &str) -> Snapshot {
    tree.remove(Path::new(path));
    // A directory loses and gets entries.
    tree.remove(Path::new(""));
    tree
}

/// Changes a path before each step of a commit, and looks for the change afterwards.
fn try_cases() {
    for (commands, change, path, content) in CASES {
        for late in 1.. {
            let context = format!("{commands}, {path} at step {late}");
            let scratch = scratch();
            let directory = scratch.path().join("it");
            fs::create_dir_all(directory.join("sub/in")).expect("a directory");
            for name in ["file", "zz", "sub/file", "sub/in/file"] {
                fs::write(directory.join(name), "old").expect("a file");
            }
            let before = snapshot(&directory);
            let Some(attempt) = begin(&[&directory]) else { return };
            wait_for_tick(scratch.path());
            let all = format!("echo x > aa; {commands}; echo x >> zz");
            assert_eq!(sh(&attempt, &directory, &all), 0, "{context}");
            let (mut steps, mut applied) = (0, None);
            let result = attempt.commit_observed(false, &mut || {
                steps += 1;
                if steps == late {
                    applied = Some(change(&directory).is_ok());
                }
            });
            assert_clean(&directory);
            let Some(applied) = applied else {
                assert!(result.is_ok() && late > 5, "{context}: {result:?}");
                break;
            };
            let is_moved = commands.starts_with("mv") && result.is_ok();
            let place = directory.join(if is_moved { "moved/file" } else { path });
            if applied {
                let found = fs::read_to_string(place).ok();
                assert_eq!(found.as_deref(), content, "{context}: {result:?}");
            }
            match result {
                Ok(_) => {}
                Err(CommitFailure::Conflict { .. }) => {
                    let is = without(snapshot(&directory), path);
                    assert_eq!(is, without(before, path), "{context}");
                }
                Err(error) => panic!("{context}: {error}"),
            }
        }
    }
}

#[test]
fn changes_during_random_commits_survive_as_root() {
    if is_root() {
        try_random_commits();
    }
}

#[test]
fn changes_during_random_commits_survive_as_nobody() {
    if is_nobody("races::changes_during_random_commits_survive_as_nobody") {
        try_random_commits();
    }
}

/// Appends to a random file at a random step of the commits of random programs.
fn try_random_commits() {
    let (mut conflicts, mut applied) = (0, 0);
    let mut random = ChaCha8Rng::seed_from_u64(2);
    for seed in (0..).filter(|seed| !has_links(*seed)).take(rounds(25) as usize) {
        let scratch = scratch();
        let directory = scratch.path().join("it");
        plant(&directory, seed);
        let before = snapshot(&directory);
        let files: Vec<_> = before.iter().filter(|(_, it)| it.kind == 'f').collect();
        let Some((path, _)) = files.choose(&mut random) else { continue };
        let Some(attempt) = begin(&[&directory]) else { return };
        wait_for_tick(scratch.path());
        perform_within(&attempt, &directory, seed);
        let (mut steps, late, mut is_applied) = (0, random.random_range(1..60), false);
        let result = attempt.commit_observed(false, &mut || {
            steps += 1;
            if steps == late {
                is_applied = append(&directory.join(path)).is_ok();
            }
        });
        assert_clean(&directory);
        let context = format!("seed {seed}, {path:?} at step {late}: {result:?}");
        let mut is = snapshot(&directory);
        if is_applied {
            applied += 1;
            assert!(is.values().any(|it| it.content.ends_with(b" outside")), "{context}");
        }
        match result {
            Ok(_) | Err(CommitFailure::Mixed { .. }) => {}
            Err(CommitFailure::Conflict { .. }) => {
                conflicts += 1;
                let mut before = before.clone();
                is.remove(*path);
                before.remove(*path);
                assert_same(&is, &before, &context);
            }
            Err(error) => panic!("{context}: {error}"),
        }
    }
    eprintln!("{applied} changes, {conflicts} conflicts");
}

#[test]
fn no_change_of_a_racing_writer_is_lost() {
    if !is_nobody("races::no_change_of_a_racing_writer_is_lost") {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path().join("it");
    fs::create_dir(&directory).expect("a directory");
    let file = directory.join("file");
    fs::write(&file, "").expect("a file");
    let (is_committing, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (mut conflicts, wanted) = (0, rounds(100));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            write_at_random_moments(&file, &scratch.path().join("new"), &is_committing, &is_over);
        });
        for _ in 0..wanted {
            let Some(attempt) = begin(&[&directory]) else { break };
            assert_eq!(sh(&attempt, &directory, "echo x >> file; echo x > other"), 0);
            is_committing.store(true, Ordering::Relaxed);
            let result = attempt.commit();
            is_committing.store(false, Ordering::Relaxed);
            match result {
                Ok(_) => {}
                Err(CommitFailure::Conflict { .. }) => conflicts += 1,
                Err(error) => panic!("{error}"),
            }
        }
        is_over.store(true, Ordering::Relaxed);
        writer.join().expect("no lost line");
    });
    eprintln!("{conflicts} conflicts in {wanted} commits");
    assert_clean(&directory);
}

/// Replaces a file by one with a line more, at a random moment of each commit. No line may be lost.
fn write_at_random_moments(
    file: &Path,
    new: &Path,
    is_committing: &AtomicBool,
    is_over: &AtomicBool,
) {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    // Duration of the last commit, in turns of a loop.
    let (mut lines, mut duration) = (0, 100);
    loop {
        while !is_committing.load(Ordering::Relaxed) {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            std::thread::yield_now();
        }
        let moment = random.random_range(0..=duration);
        let mut turns = 0;
        while is_committing.load(Ordering::Relaxed) || turns <= moment {
            if turns == moment {
                let text = fs::read_to_string(file).expect("a file");
                let missing = (0..lines).find(|it| !text.contains(&format!(" {it} ")));
                assert_eq!(missing, None, "a line of {lines} is lost");
                fs::write(new, format!("{text} {lines} ")).expect("a file");
                fs::rename(new, file).expect("a file");
                lines += 1;
            }
            turns += 1;
            std::thread::yield_now();
        }
        duration = turns;
    }
}

#[test]
fn an_interrupted_commit_keeps_later_changes() {
    if !is_nobody("races::an_interrupted_commit_keeps_later_changes") {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path().join("it");
    fs::create_dir_all(directory.join("gone")).expect("a directory");
    let names = ["f1", "f2", "f3", "f4", "f5", "f6", "gone/file"];
    for name in names {
        fs::write(directory.join(name), "old").expect("a file");
    }
    let Some(attempt) = begin(&[&directory]) else { return };
    let commands = "for f in f*; do echo new > $f; done; rm -r gone; echo new > g";
    assert_eq!(sh(&attempt, &directory, commands), 0);
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    let commit = AssertUnwindSafe(|| {
        let mut stop = || {
            if read("f2") == "new\n" {
                resume_unwind(Box::new("stopped"));
            }
        };
        let _ = attempt.commit_observed(false, &mut stop);
    });
    assert!(catch_unwind(commit).is_err() && read("f6") == "old");
    wait_for_tick(scratch.path());
    for name in ["f1", "f6", "g", "gone/late"] {
        fs::write(directory.join(name), "edited").expect("a file");
    }
    fs::remove_file(directory.join("f5")).expect("a file");
    let report = Directories::find(&[&directory]).expect("directories").sweep().join("\n");
    for (name, is_left) in [("f1", false), ("f5", true), ("f6", true), ("g", true), ("gone", true)]
    {
        let path = format!("`{}`", directory.join(name).display());
        assert_eq!(report.contains(&path), is_left, "{name}: {report}");
    }
    assert_clean(&directory);
    let found = names.map(read);
    assert_eq!(found, ["edited", "new\n", "new\n", "new\n", "", "edited", "old"]);
    assert_eq!([read("g"), read("gone/late")], ["edited", "edited"]);
}

/// Plants files, and begins an attempt that changes them, `zz` last.
fn begin_changes(directory: &Path) -> Option<crate::Attempt> {
    fs::create_dir_all(directory.join("sub")).expect("a directory");
    for name in ["aa", "gone", "sub/file", "zz"] {
        fs::write(directory.join(name), "old").expect("a file");
    }
    let attempt = begin(&[directory])?;
    let commands = "echo new > aa; rm gone; rm -r sub; mkdir sub; echo x > sub/x; echo new > zz";
    assert_eq!(sh(&attempt, directory, commands), 0);
    Some(attempt)
}

#[test]
fn an_interrupted_undo_is_finished() {
    if !is_nobody("races::an_interrupted_undo_is_finished") {
        return;
    }
    for late in 1.. {
        let scratch = scratch();
        let directory = scratch.path().join("it");
        let Some(attempt) = begin_changes(&directory) else { return };
        let before = without(snapshot(&directory), "zz");
        let layers = layers_in(scratch.path());
        let mut steps = 0;
        let mut stop = || {
            if steps == 0 && fs::read_to_string(directory.join("aa")).ok().as_deref() == Some("old")
            {
                return;
            }
            steps += 1;
            fs::write(directory.join("zz"), "outside").expect("a file");
            if steps == late {
                resume_unwind(Box::new("stopped"));
            }
        };
        let commit = AssertUnwindSafe(|| attempt.commit_observed(false, &mut stop));
        if let Ok(result) = catch_unwind(commit) {
            assert!(matches!(result, Err(CommitFailure::Conflict { .. })), "{result:?}");
            assert!(late > 5, "the commit has {late} steps");
            return;
        }
        let is_undo = !layers[0].join("note").exists();
        let _ = Directories::find(&[&directory]).expect("directories").sweep();
        assert_clean(&directory);
        let zz = fs::read_to_string(directory.join("zz")).expect("a file");
        assert_eq!(zz, "outside", "step {late}");
        let is = without(snapshot(&directory), "zz");
        assert_eq!(is == before, is_undo, "step {late}: {is:?}");
    }
}

#[test]
fn an_undo_keeps_changes_of_others() {
    if !is_nobody("races::an_undo_keeps_changes_of_others") {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path().join("it");
    let Some(attempt) = begin_changes(&directory) else { return };
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    let mut is_changed = false;
    let result = attempt.commit_observed(false, &mut || {
        // The look at the old file follows before the next step.
        if read("sub/x") == "x\n" && !is_changed {
            is_changed = true;
            append(&directory.join("aa")).expect("a file");
            fs::write(directory.join("zz"), "outside").expect("a file");
        }
    });
    match result {
        Err(CommitFailure::Mixed { kept, .. }) => assert_eq!(kept, directory.join("aa")),
        result => panic!("{result:?}"),
    }
    assert_clean(&directory);
    assert_eq!(
        ["aa", "gone", "sub/file", "zz"].map(read),
        ["new\n outside", "old", "old", "outside"]
    );
}

#[test]
fn a_step_that_fails_in_part_is_undone() {
    if !is_nobody("races::a_step_that_fails_in_part_is_undone") {
        return;
    }
    for late in 1.. {
        let scratch = scratch();
        let directory = scratch.path().join("it");
        let sub = directory.join("sub");
        fs::create_dir_all(&sub).expect("a directory");
        let Some(attempt) = begin(&[&directory]) else { return };
        let own = attempt.translate(&sub, true).expect("a path");
        // Another process leaves no room for the second attribute on ext4.
        let set = |path: &Path, name: &str, length: usize| {
            let _ = setxattr(path, name, &vec![b'x'; length], XattrFlags::empty());
        };
        set(&own, "user.a", 1);
        set(&own, "user.b", 3000);
        let mut steps = 0;
        let result = attempt.commit_observed(false, &mut || {
            steps += 1;
            if steps == late {
                set(&sub, "user.other", 3000);
            }
        });
        assert_clean(&directory);
        if result.is_ok() {
            return;
        }
        let names = ftsh_sys::attributes(&sub).expect("attributes");
        assert_eq!(names, [c"user.other".to_owned()], "step {late}: {result:?}");
    }
}
