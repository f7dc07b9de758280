//! Looks at what is recorded: `--replay`, `--status`, `--timeline`.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Result, anyhow, bail};

use super::super::messages::tell;
use super::super::settings::{Look, Settings};
use super::moment::{moment, since_1970, timestamp};
use super::place::{content, is_locked};
use crate::journal::{Journal, Over, read, replay};
use crate::log::{Lines, Style};
use crate::machine::outcome::Human;
use crate::machine::record::{Level, Record};
use crate::machine::{Outcome, Time};
use crate::os_error::plain;
use crate::status;
use crate::timeline::{self, Timeline};

/// Shows what is recorded in a file.
pub fn look(look: Look, path: &Path, settings: &Settings) -> Result<Outcome> {
    let cannot = |reason: String| anyhow!("can't look at `{}`: {reason}", path.display());
    // Before its content, which may be the end of the run.
    let goes_on = is_locked(path);
    let bytes = content(path).map_err(|error| cannot(plain(&error)))?;
    let journal = read(&bytes).map_err(|error| cannot(error.to_string()))?;
    let outcome = match look {
        Look::Log => log(&journal, settings),
        Look::Status => page(&journal, goes_on),
        Look::Timeline => picture(&journal, goes_on, settings.picture.as_deref()),
    };
    outcome.map_err(|error| cannot(error.to_string()))
}

/// Prints what a log of the run would hold, with the times of then.
fn log(journal: &Journal, settings: &Settings) -> Result<Outcome> {
    let beginning = &journal.beginning;
    let mut lines = Lines::new(Style {
        format: settings.log_format,
        decimal: settings.log_decimal,
        pid: beginning.pid(),
        run: format!("{:016x}", journal.run),
    });
    let mut out = BufWriter::new(io::stdout().lock());
    let mut result = Ok(());
    let replayed = replay(journal, settings.config.log_level, |record: &Record| {
        if result.is_ok() {
            let at = timestamp(beginning.at + record.at.elapsed());
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
fn page(journal: &Journal, goes_on: bool) -> Result<Outcome> {
    let beginning = &journal.beginning;
    let replayed = replay(journal, Level::NOTHING, |_: &Record| ())?;
    let now = known(journal, goes_on, replayed.now);
    let status = replayed.machine.status(status::TASKS_ON_PAGE, now);
    let mut text = status::page(&status, &beginning.name, beginning.pid());
    text += &match (&journal.over, goes_on) {
        (Some(Over::Exited(0)), _) => "  the run has succeeded".to_owned(),
        (Some(Over::Exited(code)), _) => format!("  the run has ended with exit status {code}"),
        (Some(Over::Interrupted(signal)), _) => format!("  the run was ended by signal {signal}"),
        (Some(Over::Replaced), _) => "  a program took the shell's place".to_owned(),
        (None, true) => "  the run goes on".to_owned(),
        (None, false) => format!(
            "  the run was cut short: this is what it did at {}, when something was recorded last",
            moment(beginning.at + now.elapsed())
        ),
    };
    text.push('\n');
    Ok(tell(&text))
}

/// Until when there is something to be seen of a run: until now, if it goes on.
fn known(journal: &Journal, goes_on: bool, last: Time) -> Time {
    if !goes_on || journal.over.is_some() {
        return last;
    }
    last.max(Time::after(since_1970().saturating_sub(journal.beginning.at)))
}

/// Draws the run, as the name of the file says.
fn picture(journal: &Journal, goes_on: bool, path: Option<&Path>) -> Result<Outcome> {
    let mut timeline = Timeline::default();
    let logged = |record: &Record| timeline.logged(record);
    let replayed = replay(journal, Level::STRUCTURES, logged)?;
    let beginning = &journal.beginning;
    let now = known(journal, goes_on, replayed.now).elapsed();
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
