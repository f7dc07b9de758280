//! Views of a journal: `--replay`, `--status`, `--timeline`, `--trace`.

use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::journal_file::{content, is_done_with, is_locked, latest_pid};
use super::moment::{moment, timestamp};
use super::resume::spans;
use super::start;
use crate::cli::messages::BlockingIo;
use crate::cli::messages::{print_note, print_text, usage};
use crate::cli::plan::{JournalView, RunPlan, TracePlan};
use crate::log::{LineRenderer, LogStyle, signal_name};
use crate::telemetry::SpanSender;
use crate::timeline::{self, Timeline};
use ftsh_journal::{Journal, Over, Unreadable, elapsed, replay};
use ftsh_machine::outcome::Human;
use ftsh_machine::record::{Level, LogRecord};
use ftsh_machine::status::text as status;
use ftsh_machine::{Outcome, Time};
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Shows the run in a journal.
pub(crate) fn view(view: JournalView, path: &Path, plan: &RunPlan) -> Result<Outcome> {
    let cannot = |reason: String| {
        usage(Slug::JournalFile, format_args!("can't show `{}`: {reason}", path.display()))
    };
    // Checked before the content is read, which may be the end of the run.
    let in_progress = is_locked(path);
    let (journal, gap) = recorded(path, in_progress).map_err(|error| cannot(error.to_string()))?;
    if let Some(at) = gap {
        print_note(&format!(
            "`{}` has a gap at byte {at}, as in a copy made during the run: this is the \
             run up to the gap",
            path.display()
        ));
    }
    let outcome = match view {
        JournalView::Log => log(&journal, plan),
        JournalView::Trace => trace(&journal, in_progress, plan),
        JournalView::Status => page(&journal, in_progress, gap.is_some()),
        JournalView::Timeline => {
            let picture = plan.reporting.picture.as_deref();
            if picture.is_some_and(|picture| is_same(picture, path)) {
                bail!(
                    "the picture can't be drawn into the journal itself: name another file after `-o`"
                );
            }
            self::draw(&journal, in_progress, picture)
        }
    };
    outcome.map_err(|error| cannot(error.to_string()))
}

/// Reads the journal in a file, and returns the position of a gap, if there is one. While a file
/// grows, a reader can see a gap that does not exist.
fn recorded(path: &Path, grows: bool) -> Result<(Journal, Option<usize>)> {
    let bytes = || content(path).map_err(|error| anyhow!(plain(&error)));
    let mut tries = if grows { 5 } else { 1 };
    loop {
        tries -= 1;
        match Journal::of(bytes()?) {
            Err(Unreadable::Gap(_) | Unreadable::Damaged(_)) if tries > 0 => {}
            Err(Unreadable::Gap(at)) => {
                let mut bytes = bytes()?;
                bytes.truncate(at);
                return Ok((Journal::of(bytes)?, Some(at)));
            }
            journal => return Ok((journal?, None)),
        }
    }
}

/// True if both names belong to the same existing file.
fn is_same(a: &Path, b: &Path) -> bool {
    let file = |path: &Path| std::fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
    file(a).is_some_and(|a| file(b) == Some(a))
}

/// Prints the log of the run with its original times.
fn log(journal: &Journal, plan: &RunPlan) -> Result<Outcome> {
    let mut lines = LineRenderer::new(LogStyle {
        format: plan.reporting.log_format,
        decimal: plan.reporting.log_decimal,
        pid: latest_pid(journal),
        run: format!("{:016x}", journal.run),
    });
    let mut out = BufWriter::new(BlockingIo(io::stdout().lock()));
    let mut result = Ok(());
    let replayed = replay(journal, plan.machine.log_level, |record: &LogRecord| {
        if result.is_ok() && record.event.has_line() {
            let at = timestamp(start::moment_of(journal, record.at));
            result = out.write_all(lines.render(at, record).as_bytes());
        }
    });
    let result = result.and_then(|()| out.flush());
    drop(out);
    replayed?;
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            bail!("can't write to standard output: {}", plain(&error))
        }
        _ => Ok(Outcome::Succeeded),
    }
}

