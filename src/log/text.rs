//! Log lines as text: time, process, script, line and event.

use std::fmt::{self, Write};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::LogStyle;
use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::Human;
use ftsh_machine::record::{AvoidReason, LONG_DELAY, LogEvent, LogRecord};

/// Appends `record` to `out`, without a newline.
pub(super) fn line(
    out: &mut String,
    now: Timestamp,
    zone: &TimeZone,
    style: &LogStyle,
    record: &LogRecord,
) {
    // Writing to a string can't fail.
    let _ = write_line(&mut OneLine(out), now, zone, style, record);
}

fn write_line(
    out: &mut OneLine,
    now: Timestamp,
    zone: &TimeZone,
    style: &LogStyle,
    record: &LogRecord,
) -> fmt::Result {
    if style.decimal {
        let micros = now.as_microsecond();
        write!(out, "{}.{:06}", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000))?;
    } else {
        write!(out, "{}", now.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S%.6f"))?;
    }
    write!(out, " [{}] {}", style.pid, record.file)?;
    if record.line > 0 {
        write!(out, ":{}", record.line)?;
    }
    let around = &record.around;
    let is_named = |task: &TaskId| task.0 > 0 && (around.is_stage || around.branch.is_none());
    match (&around.branch, record.task.filter(is_named)) {
        (Some(branch), Some(task)) => write!(out, " ({branch}, task {})", task.0)?,
        (Some(branch), None) => write!(out, " ({branch})")?,
        (None, Some(task)) => write!(out, " (task {})", task.0)?,
        (None, None) => {}
    }
    write!(out, " {}", EventText(&record.event))?;
    match record.event.delay() {
        Some(delay) if delay > LONG_DELAY => write_moment(out, now, delay, zone, style),
        _ => Ok(()),
    }
}

/// Writes the end of a long delay as a time of day.
fn write_moment(
    out: &mut OneLine,
    now: Timestamp,
    delay: Duration,
    zone: &TimeZone,
    style: &LogStyle,
) -> fmt::Result {
    // Some delays outlast the calendar.
    let Ok(then) = now.checked_add(delay) else { return Ok(()) };
    if style.decimal {
        return write!(out, ", at {}", then.as_second());
    }
    let (now, then) = (now.to_zoned(zone.clone()), then.to_zoned(zone.clone()));
    let format = if now.date() == then.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    write!(out, ", at {}", then.strftime(format))
}

/// An event in words.
pub struct EventText<'a>(
    /// Event to display.
    pub &'a LogEvent,
);

