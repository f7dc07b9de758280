//! Log lines for programs. Times have their zone, durations are seconds.

use std::fmt::Write;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bstr::ByteSlice;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::LogStyle;
use super::text::signal_name;
use ftsh_machine::outcome::{Failure, FailureKind};
use ftsh_machine::record::{LogEvent, LogRecord};
use ftsh_machine::trace::{StepKind, TraceStep};

/// Appends `record` to `out`, without a newline.
pub(super) fn line(
    out: &mut String,
    now: Timestamp,
    zone: &TimeZone,
    style: &LogStyle,
    record: &LogRecord,
) {
    let mut separator = '{';
    let mut put = |name: &str, value: Value| {
        field(out, separator, name, &value);
        separator = ',';
    };
    put("time", moment(now, zone, style));
    put("pid", json!(style.pid));
    put("run", json!(style.run));
    if let Some(task) = record.task {
        put("task", json!(task.0));
    }
    if let Some(branch) = &record.around.branch {
        put("branch", json!(branch));
    }
    put("script", json!(*record.file));
    if record.line > 0 {
        put("line", json!(record.line));
    }
    let (name, details) = describe(&record.event);
    put("event", json!(name));
    if let Some(attempt) = record.attempt
        && !details.iter().any(|(name, _)| *name == "attempt")
    {
        put("attempt", json!(attempt));
    }
    for (name, value) in details {
        put(name, value);
    }
    if record.uncaught {
        put("uncaught", json!(true));
    }
    out.push('}');
}

/// Appends a field of an object. The name needs no escapes.
fn field(out: &mut String, separator: char, name: &str, value: &Value) {
    out.push(separator);
    // Writing to a string can't fail.
    let _ = write!(out, "\"{name}\":{value}");
}

/// Appends an object with the given fields, in the given order.
pub(super) fn object(out: &mut String, fields: &[(&str, Value)]) {
    for (index, (name, value)) in fields.iter().enumerate() {
        field(out, if index == 0 { '{' } else { ',' }, name, value);
    }
    out.push('}');
}

/// Returns a time in the format of the style.
pub(super) fn moment(time: Timestamp, zone: &TimeZone, style: &LogStyle) -> Value {
    if style.decimal {
        json!(time.as_microsecond() as f64 / 1e6)
    } else {
        let local = time.to_zoned(zone.clone());
        json!(local.strftime("%Y-%m-%dT%H:%M:%S%.6f%:z").to_string())
    }
}

/// Returns the outcome of a branch in a word. The argument is the failure, if any.
pub(super) fn outcome(failure: Option<(FailureKind, i32)>) -> &'static str {
    failure.map_or("succeeded", |(kind, _)| kind.name())
}

/// Limit on the logged output of a failed attempt, in lines.
const MAX_OUTPUT_LINES: usize = 20;

/// Returns a field with the bytes of a word in base64, if the word is not UTF-8.
pub(super) fn word_bytes(word: &[u8]) -> Option<(&'static str, Value)> {
    word.to_str().is_err().then(|| ("word_bytes", json!(BASE64_STANDARD.encode(word))))
}

