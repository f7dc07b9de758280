//! Tests in a process of their own, from which they take all free descriptors.

use std::env;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Set in such a process.
const ALONE: &str = "FTSH_TEST_ALONE";

/// Returns true in a process that runs only the test of this name, and otherwise runs the test there.
pub fn is_alone(name: &str) -> bool {
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

/// Calls a function while this process can open nothing.
pub fn none_during<T>(call: impl FnOnce() -> T) -> T {
    let (usual, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, 0, most).expect("a limit");
    let result = call();
    setrlimit(Resource::RLIMIT_NOFILE, usual, most).expect("a limit");
    result
}

/// Calls a function while this process can open nothing for some time.
pub fn none_for<T>(time: Duration, call: impl FnOnce() -> T) -> T {
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
