//! The order in which the kernel kills when memory runs out: commands before the shell that has to
//! clean up after them. Raising one's own score takes no privilege, so commands raise theirs.

use std::ffi::CStr;
use std::fs;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

/// In thousandths of the memory there is: more than a shell takes, and little enough to leave the
/// choice among commands and other programs to their size.
const RAISE: i32 = 100;
const HIGHEST: i32 = 1000;

/// Where a process has its score.
const FILE: &CStr = c"/proc/self/oom_score_adj";

/// The score that a command gives itself; none if the shell has the highest, or the system has no
/// scores.
pub(super) fn of_commands() -> Option<&'static [u8]> {
    static SCORE: OnceLock<Option<String>> = OnceLock::new();
    let score = SCORE.get_or_init(|| {
        let own: i32 = fs::read_to_string(FILE.to_str().ok()?).ok()?.trim().parse().ok()?;
        (own < HIGHEST).then(|| (own + RAISE).min(HIGHEST).to_string())
    });
    score.as_deref().map(str::as_bytes)
}

/// Sets the score of this process. Async-signal-safe; a failure changes nothing else.
pub(super) fn set(score: &[u8]) {
    if let Ok(file) = rustix::fs::open(FILE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::io::write(file, score);
    }
}