type Details = Vec<(&'static str, Value)>;

pub(super) fn seconds(duration: Duration) -> Value {
    json!(duration.as_secs_f64())
}

fn failure(failure: &Failure) -> Details {
    let mut details = vec![
        ("error", json!(failure.kind.name())),
        ("code", json!(failure.code)),
        ("message", json!(failure.message)),
    ];
    if !failure.command.is_empty() {
        details.push(("command", json!(failure.command)));
    }
    if let Some(errno) = &failure.errno {
        details.push(("errno", json!(errno)));
    }
    if let Some(elapsed) = failure.elapsed {
        details.push(("duration", seconds(elapsed)));
    }
    if !failure.trace.steps().is_empty() {
        details.push(("trace", failure.trace.steps().iter().map(step).collect()));
    }
    details
}

/// Returns a call or a branch around a failure as a JSON object.
fn step(step: &TraceStep) -> Value {
    let (kind, name, word) = match &step.kind {
        StepKind::Function(name) => ("function", Some(name), None),
        StepKind::Source => ("source", None, None),
        StepKind::Branch { name, word } => ("branch", Some(name), Some(word)),
    };
    let mut value = json!({"in": kind, "script": *step.file, "line": step.line});
    if let Some(name) = name {
        value["name"] = json!(**name);
    }
    if let Some(word) = word {
        value["word"] = json!(word);
    }
    value
}

fn describe(event: &LogEvent) -> (&'static str, Details) {
    match event {
        LogEvent::CommandFailed(cause) => ("command_failed", failure(cause)),
        LogEvent::Failed(cause) => ("failed", failure(cause)),
        LogEvent::EndedBy(cause) => ("ended_by", failure(cause)),
        LogEvent::TryFailed { failure: cause, attempts, elapsed } => {
            let mut details = failure(cause);
            // The duration of the whole `try` follows.
            details.retain(|(name, _)| *name != "duration");
            // Line of the failed command. The record's own line is the line of the `try`.
            details.push(("command_line", json!(cause.line)));
            details.extend([("attempts", json!(attempts)), ("duration", seconds(*elapsed))]);
            let lines = cause.last_lines(MAX_OUTPUT_LINES);
            if !lines.is_empty() {
                details.push(("output", json!(lines.join("\n"))));
            }
            ("try_failed", details)
        }
        LogEvent::Waiting { reason, time } => {
            ("waiting", vec![("reason", json!(reason)), ("delay", seconds(*time))])
        }
        LogEvent::CommandStarted(command) => ("command_started", vec![("command", json!(command))]),
        LogEvent::CommandSucceeded { command, elapsed, status } => {
            let code = ("code", json!(status));
            let details = vec![("command", json!(command)), code, ("duration", seconds(*elapsed))];
            ("command_succeeded", details)
        }
        LogEvent::Assigned { name, value } => {
            ("assigned", vec![("name", json!(name)), ("value", json!(value))])
        }
        LogEvent::Attempt { number, .. } => ("attempt", vec![("attempt", json!(number))]),
        LogEvent::Limit(time) => ("limit", vec![("limit", seconds(*time))]),
        LogEvent::Delay { delay, attempt, last } => (
            "delay",
            vec![("delay", seconds(*delay)), ("attempt", json!(attempt)), ("last", json!(last))],
        ),
        LogEvent::Deferred { delay, attempt } => {
            ("deferred", vec![("delay", seconds(*delay)), ("attempt", json!(attempt))])
        }
        LogEvent::Queued { channel, attempt, time } => {
            let mut details = vec![
                ("reason", json!(format!("channel {channel}"))),
                ("channel", json!(**channel)),
                ("attempt", json!(attempt)),
            ];
            details.extend(time.map(|time| ("delay", seconds(time))));
            ("waiting", details)
        }
        LogEvent::Entered { channel, attempt, waited } => (
            "entered",
            vec![
                ("channel", json!(**channel)),
                ("attempt", json!(attempt)),
                ("waited", seconds(*waited)),
            ],
        ),
        LogEvent::ResourcesAwaited { missing } => ("waiting", vec![("reason", json!(missing))]),
        LogEvent::ResourcesAvailable { waited } => {
            ("available", vec![("waited", seconds(*waited))])
        }
        LogEvent::Placed { node } => ("placed", vec![("node", json!(node))]),
        LogEvent::Avoided { node, why, time } => (
            "avoided",
            vec![("node", json!(node)), ("reason", json!(why.name())), ("delay", seconds(*time))],
        ),
        LogEvent::NotSent { engine, node, why, delay, idle } => {
            let mut details = vec![("engine", json!(engine.name())), ("reason", json!(why))];
            details.extend(node.as_ref().map(|node| ("node", json!(node))));
            details.extend(delay.map(|delay| ("delay", seconds(delay))));
            details.extend(idle.map(|idle| ("idle", seconds(idle))));
            ("not_sent", details)
        }
        LogEvent::InputEnded(attempt) => ("input_ended", vec![("attempt", json!(attempt))]),
        LogEvent::TrySucceeded(attempt) => ("try_succeeded", vec![("attempt", json!(attempt))]),
        LogEvent::Catch => ("catch", vec![]),
        LogEvent::Finally => ("finally", vec![]),
        LogEvent::FinallyCut { begun } => ("finally_cut", vec![("begun", json!(begun))]),
        LogEvent::FinallyContinues { time } => {
            ("finally_continues", vec![("limit", seconds(*time))])
        }
        LogEvent::RetriesEnded(_) => ("retries_ended", vec![]),
        LogEvent::GroupEnded(branch) => ("group_ended", vec![("branch", json!(branch.0))]),
        LogEvent::Canceled => ("canceled", vec![]),
        LogEvent::Condition(value) => ("condition", vec![("value", json!(value))]),
        LogEvent::Iteration { kind, name, value } => (
            "iteration",
            vec![("loop", json!(kind)), ("name", json!(name)), ("value", json!(value))],
        ),
        LogEvent::BranchEnded { name, word, place: _, node, failure, attempts, elapsed } => {
            let code = failure.map_or(0, |(_, code)| code);
            let mut details = vec![
                ("name", json!(name)),
                ("word", json!(word.to_str_lossy())),
                ("outcome", json!(outcome(*failure))),
                ("code", json!(code)),
                ("attempts", json!(attempts)),
                ("duration", seconds(*elapsed)),
            ];
            details.extend(word_bytes(word));
            details.extend(node.as_ref().map(|node| ("node", json!(node))));
            ("branch_ended", details)
        }
        LogEvent::BranchSkipped { name, word, place: _ } => {
            let mut details = vec![("name", json!(name)), ("word", json!(word.to_str_lossy()))];
            details.extend(word_bytes(word));
            ("branch_skipped", details)
        }
        LogEvent::Returned(value) => ("returned", vec![("value", json!(value))]),
        LogEvent::Spawned { pid, command } => {
            ("spawned", vec![("process", json!(pid)), ("command", json!(command))])
        }
        LogEvent::Exited { pid, status } => {
            ("exited", vec![("process", json!(pid)), ("status", json!(status))])
        }
        LogEvent::Signaled { pid, signal } => {
            ("signaled", vec![("process", json!(pid)), ("signal", json!(signal_name(*signal)))])
        }
        LogEvent::Emptying { scope, kill } => {
            ("emptying", vec![("scope", json!(scope)), ("kill", json!(kill))])
        }
        LogEvent::Emptied { scope, processes, elapsed } => (
            "emptied",
            vec![
                ("scope", json!(scope)),
                ("processes", json!(processes)),
                ("duration", seconds(*elapsed)),
            ],
        ),
        LogEvent::Adopted { pid, command } => {
            ("adopted", vec![("process", json!(pid)), ("command", json!(command))])
        }
        LogEvent::Survivor { pid, command } => {
            ("survivor", vec![("process", json!(pid)), ("command", json!(command))])
        }
        LogEvent::Hanging { call } => ("hanging", vec![("call", json!(call))]),
        LogEvent::Interrupted(signal) => {
            ("interrupted", vec![("signal", json!(signal_name(*signal)))])
        }
        LogEvent::Suspended(signal) => {
            ("suspended", vec![("signal", json!(signal.map(signal_name)))])
        }
        LogEvent::Resumed { lost } => ("resumed", vec![("lost", json!(lost))]),
        LogEvent::Note(note) => ("note", vec![("message", json!(note))]),
        LogEvent::Span(_) => ("span", vec![]),
    }
}
