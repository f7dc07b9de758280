//! The line that a terminal shows while a run waits.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{countdown, left, next_attempt};
use crate::diagnostic::printable;
use crate::machine::outcome::Failure;
use crate::machine::status::{Branches, Doing, Status, TaskStatus};
use crate::machine::time::Time;

/// Columns that are left for what failed, or the rest is said in fewer words.
const LEAST_STORY: usize = 30;

/// What to show in a line of so many columns; nothing if nothing waits between attempts.
///
/// Outer loops win: of a `forall`, its branches are counted; else the first delay is told.
pub fn line(status: &Status, columns: usize) -> Option<String> {
    for task in &status.tasks {
        match &task.doing {
            Doing::Branches(branches) => return Some(of_branches(branches, status.now, columns)),
            Doing::Waiting { until } => return of_try(task, *until, status.now, columns),
            _ => {}
        }
    }
    None
}

/// `attempt 3 of 10 in 4.2 s, 3 min 12 s left: line 3: wget … exited with 4`
fn of_try(task: &TaskStatus, until: Time, now: Time, columns: usize) -> Option<String> {
    let tried = task.tries.first()?;
    let wait = countdown(until - now);
    let left = left(tried.deadline, now).map(countdown);
    let failed = tried.failure.as_deref().map(told).unwrap_or_default();
    let full = match &left {
        Some(left) => format!("{} in {wait}, {left} left", next_attempt(tried)),
        None => format!("{} in {wait}", next_attempt(tried)),
    };
    let times = tried.times.map(|times| format!("/{times}")).unwrap_or_default();
    let left = left.map(|left| format!(", {left} left")).unwrap_or_default();
    let brief = format!("{}{times} in {wait}{left}", tried.attempt + 1);
    Some(joined(&full, &brief, &failed, columns))
}

/// `forall: 12 of 100 done, 8 running, 3 failed, next in 4.2 s: line 3: …`
fn of_branches(branches: &Branches, now: Time, columns: usize) -> String {
    let Branches { total, done, running, waiting, next, .. } = branches;
    let next_in = next.as_ref().map(|(time, _)| countdown(*time - now));
    let failed = next.as_ref().map(|(_, failure)| told(failure)).unwrap_or_default();
    let mut full = format!("forall: {done} of {total} done, {running} running");
    let mut brief = format!("{done}/{total} done, {running} run");
    if *waiting > 0 {
        full.push_str(&format!(", {waiting} failed"));
        brief.push_str(&format!(", {waiting} fail"));
    }
    if let Some(wait) = next_in {
        full.push_str(&format!(", next in {wait}"));
        brief.push_str(&format!(", {wait}"));
    }
    joined(&full, &brief, &failed, columns)
}

fn told(failure: &Failure) -> String {
    printable(&format!("line {}: {}", failure.line, failure.message))
}

/// What happens next, and what had failed as far as there is room.
fn joined(full: &str, brief: &str, failed: &str, columns: usize) -> String {
    let needed = LEAST_STORY.min(failed.width());
    let head = if full.width() + 2 + needed <= columns { full } else { brief };
    cut(&if failed.is_empty() { head.to_owned() } else { format!("{head}: {failed}") }, columns)
}

/// The beginning of a text that fits in so many columns.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 1; // for the ellipsis
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    let mut short: String = text.chars().take_while(fits).collect();
    if columns > 0 {
        short.push('…');
    }
    short
}
