//! Status line of a terminal while a run waits.

use std::time::Duration;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{TENTHS, countdown, is_enough, next_attempt};
use crate::outcome::{Failure, Human};
use crate::status::snapshot::{Branches, Doing, Status, TaskStatus};
use crate::time::Time;
use ftsh_syntax::diagnostic::printable;

/// Minimum number of columns for the failure; with fewer columns, the rest is abbreviated.
const MIN_FAILURE_WIDTH: usize = 30;
/// Width of the bar of a `forall`, in columns.
const BAR_WIDTH: usize = 10;
/// Number of columns below which the failure is omitted.
const MIN_CUT_FAILURE_WIDTH: usize = 8;

/// Options of the status line.
#[derive(Clone, Copy, Debug)]
pub struct StatusLayout {
    /// Number of columns.
    pub columns: usize,
    /// True if failures name the line of the script.
    pub has_places: bool,
}

/// Returns the status line; `None` if no task waits between attempts.
///
/// The outermost loop takes precedence. A `forall` shows the counts of its branches; otherwise, the
/// first delay is shown.
pub fn line(status: &Status, layout: StatusLayout) -> Option<String> {
    for task in &status.tasks {
        match &task.doing {
            Doing::Branches(branches) => return Some(of_branches(branches, status.now, layout)),
            Doing::Waiting { until } => return of_try(task, *until, status.now, layout),
            Doing::Entering(channel) => return of_channel(task, channel, status.now, layout),
            _ => {}
        }
    }
    None
}

/// `attempt 3 of 10 in 4.2 s, 3 min 12 s left: line 3: wget … exited with 4`
fn of_try(task: &TaskStatus, until: Time, now: Time, layout: StatusLayout) -> Option<String> {
    let tried = task.tries.first()?;
    let wait = until - now;
    let left = tried.deadline.remaining(now);
    let mut full = format!("{} in {}", next_attempt(tried), countdown(wait));
    let times = tried.times.map(|times| format!("/{times}")).unwrap_or_default();
    let mut brief = format!("{}{times} in {}", tried.attempt + 1, compact(wait));
    if let Some(left) = left {
        full.push_str(&format!(", {} left", countdown(left)));
        brief.push_str(&format!(", {} left", compact(left)));
    }
    Some(joined(&full, &brief, tried.failure.as_deref(), layout))
}

/// `attempt 3 of 10 waiting for channel mirror, 3 min 12 s left: line 3: wget … exited with 4`
fn of_channel(task: &TaskStatus, channel: &str, now: Time, layout: StatusLayout) -> Option<String> {
    let tried = task.tries.first()?;
    let mut full = format!("{} waiting for channel {channel}", next_attempt(tried));
    let mut brief = format!("waiting for channel {channel}");
    if let Some(left) = tried.deadline.remaining(now) {
        full.push_str(&format!(", {} left", countdown(left)));
        brief.push_str(&format!(", {} left", compact(left)));
    }
    Some(joined(&full, &brief, tried.failure.as_deref(), layout))
}

/// `forall [###x-    ] 30 of 100 done, 8 running, 9 failed, 3 waiting, next in 4.2 s, about 5 min
/// left: line 3: …`
fn of_branches(branches: &Branches, now: Time, layout: StatusLayout) -> String {
    let Branches { keyword, total, done, failed, running, waiting, queued, gated, next, .. } =
        branches;
    let counts = format!("{done} of {total} done, {running} running");
    let mut full = format!("{keyword} {} {counts}", bar(branches));
    let mut brief = format!("{done}/{total} done, {running} run");
    let mut add = |long: &str, short: &str| {
        full.push_str(&format!(", {long}"));
        brief.push_str(&format!(", {short}"));
    };
    if *failed > 0 {
        add(&format!("{failed} failed"), &format!("{failed} fail"));
    }
    if branches.ending {
        let why = if is_enough(branches) { "enough: " } else { "" };
        add(&format!("{why}ending the others"), "ending");
        return joined(&full, &brief, None, layout);
    }
    if *waiting > 0 {
        add(&format!("{waiting} waiting"), &format!("{waiting} wait"));
    }
    if *queued > 0 {
        add(&format!("{queued} waiting for channels"), &format!("{queued} queued"));
    }
    if *gated {
        add("the next waits for memory or load", "gated");
    }
    if let Some((next, _)) = next {
        add(&format!("next in {}", countdown(*next - now)), &compact(*next - now));
    }
    if let Some(left) = time_left(branches, now) {
        add(&format!("about {} left", Human(left)), &format!("~{} left", compact(left)));
    }
    joined(&full, &brief, next.as_ref().map(|(_, failure)| &**failure), layout)
}

/// Returns a bar such as `[####x--   ]`: the shares of successful, failed, begun and future
/// branches. Shares are rounded down, except for that of the future branches.
fn bar(branches: &Branches) -> String {
    let Branches { total, done, failed, .. } = branches;
    let until = |count: u64| {
        let share = u128::from(count.min(*total)) * BAR_WIDTH as u128 / u128::from((*total).max(1));
        share as usize
    };
    let (done, ended) = (until(*done), until(done + failed));
    let begun = until(branches.begun());
    let cells = [
        "#".repeat(done),
        "x".repeat(ended - done),
        "-".repeat(begun - ended),
        " ".repeat(BAR_WIDTH - begun),
    ];
    format!("[{}]", cells.concat())
}

/// Estimates the remaining time at the current speed; `None` before the first end of a branch.
fn time_left(branches: &Branches, now: Time) -> Option<Duration> {
    let Branches { total, done, failed, .. } = branches;
    let (ended, wanted) = match branches.enough {
        Some(enough) => (*done, enough),
        None => (done + failed, *total),
    };
    let rest = wanted.checked_sub(ended).filter(|rest| *rest > 0 && ended > 0)?;
    let seconds = (now - branches.since).as_secs_f64() * rest as f64 / ended as f64;
    Duration::try_from_secs_f64(seconds.ceil().max(1.0)).ok()
}

/// Joins the next event and the last failure, as far as the columns suffice.
fn joined(full: &str, brief: &str, failed: Option<&Failure>, layout: StatusLayout) -> String {
    let StatusLayout { columns, has_places } = layout;
    let message = failed.map(|failure| printable(&failure.message)).unwrap_or_default();
    let place = failed.filter(|_| has_places).map(|failure| format!("line {}: ", failure.line));
    let place = place.unwrap_or_default();
    let needed = MIN_FAILURE_WIDTH.min(place.width() + message.width());
    if full.width() + 2 + needed <= columns {
        let full =
            if message.is_empty() { full.into() } else { format!("{full}: {place}{message}") };
        return cut(&full, columns);
    }
    if brief.width() + 2 + MIN_CUT_FAILURE_WIDTH > columns || message.is_empty() {
        return cut(brief, columns);
    }
    cut(&format!("{brief}: {message}"), columns)
}

/// Formats a duration in few characters: `4.2s`, `42s`, `4m58s`, `5h12m`, `3d4h`.
fn compact(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        _ if duration < TENTHS => format!("{seconds}.{}s", duration.subsec_millis() / 100),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// Cuts a text to a number of columns.
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
