//! Scores that determine the order in which the kernel kills processes when memory runs out.
//!
//! The kernel must kill commands before the shell, which cleans up after them. Raising a score
//! takes no privilege, and therefore each command raises its own score.

use std::ffi::CStr;
use std::fs;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

/// Increase of the score, in thousandths of the memory.
///
/// The increase exceeds the memory of a shell, and still leaves the choice among commands and other
/// programs to their size.
const RAISE: i32 = 100;
const HIGHEST: i32 = 1000;

/// File with the score of a process.
const FILE: &CStr = c"/proc/self/oom_score_adj";

/// Returns the score for commands, or `None` if the shell has the highest score, or the system has
/// no scores.
pub(super) fn of_commands() -> Option<&'static [u8]> {
    static SCORE: OnceLock<Option<String>> = OnceLock::new();
    let score = SCORE.get_or_init(|| {
        let own: i32 = fs::read_to_string(FILE.to_str().ok()?).ok()?.trim().parse().ok()?;
        (own < HIGHEST).then(|| (own + RAISE).min(HIGHEST).to_string())
    });
    score.as_deref().map(str::as_bytes)
}

/// Sets the score of this process.
///
/// The function is async-signal-safe, and ignores failures.
pub(super) fn set(score: &[u8]) {
    if let Ok(file) = rustix::fs::open(FILE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::io::write(file, score);
    }
}