impl fmt::Display for EventText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0 {
            LogEvent::CommandFailed(failure) | LogEvent::Failed(failure) => {
                write!(f, "failed: {}", failure.message)
            }
            LogEvent::EndedBy(failure) => write!(f, "ended by: {}", failure.message),
            LogEvent::TryFailed { failure, attempts, elapsed } => {
                let times = if *attempts == 1 { "attempt" } else { "attempts" };
                write!(f, "try gave up after {attempts} {times} in {}: ", Human(*elapsed))?;
                write!(f, "{}", failure.message)
            }
            LogEvent::Waiting { reason, time } => {
                write!(f, "waiting for up to {}: {reason}", Human(*time))
            }
            LogEvent::CommandStarted(command) => write!(f, "start: {command}"),
            LogEvent::CommandSucceeded { command, elapsed, status } => {
                let accepted = if *status == 0 { "" } else { ", accepted" };
                write!(f, "exit {status} after {}{accepted}: {command}", Human(*elapsed))
            }
            LogEvent::Assigned { name, value: Some(value) } => write!(f, "set {name}={value}"),
            LogEvent::Assigned { name, value: None } => write!(f, "unset {name}"),
            LogEvent::Attempt { number, .. } => write!(f, "try: attempt {number}"),
            LogEvent::Limit(time) => write!(f, "limit: {}", Human(*time)),
            LogEvent::Delay { delay, attempt, last } => {
                let last = if *last { ", the last" } else { "" };
                write!(f, "try: {} until attempt {attempt}{last}", Human(*delay))
            }
            LogEvent::Deferred { delay, attempt } => {
                write!(f, "try: deferred, {} until attempt {attempt} is made again", Human(*delay))
            }
            LogEvent::Queued { channel, attempt, time } => {
                write!(f, "try: attempt {attempt} waits for channel {channel}")?;
                match time {
                    Some(time) => write!(f, ", for up to {}", Human(*time)),
                    None => Ok(()),
                }
            }
            LogEvent::Entered { channel, attempt, waited } => {
                write!(f, "try: attempt {attempt} goes through channel {channel}")?;
                write!(f, " after {}", Human(*waited))
            }
            LogEvent::ResourcesAwaited { missing } => {
                write!(f, "forall: the next branch waits: {missing}")
            }
            LogEvent::ResourcesAvailable { waited } => {
                write!(f, "forall: the next branch begins after a wait of {}", Human(*waited))
            }
            LogEvent::InputEnded(attempt) => write!(
                f,
                "try: the standard input has ended since the first attempt, so that attempt {attempt} \
                 reads nothing; with `same input` each attempt reads all of it"
            ),
            LogEvent::TrySucceeded(attempt) => write!(f, "try: attempt {attempt} succeeded"),
            LogEvent::Catch => f.write_str("catch"),
            LogEvent::Finally => f.write_str("finally"),
            LogEvent::FinallyCut { begun: true } => f.write_str("finally is cut short"),
            LogEvent::FinallyCut { begun: false } => {
                f.write_str("finally isn't run: there is no time left for it")
            }
            LogEvent::FinallyContinues { time } => write!(
                f,
                "finally continues for up to {}: everything around it is canceled",
                Human(*time)
            ),
            LogEvent::GroupEnded(branch) => write!(f, "output of task {} is written", branch.0),
            LogEvent::RetriesEnded(_) => f.write_str("retries have ended"),
            LogEvent::Span(_) => f.write_str("an event of a trace"),
            LogEvent::Canceled => f.write_str("canceled"),
            LogEvent::Placed { node } => write!(f, "branch begins on {node}"),
            LogEvent::Avoided { node, why, time } => {
                let what = match why {
                    AvoidReason::Refused => "it refused a branch",
                    AvoidReason::Lost => "a branch was lost there",
                    AvoidReason::Failed => "a branch failed there",
                };
                write!(f, "{node} is avoided for {}: {what}", Human(*time))
            }
            LogEvent::NotSent { engine, node, why, delay, idle } => {
                let engine = engine.name();
                if let Some(idle) = idle {
                    write!(f, "no machine has run a branch for {}; ", Human(*idle))?;
                }
                match node {
                    Some(node) => write!(f, "{engine}: {node} did not run the branch: {why}")?,
                    None => write!(f, "{engine} did not run the branch: {why}")?,
                }
                match delay {
                    Some(delay) => write!(f, "; {} until it is asked again", Human(*delay)),
                    None => Ok(()),
                }
            }
            LogEvent::Condition(value) => write!(f, "condition: {value}"),
            LogEvent::Iteration { kind, name, value } => write!(f, "{kind}: {name}={value}"),
            LogEvent::BranchEnded { name, word, node, failure, attempts, elapsed, .. } => {
                write!(f, "forall: {name}={word} ")?;
                match failure {
                    None => f.write_str("succeeded")?,
                    Some((kind, code)) => write!(f, "failed ({} {code})", kind.name())?,
                }
                if let Some(node) = node {
                    write!(f, " on {node}")?;
                }
                write!(f, " after {}", Human(*elapsed))?;
                if *attempts > 1 { write!(f, ", {attempts} attempts") } else { Ok(()) }
            }
            LogEvent::BranchSkipped { name, word, .. } => {
                write!(f, "forall: {name}={word} skipped")
            }
            LogEvent::Returned(value) => write!(f, "return {value}"),
            LogEvent::Spawned { pid, command } => write!(f, "process {pid} started: {command}"),
            LogEvent::Exited { pid, status } => write!(f, "process {pid} ended: {status}"),
            LogEvent::Signaled { pid, signal } => {
                write!(f, "signal {} to process {pid}", signal_name(*signal))
            }
            LogEvent::Emptying { scope, kill: false } => write!(f, "ending scope {scope}"),
            LogEvent::Emptying { scope, kill: true } => write!(f, "killing scope {scope}"),
            LogEvent::Emptied { scope, processes, elapsed } => {
                let noun = if *processes == 1 { "process" } else { "processes" };
                write!(f, "scope {scope} is empty: {processes} {noun} in {}", Human(*elapsed))
            }
            LogEvent::Adopted { pid, command } => write!(f, "process {pid} adopted: {command}"),
            LogEvent::Survivor { pid, command } => {
                write!(f, "process {pid} can't be killed: {command}")
            }
            LogEvent::Hanging { call } => {
                write!(f, "{call} hangs in the kernel, and is left behind")
            }
            LogEvent::Interrupted(signal) => {
                write!(f, "ended by signal {}", signal_name(*signal))
            }
            LogEvent::Suspended(Some(signal)) => {
                write!(f, "suspended by signal {}: the next start resumes the run", signal_name(*signal))
            }
            LogEvent::Suspended(None) => {
                f.write_str("suspended, because the time for this start is over: the next start resumes the run")
            }
            LogEvent::Resumed { lost: 0 } => f.write_str("resumed"),
            LogEvent::Resumed { lost } => {
                let noun = if *lost == 1 { "command was" } else { "commands were" };
                write!(f, "resumed: {lost} {noun} running when the shell ended")
            }
            LogEvent::Note(note) => f.write_str(note),
        }
    }
}

/// Returns the name of a signal, such as `SIGTERM`, or its number.
pub fn signal_name(signal: i32) -> String {
    nix::sys::signal::Signal::try_from(signal)
        .map_or_else(|_| signal.to_string(), |signal| signal.as_str().to_owned())
}

/// Returns the text on a single line, with control characters escaped.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let _ = OneLine(&mut line).write_str(text);
    line
}

struct OneLine<'a>(&'a mut String);

impl Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '\u{2028}' | '\u{2029}' => write!(self.0, "{}", c.escape_unicode())?,
                // As in the fields of results.
                '\0'..' ' | '\x7f' if !matches!(c, '\n' | '\r' | '\t') => {
                    write!(self.0, "\\x{:02x}", u32::from(c))?;
                }
                _ if c.is_control() => write!(self.0, "{}", c.escape_default())?,
                _ => self.0.push(c),
            }
        }
        Ok(())
    }
}
