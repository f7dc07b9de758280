//! Kills at every step of a commit, and of the sweep after it.

use std::path::Path;
use std::process;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::program::{has_links, perform, plant};
use super::programs::perform_within;
use super::snapshot::{Snapshot, assert_same, snapshot};
use super::{assert_clean, begin, child, is_nobody, is_root, rounds, scratch};
use crate::sweep::sweep_observed;
use crate::{Swept, leftovers, sweep};

/// Status of a child that SIGKILL ended.
const KILLED: i32 = 128 + 9;

#[test]
fn kills_as_root() {
    if is_root() {
        try_kills("kills::killed");
    }
}

#[test]
fn kills_as_nobody() {
    if is_nobody("kills::kills_as_nobody") {
        try_kills("kills::killed");
    }
}

/// Kills commits of random programs, each at every step, until the number of kills is reached.
fn try_kills(victim: &str) {
    let (wanted, mut kills, mut forward) = (rounds(40), 0, 0);
    for seed in 1.. {
        if has_links(seed) && !rustix::process::geteuid().is_root() {
            continue; // some of these attempts are refused
        }
        for step in 1.. {
            let Some(found) = try_kill(victim, seed, step) else { return };
            if found == Found::Finished {
                break;
            }
            kills += 1;
            forward += u64::from(found == Found::RolledForward);
            if kills >= wanted {
                eprintln!("{kills} kills, of which {forward} were rolled forward");
                return;
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Found {
    Finished,
    Discarded,
    RolledForward,
}

fn try_kill(victim: &str, seed: u64, step: u64) -> Option<Found> {
    let context = format!("seed {seed}, step {step}");
    let scratch = scratch();
    let [plain, tried] = ["plain", "tried"].map(|name| scratch.path().join(name));
    plant(&plain, seed);
    plant(&tried, seed);
    drop(begin(&[&tried])?);
    let old = snapshot(&tried);
    perform(&plain, seed, super::programs::LENGTH);
    let new = snapshot(&plain);

    let path = tried.to_str().expect("a name").to_owned();
    let variables = |task: &str| {
        let task = task.to_owned();
        [
            ("FTSH_TEST_KILL", task),
            ("FTSH_TEST_KILLED", path.clone()),
            ("FTSH_TEST_SEED", seed.to_string()),
            ("FTSH_TEST_STEP", step.to_string()),
        ]
    };
    let status = child(None, victim, &variables("commit"));
    if status == 0 {
        assert_same(&snapshot(&tried), &new, &context);
        assert_clean(&tried);
        return Some(Found::Finished);
    }
    assert_eq!(status, KILLED, "{context}");
    assert_old_or_new(&snapshot(&tried), &old, &new, &context);
    // Every other time, the sweep is killed as well.
    if step % 2 == 0 {
        let status = child(None, victim, &variables("sweep"));
        assert!(matches!(status, 0 | KILLED), "{context}: {status}");
        assert_old_or_new(&snapshot(&tried), &old, &new, &context);
    }
    let left = leftovers(&tried);
    let swept: Vec<_> = left.iter().map(|layers| sweep(layers).expect("a sweep")).collect();
    assert_clean(&tried);
    let is = snapshot(&tried);
    // Without layers, the kill came after the note was removed.
    let is_new = swept.contains(&Swept::RolledForward) || is == new;
    assert_same(&is, if is_new { &new } else { &old }, &context);
    Some(if is_new { Found::RolledForward } else { Found::Discarded })
}

/// Asserts that every path has its old or its new entry. Permissions of directories may be on their
/// way, and so are numbers of links.
fn assert_old_or_new(is: &Snapshot, old: &Snapshot, new: &Snapshot, context: &str) {
    for path in is.keys().chain(old.keys()).chain(new.keys()) {
        let facts = |of: &Snapshot| {
            let facts = of.get(path)?;
            let is_directory = facts.kind == 'd';
            let mode = if is_directory { 0 } else { facts.mode };
            Some((facts.kind, mode, facts.content.clone()))
        };
        let found = facts(is);
        assert!(found == facts(old) || found == facts(new), "{context}: {path:?} is {found:?}");
    }
}

/// Body of the process to kill, and no test otherwise.
#[test]
fn killed() {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(task) = variable("FTSH_TEST_KILL") else { return };
    let root = variable("FTSH_TEST_KILLED").expect("a path");
    let root = Path::new(&root);
    let number = |name| variable(name).and_then(|it| it.parse().ok()).expect("a number");
    let (seed, step): (u64, u64) = (number("FTSH_TEST_SEED"), number("FTSH_TEST_STEP"));
    let mut steps = 0;
    let mut observe = || {
        steps += 1;
        if steps == step {
            let _ = kill(Pid::from_raw(process::id() as _), Signal::SIGKILL);
        }
    };
    if task == "sweep" {
        for layers in leftovers(root) {
            let _ = sweep_observed(&layers, &mut observe).expect("a sweep");
        }
        return;
    }
    let attempt = begin(&[root]).expect("an attempt");
    perform_within(&attempt, root, seed);
    match attempt.commit_observed(&mut observe) {
        Ok(_) => {}
        Err(error) => panic!("{error}"),
    }
}
