//! World of a storm: copies of directories, and runs in them.

use std::io;

use crate::spec::RunSpec;
use crate::trace::RunTrace;
use crate::tree::Changes;

/// World in which a storm runs a script.
pub trait StormWorld {
    /// Begins with a fresh copy of the directories, and drops the earlier copy.
    fn renew(&mut self) -> io::Result<()>;

    /// Runs the script in the present copy. A continued run keeps the output, the trace and the
    /// journal of the last run.
    fn run(&mut self, spec: &RunSpec, is_continued: bool) -> io::Result<RunEnd>;

    /// Returns the changes in the present copy.
    fn changes(&mut self) -> io::Result<Changes>;
}

/// End of a run.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// Exit status, as a parent shell would report it.
    pub status: i32,
    /// Signal that interrupts the storm.
    pub interrupt: Option<i32>,
    /// Standard output.
    pub output: Vec<u8>,
    /// Standard error.
    pub errors: Vec<u8>,
    /// Names of programs of [`RunSpec::programs`] that ran the real program.
    pub real: Vec<String>,
    /// Commands.
    pub trace: RunTrace,
}
