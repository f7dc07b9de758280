//! Status page, written on request by a signal.

use std::fmt::Write;

use super::{attempt, countdown, is_enough, next_attempt, to_come};
use crate::outcome::Human;
use crate::status::snapshot::{Branches, Doing, Status, TaskStatus, TryStatus};
use crate::time::Time;
use ftsh_syntax::diagnostic::{excerpt, printable};

/// Maximum number of lines for the tasks beyond the first ones.
const MAX_GROUPS: usize = 10;

/// Describes every task: activity, line, duration and next event. Each line ends in a newline.
/// `script` is the name of the run, `pid` its process id.
pub fn page(status: &Status, script: &str, pid: u32) -> String {
    let now = status.now;
    let script = printable(script);
    // Writing to a string cannot fail.
    let mut text = format!("ftsh: status of {script} [{pid}] after {}\n", Human(now.elapsed()));
    for task in &status.tasks {
        let main = task.item.is_none() && task.task.0 == 0;
        let item = match &task.item {
            Some(item) => format!("{}, ", printable(item)),
            None if main => String::new(),
            None => "stage, ".into(),
        };
        let file = task.source.name();
        let place = if **file == *script { String::new() } else { format!("{file} ") };
        let _ =
            writeln!(text, "  {item}{place}line {}: {}", task.line, describe_activity(task, now));
        let source = task.source.line_text(task.line).trim();
        if !source.is_empty() {
            let _ = writeln!(text, "    {} | {}", task.line, excerpt(&status.secrets.hide(source)));
        }
        let waits = matches!(task.doing, Doing::Waiting { .. } | Doing::Entering(_));
        for (index, tried) in task.tries.iter().enumerate() {
            describe_try(&mut text, tried, now, waits && index == 0);
        }
    }
    if status.tasks.is_empty() {
        text.push_str("  nothing runs\n");
    }
    let more: usize = status.more.values().sum();
    if more > 0 {
        let _ = writeln!(text, "  and {more} more:");
        let mut groups: Vec<_> = status.more.iter().collect();
        groups.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for ((file, line, describe_activity), count) in groups.iter().take(MAX_GROUPS) {
            let place = if **file == *script { String::new() } else { format!("{file} ") };
            let _ = writeln!(text, "    {place}line {line}: {count} {describe_activity}");
        }
        if groups.len() > MAX_GROUPS {
            let _ = writeln!(text, "    and at {} more lines", groups.len() - MAX_GROUPS);
        }
    }
    status.secrets.hide_in(&mut text);
    text
}

/// Describes an activity: `running wget for 12 s`.
fn describe_activity(task: &TaskStatus, now: Time) -> String {
    let since = Human(now - task.since);
    match &task.doing {
        Doing::Computing => "computing".into(),
        Doing::Command(command) => {
            format!("running `{}` for {since}", excerpt(&printable(command)))
        }
        Doing::Entering(channel) => match task.tries.first() {
            Some(tried) => {
                let next = next_attempt(tried);
                format!("{next}, waiting for channel {channel} for {since}")
            }
            None => format!("waiting for channel {channel} for {since}"),
        },
        Doing::Printing => format!("writing the output of an attempt for {since}"),
        Doing::Files => format!("waiting for a file or directory for {since}"),
        Doing::Sleeping { until } => {
            format!("sleeping for {since}, {} to go", countdown(*until - now))
        }
        Doing::Waiting { until } => match task.tries.first() {
            Some(tried) => {
                let next = next_attempt(tried);
                format!("waiting for {since}, {next} in {}", countdown(*until - now))
            }
            None => format!("waiting for {since}"),
        },
        Doing::Placing => format!("waiting for a machine for {since}"),
        Doing::Elsewhere(node) => format!("running on {node} for {since}"),
        Doing::Branches(branches) => describe_branches(branches),
        Doing::Stages => format!("a pipeline for {since}"),
        Doing::Beside => format!("a group and the command beside it for {since}"),
        Doing::CleaningUp => format!("waiting for `finally` groups for {since}"),
        Doing::Ending => format!("ending its processes for {since}"),
    }
}

fn describe_branches(branches: &Branches) -> String {
    let Branches {
        keyword, variable, total, done, failed, running, waiting, queued, gated, ..
    } = branches;
    if branches.ending {
        let why = if is_enough(branches) { "enough succeeded" } else { "failed" };
        let begun = running + waiting + queued;
        return format!("{keyword} {variable}: {why}, ending {begun} branches");
    }
    let to_come = to_come(branches);
    let mut text = format!("{keyword} {variable}: {done} of {total} done, {running} running");
    if *failed > 0 {
        let _ = write!(text, ", {failed} failed");
    }
    if *waiting > 0 {
        let _ = write!(text, ", {waiting} waiting after a failure");
    }
    if *queued > 0 {
        let _ = write!(text, ", {queued} waiting for channels");
    }
    if *gated {
        text += ", the next waits for memory or load";
    }
    if to_come > 0 {
        let _ = write!(text, ", {to_come} to come");
    }
    text
}

fn describe_try(text: &mut String, tried: &TryStatus, now: Time, waits: bool) {
    let left = tried.deadline.remaining(now).map(countdown);
    // The awaited attempt was described before.
    let attempt = (!waits).then(|| attempt(tried.attempt, tried.times));
    let left = left.map(|left| format!("{left} left"));
    let parts: Vec<String> = attempt.into_iter().chain(left).collect();
    if !parts.is_empty() {
        let _ = writeln!(text, "    `try` at line {}: {}", tried.line, parts.join(", "));
    }
    if let Some(failure) = &tried.failure {
        let message = printable(&failure.message);
        let _ = writeln!(text, "    last failure: line {}: {}", failure.line, excerpt(&message));
    }
}
