//! Text of a snapshot: a line for a waiting terminal, and a page for status requests.

mod line;
mod page;

use std::time::Duration;

use super::snapshot::{Branches, Doing, Status, TryStatus};
use crate::outcome::Human;
use crate::time::Time;

pub use self::line::StatusLayout;
pub use self::line::line;
pub use self::page::page;

/// Number of tasks shown separately on a page.
pub const TASKS_ON_PAGE: usize = 20;

/// Number of tasks inspected for a line, which shows the first waiting task.
pub const TASKS_FOR_LINE: usize = 10;

/// Returns true if the line counts tenths of seconds, and changes often.
pub fn is_fast(status: &Status) -> bool {
    let now = status.now;
    let soon = |until: Time| until > now && until - now < TENTHS;
    status.tasks.iter().any(|task| match &task.doing {
        Doing::Waiting { until } => soon(*until),
        Doing::Branches(branches) => branches.next.as_ref().is_some_and(|next| soon(next.0)),
        _ => false,
    })
}

/// Duration below which tenths of seconds are shown.
const TENTHS: Duration = Duration::from_secs(10);

/// Formats the number of an attempt: `attempt 3 of 10`.
fn attempt(number: u64, times: Option<u64>) -> String {
    match times {
        Some(times) => format!("attempt {number} of {times}"),
        None => format!("attempt {number}"),
    }
}

/// Formats a remaining time: with tenths of seconds below ten seconds, then in whole seconds.
fn countdown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if duration < TENTHS {
        return format!("{seconds}.{} s", duration.subsec_millis() / 100);
    }
    Human(Duration::from_secs(seconds)).to_string()
}

/// Returns the number of branches that have not begun.
fn to_come(branches: &Branches) -> u64 {
    branches.total.saturating_sub(branches.begun())
}

/// Returns true if no more successes are needed.
fn is_enough(branches: &Branches) -> bool {
    branches.enough.is_some_and(|enough| branches.done >= enough)
}

/// Formats the number of the next attempt.
fn next_attempt(tried: &TryStatus) -> String {
    attempt(tried.attempt + 1, tried.times)
}
