//! What a run is doing, in words: a line while it waits at a terminal, and a page for who asks.

mod line;
mod page;

pub use self::line::line;
pub use self::page::page;

use std::time::Duration;

use crate::outcome::Human;
use crate::status::snapshot::{Branches, Doing, Status, TryStatus};
use crate::time::Time;

/// Tasks that a page shows one by one.
pub const TASKS_ON_PAGE: usize = 20;

/// Tasks that a line is made of: it tells of the first one that waits.
pub const TASKS_FOR_LINE: usize = 10;

/// Whether a line counts tenths of seconds, so that it changes often.
pub fn is_fast(status: &Status) -> bool {
    let now = status.now;
    let soon = |until: Time| until > now && until - now < TENTHS;
    status.tasks.iter().any(|task| match &task.doing {
        Doing::Waiting { until } => soon(*until),
        Doing::Branches(branches) => branches.next.as_ref().is_some_and(|next| soon(next.0)),
        _ => false,
    })
}

/// Shorter times are told in tenths of seconds.
const TENTHS: Duration = Duration::from_secs(10);

/// `attempt 3 of 10`
fn attempt(number: u64, times: Option<u64>) -> String {
    match times {
        Some(times) => format!("attempt {number} of {times}"),
        None => format!("attempt {number}"),
    }
}

/// How long until a moment, if there is such a moment.
fn left(deadline: Option<Time>, now: Time) -> Option<Duration> {
    deadline.map(|deadline| deadline - now)
}

/// A time that is counted down: tenths of seconds up to ten seconds, then whole ones.
fn countdown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if duration < TENTHS {
        return format!("{seconds}.{} s", duration.subsec_millis() / 100);
    }
    Human(Duration::from_secs(seconds)).to_string()
}

/// How many branches have not begun.
fn to_come(branches: &Branches) -> u64 {
    branches.total.saturating_sub(branches.begun())
}

/// Whether no more successes are wanted.
fn is_enough(branches: &Branches) -> bool {
    branches.enough.is_some_and(|enough| branches.done >= enough)
}

/// The number of the attempt that comes after the present one.
fn next_attempt(tried: &TryStatus) -> String {
    attempt(tried.attempt + 1, tried.times)
}
