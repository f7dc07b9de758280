//! Kills at every step of a commit, and of the sweep after it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::program::{has_links, perform, plant};
use super::programs::{LENGTH, perform_within};
use super::snapshot::{Snapshot, assert_same, snapshot};
use super::{Scratch, assert_clean, begin, child, is_nobody, is_root, rounds, scratch};
use crate::commit::{CommitNote, NOTE, sweep_observed};
use crate::layers::Layers;
use crate::{CommitRecord, Directories, Swept, leftovers, sweep};

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
    let (wanted, mut kills, mut forward) = (rounds(20), 0, 0);
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

/// Two directories, each with a plain twin. Half of the pairs are on one file system, the others on two
/// if possible.
struct Twins {
    tried: [PathBuf; 2],
    plain: [PathBuf; 2],
    _scratches: [Scratch; 2],
}

impl Twins {
    fn plant(seed: u64) -> Self {
        let is_in_memory = !(seed / 2).is_multiple_of(2);
        let in_memory = is_in_memory.then(|| {
            tempfile::Builder::new().prefix("ftsh-layers-").tempdir_in("/dev/shm").ok().map(Scratch)
        });
        let scratches = [scratch(), in_memory.flatten().unwrap_or_else(scratch)];
        let paths = |name| scratches.each_ref().map(|it| it.path().join(name));
        let (tried, plain) = (paths("tried"), paths("plain"));
        for roots in [&tried, &plain] {
            plant(&roots[0], seed);
            plant(&roots[1], seed + OTHER);
        }
        Self { tried, plain, _scratches: scratches }
    }

    fn is(&self) -> Snapshot {
        both(&self.tried)
    }

