//! Tests with real overlays, as root and as another user.

mod attempts;
mod conflicts;
mod deep;
mod disks;
mod figures;
mod kills;
mod nested;
mod owners;
mod paths;
mod program;
mod programs;
mod races;
#[path = "../../../../tests/support/skipped.rs"]
mod skipped;
mod snapshot;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ftsh_sys::{CStringArray, ChildChange, ExitStatus, Launch};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tempfile::TempDir;

use self::skipped::skipped;
use crate::{Attempt, CoverError, Directories};

/// User and group without rights.
const NOBODY: u32 = 65534;

/// Number of rounds of a test, from the environment or as given.
fn rounds(usual: u64) -> u64 {
    let set = std::env::var("FTSH_TEST_ROUNDS").ok();
    set.and_then(|rounds| rounds.parse().ok()).unwrap_or(usual)
}

/// True if this process runs as root. Reports otherwise that a test cannot be tried.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skipped("root");
    }
    is_root
}

/// Runs a test of this name again as nobody, if this process is root. Returns true if the caller is
/// the process to run the test.
fn is_nobody(test: &str) -> bool {
    let is_nobody = !rustix::process::geteuid().is_root();
    if !is_nobody {
        run_as_nobody(test, scratch().path(), "");
    }
    is_nobody
}

/// Variable with the value that a test passes to a process of another user.
const PASSED: &str = "FTSH_TEST_PASSED";

/// Runs a test of this binary as nobody, with a directory for files.
fn run_as_nobody(test: &str, scratch: &Path, passed: &str) {
    let own = std::env::current_exe().expect("a program");
    let copy = scratch.join("tests");
    // No other thread's child inherits a descriptor of the copy, which would make the file busy.
    let copied = Command::new("cp").args([&own, &copy]).status().expect("a process");
    assert!(copied.success());
    open_to_all(scratch);
    let status = Command::new(copy)
        .args(["--exact", &format!("tests::{test}"), "--nocapture"])
        .env("TMPDIR", scratch)
        .env(PASSED, passed)
        .uid(NOBODY)
        .gid(NOBODY)
        .status()
        .expect("a process");
    assert!(status.success(), "{test} as nobody: {status}");
}

fn open_to_all(directory: &Path) {
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(directory, all).expect("permissions");
}

/// Directory for a test. Removal succeeds in spite of permissions that programs changed.
struct Scratch(TempDir);

impl Scratch {
    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = ftsh_sys::remove_tree(self.path());
    }
}

fn scratch() -> Scratch {
    Scratch(tempfile::Builder::new().prefix("ftsh-layers-").tempdir().expect("a directory"))
}

/// Returns a new mark.
fn mark() -> String {
    format!("{:016x}", ftsh_sys::random().expect("a number"))
}

/// Begins an attempt. Returns none where namespaces or overlays are forbidden.
fn begin(directories: &[&Path]) -> Option<Attempt> {
    let places = Directories::find(directories).expect("directories");
    match Attempt::begin(&places, &mark()) {
        Ok(attempt) => Some(attempt),
        Err(refusal @ (CoverError::Namespaces { .. } | CoverError::FileSystem { .. })) => {
            skipped(&format!("namespaces and overlays: {refusal}"));
            None
        }
        Err(refusal) => panic!("{refusal}"),
    }
}

/// Runs a program within an attempt, or outside, and returns its status.
fn run(attempt: Option<&Attempt>, program: &[&str], variables: &[(&str, String)]) -> i32 {
    let (mut arguments, mut environment) = (CStringArray::default(), CStringArray::default());
    for word in program {
        arguments.push(&[word.as_bytes()]);
    }
    for (name, value) in std::env::vars_os() {
        environment.push(&[name.as_bytes(), b"=", value.as_bytes()]);
    }
    for (name, value) in variables {
        environment.push(&[name.as_bytes(), b"=", value.as_bytes()]);
    }
    let null = std::fs::File::options().write(true).open("/dev/null").expect("a file");
    let null = ftsh_sys::move_up(null.into()).expect("a number");
    let descriptors = [(std::os::fd::AsFd::as_fd(&null), 1)];
    let launch = Launch {
        program: &CString::new(program[0]).expect("no NUL"),
        arguments: &arguments,
        environment: &environment,
        directory: None,
        descriptors: &descriptors,
        umask: None,
    };
    let namespaces = attempt.and_then(Attempt::namespaces);
    let pid = ftsh_sys::spawn_within(&launch, namespaces).expect("a process");
    let waited = ftsh_sys::pidfd_open(pid).expect("a process");
    let waited = std::os::fd::AsFd::as_fd(&waited);
    let mut fds = [PollFd::new(waited, PollFlags::POLLIN)];
    loop {
        let _ = poll(&mut fds, PollTimeout::NONE);
        match ftsh_sys::wait_for(pid, false).expect("a child") {
            Some((_, ChildChange::Ended(ExitStatus::Exited(code)))) => return code,
            Some((_, ChildChange::Ended(ExitStatus::Signaled(signal)))) => return 128 + signal,
            _ => {}
        }
    }
}

/// Runs commands of the system's shell within an attempt.
fn sh(attempt: &Attempt, directory: &Path, commands: &str) -> i32 {
    let commands = format!("cd '{}' || exit 99\n{commands}", directory.display());
    run(Some(attempt), &["/bin/sh", "-c", &commands], &[])
}

/// Runs a test of this binary as a child process, with variables.
fn child(attempt: Option<&Attempt>, test: &str, variables: &[(&str, String)]) -> i32 {
    let own = std::env::current_exe().expect("a program");
    let own = own.to_str().expect("a name");
    let program = [own, "--exact", &format!("tests::{test}"), "--nocapture", "--test-threads=1"];
    run(attempt, &program, variables)
}

/// Returns names of layers in a directory.
fn layers_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory").flatten();
    let ours = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b".ftsh-"));
    ours.map(|entry| entry.path()).collect()
}

/// Asserts that nothing of an attempt on a directory is left.
fn assert_clean(directory: &Path) {
    let parent = directory.parent().expect("a parent");
    let left = [layers_in(parent), layers_in(directory)].concat();
    assert!(left.is_empty(), "left: {left:?}");
}
