//! Looks at what is recorded: `--replay`, `--status`, `--timeline`.

use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::super::messages::{remark, tell};
use super::super::patient::Patient;
use super::super::plan::{Look, RunPlan};
use super::moment::{moment, timestamp};
use super::place::{content, is_done_with, is_locked, latest_pid};
use super::start;
use crate::log::{LineRenderer, LogStyle, signal_name};
use crate::timeline::{self, Timeline};
use ftsh_journal::{Journal, Over, Unreadable, elapsed, replay};
use ftsh_machine::outcome::Human;
use ftsh_machine::record::{Level, LogRecord};
use ftsh_machine::status::text as status;
use ftsh_machine::{Outcome, Time};
use ftsh_sys::os_error::plain;

/// Shows what is recorded in a file.
pub fn look(look: Look, path: &Path, plan: &RunPlan) -> Result<Outcome> {
    let cannot = |reason: String| anyhow!("can't look at `{}`: {reason}", path.display());
    // Before its content, which may be the end of the run.
    let goes_on = is_locked(path);
    let (journal, gap) = recorded(path, goes_on).map_err(|error| cannot(error.to_string()))?;
    if let Some(at) = gap {
        remark(&format!(
            "`{}` has a gap at byte {at}, as copies have that are made while something is recorded: this is the \
             run up to there",
            path.display()
        ));
    }
    let outcome = match look {
        Look::Log => log(&journal, plan),
        Look::Status => page(&journal, goes_on, gap.is_some()),
        Look::Timeline => {
            let picture = plan.reporting.picture.as_deref();
            if picture.is_some_and(|picture| is_same(picture, path)) {
                bail!(
                    "the picture can't be drawn into the journal itself: name another file after `-o`"
                );
            }
            self::picture(&journal, goes_on, picture)
        }
    };
    outcome.map_err(|error| cannot(error.to_string()))
}

/// What is recorded in a file, and where the gap is up to which that is. What grows while it is read has one that
/// isn't there.
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

/// Whether two names are of one file that is there.
fn is_same(a: &Path, b: &Path) -> bool {
    let file = |path: &Path| std::fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
    file(a).is_some_and(|a| file(b) == Some(a))
}

/// Prints what a log of the run would hold, with the times of then.
fn log(journal: &Journal, plan: &RunPlan) -> Result<Outcome> {
    let mut lines = LineRenderer::new(LogStyle {
        format: plan.reporting.log_format,
        decimal: plan.reporting.log_decimal,
        pid: latest_pid(journal),
        run: format!("{:016x}", journal.run),
    });
    let mut out = BufWriter::new(Patient(io::stdout().lock()));
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

/// Prints what the run is doing, or was doing at last.
fn page(journal: &Journal, goes_on: bool, has_gap: bool) -> Result<Outcome> {
    let replayed = replay(journal, Level::NOTHING, |_: &LogRecord| ())?;
    let latest = start::moment_of(journal, replayed.now);
    let now = known(journal, goes_on, replayed.now)?;
    let status = replayed.machine.status(status::TASKS_ON_PAGE, now);
    let mut text = status::page(&status, &journal.beginning.name, latest_pid(journal));
    text += &if has_gap {
        format!("  before the gap, something was recorded last at {}", moment(latest))
    } else {
        told_of(journal, goes_on, latest)
    };
    text.push('\n');
    Ok(tell(&text))
}

/// How it stands with a run, of which something was recorded last at this moment since 1970.
fn told_of(journal: &Journal, goes_on: bool, latest: Duration) -> String {
    let is_untold = !goes_on && !is_done_with(journal);
    let untold = if is_untold { ", but nobody was told: the next start says so" } else { "" };
    let starts = match journal.starts.len() {
        0 | 1 => String::new(),
        count => format!(", after {count} starts"),
    };
    let next = "the next start goes on with it";
    match (journal.over, goes_on, journal.suspended) {
        (Some(Over::Exited(0)), ..) => format!("  the run has succeeded{starts}{untold}"),
        (Some(Over::Exited(code)), ..) => {
            format!("  the run has ended with exit status {code}{starts}{untold}")
        }
        (Some(Over::Interrupted(signal)), ..) => {
            format!("  the run was ended by {}{starts}{untold}", signal_name(signal))
        }
        (Some(Over::Replaced), ..) => "  a program took the shell's place".to_owned(),
        (None, true, None) => format!("  the run goes on{starts}"),
        (None, true, Some(_)) => "  the run is being suspended".to_owned(),
        (None, false, Some(suspended)) => {
            let why = suspended.signal.map_or("as its time was over".into(), |signal| {
                format!("by {}", signal_name(signal))
            });
            format!("  the run was suspended {why}, at {}: {next}", moment(latest))
        }
        (None, false, None) => format!(
            "  the run was cut short: this is what it did at {}, when something was recorded last; {next}",
            moment(latest)
        ),
    }
}

/// Until when there is something to be seen of a run: until now, if it goes on.
fn known(journal: &Journal, goes_on: bool, last: Time) -> Result<Time> {
    if !goes_on || journal.over.is_some() {
        return Ok(last);
    }
    let clocks = start::clocks()?;
    Ok(journal.starts.last().map_or(last, |start| Time::after(elapsed(start, last, &clocks))))
}

/// Draws the run, as the name of the file says.
fn picture(journal: &Journal, goes_on: bool, path: Option<&Path>) -> Result<Outcome> {
    let mut timeline = Timeline::default();
    let logged = |record: &LogRecord| timeline.logged(record);
    let replayed = replay(journal, Level::STRUCTURES, logged)?;
    let beginning = &journal.beginning;
    let now = known(journal, goes_on, replayed.now)?.elapsed();
    let at = timestamp(beginning.at).to_zoned(crate::log::local_zone());
    let name = beginning.secrets().hide(&beginning.name).into_owned();
    let title = format!("{name}, {}, {}", at.strftime("%Y-%m-%d %H:%M:%S"), Human(now));
    let svg = timeline::svg(&title, timeline.finish(now, replayed.outcome.as_ref()));
    let Some(path) = path else { return Ok(tell(&svg)) };
    let is_page = path.extension().is_some_and(|end| end == "html" || end == "htm");
    let content = if is_page { timeline::html(&title, &svg) } else { svg };
    std::fs::write(path, content)
        .map_err(|error| anyhow!("can't draw into `{}`: {}", path.display(), plain(&error)))?;
    Ok(Outcome::Succeeded)
}