/// Writes the trace of the run.
fn trace(journal: &Journal, in_progress: bool, plan: &RunPlan) -> Result<Outcome> {
    let Some(TracePlan { destination, .. }) = plan.reporting.trace.clone() else {
        return Ok(Outcome::Succeeded);
    };
    let (mut spans, mut finished) = (spans(journal), Vec::new());
    let replayed = replay(journal, Level::SPANS, |record: &LogRecord| {
        spans.add(record);
        finished.append(&mut spans.take());
    })?;
    if replayed.outcome.is_some() || !in_progress {
        spans.finish(replayed.outcome.as_ref());
        finished.append(&mut spans.take());
    }
    let mut sender = SpanSender::new(destination);
    sender.send(&finished);
    match sender.finish().line() {
        None => Ok(Outcome::Succeeded),
        Some(unsent) => bail!("{unsent}"),
    }
}

/// Prints the present or last state of the run.
fn page(journal: &Journal, in_progress: bool, has_gap: bool) -> Result<Outcome> {
    let replayed = replay(journal, Level::NOTHING, |_: &LogRecord| ())?;
    let latest = start::moment_of(journal, replayed.now);
    let now = known_until(journal, in_progress, replayed.now)?;
    let status = replayed.machine.status(status::TASKS_ON_PAGE, now);
    let mut text = status::page(&status, &journal.beginning.name, latest_pid(journal));
    text += &if has_gap {
        format!("  before the gap, the last entry was recorded at {}", moment(latest))
    } else {
        progress(journal, in_progress, latest)
    };
    text.push('\n');
    Ok(print_text(&text))
}

/// Describes the progress of a run whose latest entry was recorded at this time since 1970.
fn progress(journal: &Journal, in_progress: bool, latest: Duration) -> String {
    let is_unreported = !in_progress && !is_done_with(journal);
    let unreported = if is_unreported {
        ", but the end is not reported yet: the next start reports it"
    } else {
        ""
    };
    let starts = match journal.starts.len() {
        0 | 1 => String::new(),
        count => format!(", after {count} starts"),
    };
    let next = "the next start resumes it";
    match (journal.over, in_progress, journal.suspended) {
        (Some(Over::Exited(0)), ..) => format!("  the run has succeeded{starts}{unreported}"),
        (Some(Over::Exited(code)), ..) => {
            format!("  the run has ended with exit status {code}{starts}{unreported}")
        }
        (Some(Over::Interrupted(signal)), ..) => {
            format!("  the run was killed by {}{starts}{unreported}", signal_name(signal))
        }
        (Some(Over::Replaced), ..) => "  a program replaced the shell".to_owned(),
        (None, true, None) => format!("  the run is in progress{starts}"),
        (None, true, Some(_)) => "  the run is being suspended".to_owned(),
        (None, false, Some(suspended)) => {
            let why = suspended.signal.map_or("because its time was over".into(), |signal| {
                format!("by {}", signal_name(signal))
            });
            format!("  the run was suspended {why}, at {}: {next}", moment(latest))
        }
        (None, false, None) => format!(
            "  the run was cut short: this was its state at {}, the time of the last entry; {next}",
            moment(latest)
        ),
    }
}

/// Returns the end of the known part of a run: the present, if the run is still in progress.
fn known_until(journal: &Journal, in_progress: bool, last: Time) -> Result<Time> {
    if !in_progress || journal.over.is_some() {
        return Ok(last);
    }
    let clocks = start::clocks()?;
    Ok(journal.starts.last().map_or(last, |start| Time::after(elapsed(start, last, &clocks))))
}

/// Draws the run in the format of the file's extension.
fn draw(journal: &Journal, in_progress: bool, path: Option<&Path>) -> Result<Outcome> {
    let mut timeline = Timeline::default();
    let logged = |record: &LogRecord| timeline.logged(record);
    let replayed = replay(journal, Level::STRUCTURES, logged)?;
    let beginning = &journal.beginning;
    let now = known_until(journal, in_progress, replayed.now)?.elapsed();
    let at = timestamp(beginning.at).to_zoned(crate::log::local_zone());
    let name = beginning.secrets().hide(&beginning.name).into_owned();
    let title = format!("{name}, {}, {}", at.strftime("%Y-%m-%d %H:%M:%S"), Human(now));
    let svg = timeline::svg(&title, timeline.finish(now, replayed.outcome.as_ref()));
    let Some(path) = path else { return Ok(print_text(&svg)) };
    let is_page = path.extension().is_some_and(|end| end == "html" || end == "htm");
    let content = if is_page { timeline::html(&title, &svg) } else { svg };
    std::fs::write(path, content)
        .map_err(|error| anyhow!("can't draw into `{}`: {}", path.display(), plain(&error)))?;
    Ok(Outcome::Succeeded)
}
