//! Reports of what tests leave out on this machine.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Lines that have been printed.
static LINES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Prints that this thread's test, or a part of it, needs something that this machine lacks. A line
/// is printed once.
///
/// The test harness captures what `eprintln!` prints and drops it if the test passes, but not what
/// is written to the stream.
pub(crate) fn skipped(needs: &str) {
    let thread = thread::current();
    // The main thread runs the tests if they run one by one.
    let test = thread.name().filter(|name| *name != "main").unwrap_or("a test");
    let line = format!("skipped: {test} needs {needs}\n");
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.insert(line.clone()) {
        let _ = io::stderr().write_all(line.as_bytes());
    }
}
