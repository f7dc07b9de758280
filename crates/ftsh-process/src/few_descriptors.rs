//! Support for tests that use up all descriptors of their process.

use std::env;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Environment variable of a test process that runs one test.
const ALONE: &str = "FTSH_TEST_ALONE";

/// Returns true in a process that runs only the test of this name. Elsewhere runs the test in such
/// a process and returns false.
pub(crate) fn is_alone(name: &str) -> bool {
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let name = name.split_once("::").map_or(name, |(_crate, rest)| rest);
    let program = env::current_exe().expect("a test has a program");
    let run = Command::new(program).args(["--exact", name, "--nocapture"]).env(ALONE, "1").output();
    let run = run.expect("a test can start itself");
    let text = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && text.contains("1 passed"), "{text}{errors}");
    false
}

/// Calls a function while this process can open no file.
pub(crate) fn none_during<T>(call: impl FnOnce() -> T) -> T {
    let (usual, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, 0, most).expect("a limit");
    let result = call();
    setrlimit(Resource::RLIMIT_NOFILE, usual, most).expect("a limit");
    result
}

/// Calls a function. During the first `time` of the call, this process can open no file.
pub(crate) fn none_for<T>(time: Duration, call: impl FnOnce() -> T) -> T {
    let (usual, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, 0, most).expect("a limit");
    let end = thread::spawn(move || {
        thread::sleep(time);
        setrlimit(Resource::RLIMIT_NOFILE, usual, most).expect("a limit");
    });
    let result = call();
    end.join().expect("an end");
    result
}
