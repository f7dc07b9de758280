//! Trees of many levels, and long paths.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, mkdirat, openat};

use super::{assert_clean, begin, is_nobody, is_root, scratch, sh};
use crate::{Attempt, CommitFailure, Committed};

/// Size of the stack of a worker of the shell.
const STACK: usize = 256 * 1024;

#[test]
fn deep_trees_are_committed_as_root() {
    if is_root() {
        try_trees();
    }
}

#[test]
fn deep_trees_are_committed_as_nobody() {
    if is_nobody("deep::deep_trees_are_committed_as_nobody") {
        try_trees();
    }
}

/// Commits in a thread like that of a worker.
fn commit(attempt: Attempt) -> Result<Committed, CommitFailure> {
    let worker = std::thread::Builder::new().stack_size(STACK);
    worker.spawn(|| attempt.commit()).expect("a thread").join().expect("a commit")
}

/// Opens the innermost of nested directories of one name. Creates the directories if `create`.
fn innermost(top: &Path, name: &str, depth: usize, create: bool) -> OwnedFd {
    let mut directory = OwnedFd::from(File::open(top).expect("a directory"));
    for _ in 0..depth {
        if create {
            mkdirat(&directory, name, Mode::RWXU).expect("a directory");
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        directory = openat(&directory, name, flags, Mode::empty()).expect("a directory");
    }
    directory
}

fn open(directory: &OwnedFd, flags: OFlags) -> Option<File> {
    let flags = flags | OFlags::CLOEXEC;
    openat(directory, "leaf", flags, Mode::RUSR | Mode::WUSR).ok().map(File::from)
}

fn write(directory: &OwnedFd, text: &str) {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
    open(directory, flags).expect("a file").write_all(text.as_bytes()).expect("a file");
}

fn read(directory: &OwnedFd) -> Option<String> {
    let mut text = String::new();
    open(directory, OFlags::RDONLY)?.read_to_string(&mut text).expect("a text");
    Some(text)
}

fn try_trees() {
    let long = "n".repeat(200);
    for (name, depth) in [("e", 1200), (&*long, 40)] {
        let scratch = scratch();
        let directory = scratch.path().join("it");
        fs::create_dir(&directory).expect("a directory");
        for text in ["a", "zz"] {
            fs::write(directory.join(text), "old\n").expect("a file");
        }
        let Some(attempt) = begin(&[&directory]) else { return };
        let own = attempt.translate(&directory, true).expect("a path");
        write(&innermost(&own, name, depth, true), "made\n");
        let _ = commit(attempt).expect("a new tree");
        assert_eq!(read(&innermost(&directory, name, depth, false)).as_deref(), Some("made\n"));

        let attempt = begin(&[&directory]).expect("an attempt");
        assert_eq!(sh(&attempt, &directory, "echo new >> a; echo new >> zz"), 0);
        let own = attempt.translate(&directory, true).expect("a path");
        write(&innermost(&own, name, depth, false), "changed\n");
        let _ = commit(attempt).expect("a changed file");
        let leaf = read(&innermost(&directory, name, depth, false));
        assert_eq!(leaf.as_deref(), Some("made\nchanged\n"));
        assert_eq!(fs::read_to_string(directory.join("zz")).expect("a file"), "old\nnew\n");

        let attempt = begin(&[&directory]).expect("an attempt");
        assert_eq!(sh(&attempt, &directory, &format!("rm -rf {name}")), 0);
        let _ = commit(attempt).expect("a removal");
        assert!(!directory.join(name).exists());
        assert_clean(&directory);
    }
}
