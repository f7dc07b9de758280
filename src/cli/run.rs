//! Runs a script for real.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::journal::{Prepared, Room};
use super::settings::Settings;
use super::source::Program;
use super::{begin, end, journal, messages, options};
use crate::driver::{self, Driver, Interactive, process};
use crate::log::{Log, Results, Style, Summary};
use crate::machine::effect::Environment;
use crate::machine::record::Level;
use crate::machine::{Failure, Machine, Outcome};
use crate::os_error::plain;
use crate::repl;
use crate::report;
use crate::syntax::Script;

/// Runs `script`, in a process of its own if it may start others; then that one ends here. An error
/// means that nothing was run.
pub fn run(script: &Script, mut settings: Settings) -> Result<Outcome> {
    let capture = begin::capture(&settings)?;
    let is_cron = capture.is_some();
    let level = settings.config.log_level;
    let run = random()?;
    let style = Style {
        format: settings.log_format,
        decimal: settings.log_decimal,
        pid: settings.config.pid,
        run: format!("{run:016x}"),
    };
    let cannot = |what: &str, file: &Path, error: &io::Error| {
        anyhow!("can't open the {what} `{}`: {}", file.display(), plain(error))
    };
    let log = Log::open(settings.log_file.as_deref(), level, style.clone()).map_err(|error| {
        cannot("log", settings.log_file.as_deref().unwrap_or(Path::new("")), &error)
    })?;
    let mut results = match &settings.results {
        Some(file) => {
            Some(Results::open(file, style).map_err(|error| cannot("results", file, &error))?)
        }
        None => None,
    };
    let log = Rc::new(RefCell::new(log));
    let writer = Rc::clone(&log);
    let summary = settings.summary.then(|| Rc::new(RefCell::new(Summary::default())));
    let adder = summary.clone();
    if summary.is_some() {
        settings.config.log_level = level.max(Summary::LEVEL);
    }
    if results.is_some() {
        settings.config.log_level = settings.config.log_level.max(Results::LEVEL);
    }
    let recorded = settings.config.log_level;
    let secrets = settings.config.secrets.clone();
    let seed = settings.seed.map_or_else(random, Ok)?;
    if let Some(outcome) = begin::wait(&mut settings, seed, &mut log.borrow_mut())? {
        return Ok(outcome);
    }
    let environment: Environment = std::env::vars_os()
        .filter(|(name, _)| !options::is_private(name))
        .map(|(name, value)| (name.into_vec().into(), value.into_vec().into()))
        .collect();
    let prepared = match &settings.journal {
        None => None,
        Some(file) => match journal::prepare(file)? {
            Prepared::Busy(reason) => {
                messages::complain(&format!("{}: not run: {reason}", script.source.name()));
                return Ok(Outcome::Exited(begin::BUSY));
            }
            Prepared::Ready(room) => {
                let (arguments, config) = (&settings.arguments, &settings.config);
                Some(room.of(run, script, arguments, &environment, config, seed))
            }
        },
    };
    let machine = Machine::new(script, settings.arguments, environment, settings.config, seed);
    let file = Arc::clone(script.source.name());
    let (told, patience) = (settings.told, settings.patience.inside());
    let lifelines = prepared.as_ref().and_then(Room::lifelines);
    let talks = matches!(settings.program, Program::Prompt);
    let conduct = move |mut machine: Machine, supervision: Option<_>| {
        if is_cron && supervision.is_none() {
            bail!("can't keep what is printed: there is no second process to be had");
        }
        let journal = prepared.map(Room::begin).transpose()?;
        let (hidden, notes) = (secrets.clone(), journal.clone());
        let mut driver = process::ProcessDriver::new(process::Settings {
            file: Arc::clone(&file),
            // What only the driver knows isn't to be had again.
            log_level: if journal.is_some() { recorded.max(Level::PROCESSES) } else { recorded },
            log: Box::new(move |record| {
                if let Some(journal) = &notes {
                    journal.note(record);
                }
                let record = record.hide(&hidden);
                writer.borrow_mut().write(&record);
                if let Some(summary) = &adder {
                    summary.borrow_mut().add(&record);
                }
                if let Some(results) = &mut results {
                    results.add(&record);
                }
            }),
            told,
            patience,
            status_line: talks || level > Level::NOTHING,
            supervision,
            restore: if talks { repl::restore() } else { None },
            channels: settings.channels,
            elapsed: Duration::ZERO,
        })
        .map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::EMFILE) => "; 32 do for most scripts",
                _ => "",
            };
            anyhow!("can't get ready to start commands: {}{hint}", plain(&error))
        })?;
        if talks {
            return Ok(repl::run(machine, driver));
        }
        let outcome = match &journal {
            Some(journal) => journal.run(&mut machine, &mut driver)?,
            None => driver::run(&mut machine, &mut driver),
        };
        // A job that goes well is silent.
        if let Some(summary) = summary
            && !(is_cron && outcome.exit_code() == 0)
        {
            messages::report(&summary.take().render(&file, &outcome, driver.now()));
        }
        let mut log = log.borrow_mut();
        let failure = match &outcome {
            Outcome::Failed(failure) => Some(Failure::clone(failure)),
            _ => log.withheld().cloned(),
        };
        if let Some(failure) = &failure {
            log.write_rest(failure);
        }
        log.finish();
        if let Some(failure) = &failure
            // What the log told is kept, and comes after this.
            && (is_cron || level > Level::NOTHING && !log.is_read_by_programs())
        {
            messages::report(&report::render(failure, &secrets));
        }
        Ok(driver.flush_on_exit(outcome))
    };
    if !is_cron && !talks && !machine.may_run_programs() {
        return conduct(machine, None);
    }
    let options = process::SupervisorOptions {
        capture: capture.map(Rc::new),
        stay: settings.lock.is_some() || settings.journal.is_some(),
        restore: if talks { repl::restore() } else { None }.map(Rc::new),
        at_end: None,
        lifelines,
    };
    process::supervise(options, move |supervision| -> Infallible {
        end(conduct(machine, supervision))
    })
}

fn random() -> Result<u64> {
    process::random()
        .map_err(|error| anyhow!("the system has no random numbers: {}", plain(&error)))
}