    /// Returns the variables for the process to kill.
    fn variables(&self, task: &str, seed: u64, step: u64) -> [(&'static str, String); 5] {
        let path = |index: usize| self.tried[index].to_str().expect("a name").to_owned();
        [
            ("FTSH_TEST_KILL", task.to_owned()),
            ("FTSH_TEST_KILLED", path(0)),
            ("FTSH_TEST_KILLED_TOO", path(1)),
            ("FTSH_TEST_SEED", seed.to_string()),
            ("FTSH_TEST_STEP", step.to_string()),
        ]
    }

    /// Removes the records of commits, and returns their number.
    fn remove_records(&self) -> usize {
        let records = self.left().into_iter().filter_map(|layers| {
            CommitRecord::of_layers(&layers)
                .expect("a record or none")?
                .remove()
                .expect("no record");
            Some(())
        });
        records.count()
    }

    /// Returns the layers in both directories and beside them. On one file system, the first layers
    /// of the attempt come first.
    fn left(&self) -> Vec<PathBuf> {
        let mut left: Vec<_> = self.tried.iter().flat_map(|root| leftovers(root)).collect();
        let device = |path: &PathBuf| path.metadata().map(|found| found.dev()).unwrap_or_default();
        if device(&self.tried[0]) == device(&self.tried[1]) {
            left.sort_by_key(|path| path.join("primary").is_symlink());
        }
        left
    }
}

/// True if the commit with a seed leaves a record.
fn is_recorded(seed: u64) -> bool {
    !seed.is_multiple_of(2)
}

/// Distance of the seeds of the two directories. Both have hard links, or none has.
const OTHER: u64 = 400;

fn both(roots: &[PathBuf; 2]) -> Snapshot {
    let below = |index: usize| {
        snapshot(&roots[index]).into_iter().map(move |(path, mut facts)| {
            facts.links.0 = Path::new(&index.to_string()).join(facts.links.0);
            (Path::new(&index.to_string()).join(path), facts)
        })
    };
    below(0).chain(below(1)).collect()
}

fn try_kill(victim: &str, seed: u64, step: u64) -> Option<Found> {
    let context = format!("seed {seed}, step {step}");
    let twins = Twins::plant(seed);
    drop(begin(&twins.tried.each_ref().map(PathBuf::as_path))?);
    let old = twins.is();
    perform(&twins.plain[0], seed, LENGTH);
    perform(&twins.plain[1], seed + OTHER, LENGTH);
    let new = both(&twins.plain);

    let status = child(None, victim, &twins.variables("commit", seed, step));
    if status == 0 {
        assert_same(&twins.is(), &new, &context);
        assert_eq!(twins.remove_records(), usize::from(is_recorded(seed)), "{context}");
        assert!(twins.left().is_empty(), "{context}");
        return Some(Found::Finished);
    }
    assert_eq!(status, KILLED, "{context}");
    assert_old_or_new(&twins.is(), &old, &new, &context);
    // Every other time, the sweep is killed as well.
    if step.is_multiple_of(2) {
        let status = child(None, victim, &twins.variables("sweep", seed, step));
        assert!(matches!(status, 0 | KILLED), "{context}: {status}");
        assert_old_or_new(&twins.is(), &old, &new, &context);
    }
    let left = twins.left();
    let swept: Vec<_> = left.iter().map(|layers| sweep(layers).expect("a sweep")).collect();
    let records = twins.remove_records();
    twins.tried.iter().for_each(|root| assert_clean(root));
    let is = twins.is();
    // Without layers, the kill came after the note was removed.
    let is_new = swept.contains(&Swept::RolledForward) || is == new;
    assert_eq!(records, usize::from(is_recorded(seed) && is_new), "{context}");
    assert_same(&is, if is_new { &new } else { &old }, &context);
    Some(if is_new { Found::RolledForward } else { Found::Discarded })
}

#[test]
fn directories_on_two_file_systems_are_swept() {
    if !is_root() {
        return;
    }
    // The seed of directories on two file systems.
    let (seed, step) = (2, 1);
    let twins = Twins::plant(seed);
    let roots = twins.tried.each_ref().map(PathBuf::as_path);
    let Some(attempt) = begin(&roots) else { return };
    drop(attempt);
    assert_eq!(child(None, "kills::killed", &twins.variables("commit", seed, step)), KILLED);
    assert_eq!(twins.left().len(), 2);
    Directories::find(&roots).expect("directories").sweep();
    assert!(twins.left().is_empty());
}

#[test]
fn a_commit_is_finished_after_a_device_has_got_another_number() {
    if !is_root() {
        return;
    }
    // The steps before the note leave nothing to finish.
    for step in 1.. {
        let twins = Twins::plant(1);
        let Some(attempt) = begin(&twins.tried.each_ref().map(PathBuf::as_path)) else { return };
        drop(attempt);
        let status = child(None, "kills::killed", &twins.variables("commit", 1, step));
        assert_eq!(status, KILLED, "no step {step} after the note");
        let Some(path) = twins.left().into_iter().find(|it| it.join("note").exists()) else {
            continue;
        };
        let layers = Layers::lock(path.clone()).expect("layers").expect("no other process");
        let (mut note, _) = CommitNote::read(layers.fd(), NOTE).expect("a note").expect("a note");
        note.trees.iter_mut().for_each(|tree| tree.id.device += 1);
        note.prepare(layers.fd()).expect("a note");
        CommitNote::decide(layers.fd()).expect("a note");
        drop(layers);
        assert_eq!(sweep(&path).expect("a sweep"), Swept::RolledForward);
        return;
    }
}

/// Asserts that every path has its old or its new entry. Permissions of directories may be on their
/// way, and so are numbers of links. Below a renamed directory that takes the place of another one,
/// entries may be missing until the sweep.
fn assert_old_or_new(is: &Snapshot, old: &Snapshot, new: &Snapshot, context: &str) {
    for path in is.keys().chain(old.keys()).chain(new.keys()) {
        let facts = |of: &Snapshot| {
            let facts = of.get(path)?;
            let is_directory = facts.kind == 'd';
            let mode = if is_directory { 0 } else { facts.mode };
            Some((facts.kind, mode, facts.content.clone()))
        };
        let found = facts(is);
        let is_below = || {
            path.ancestors().any(|path| {
                path.components().count() > 1 && old.get(path).is_some_and(|it| it.kind == 'd')
            })
        };
        let is_on_its_way = found.is_none() && rustix::process::geteuid().is_root() && is_below();
        let is_right = found == facts(old) || found == facts(new) || is_on_its_way;
        assert!(is_right, "{context}: {path:?} is {found:?}");
    }
}

/// Body of the process to kill, and no test otherwise.
#[test]
fn killed() {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(task) = variable("FTSH_TEST_KILL") else { return };
    let path = |name| PathBuf::from(variable(name).expect("a path"));
    let roots = [path("FTSH_TEST_KILLED"), path("FTSH_TEST_KILLED_TOO")];
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
        for layers in roots.iter().flat_map(|root| leftovers(root)) {
            let _ = sweep_observed(&layers, &mut observe).expect("a sweep");
        }
        return;
    }
    let attempt = begin(&roots.each_ref().map(PathBuf::as_path)).expect("an attempt");
    perform_within(&attempt, &roots[0], seed);
    perform_within(&attempt, &roots[1], seed + OTHER);
    let _ = attempt.commit_observed(is_recorded(seed), &mut observe).expect("a commit");
}
