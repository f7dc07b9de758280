//! What a run is told of: the log, the summary, the results, the last report.

use std::io;
use std::path::Path;

use anyhow::{Result, anyhow};

use super::messages;
use super::settings::Settings;
use crate::log::{Log, Results, Style, Summary};
use crate::report;
use ftsh_machine::record::{Level, Record};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Failure, Outcome, Time};
use ftsh_sys::os_error::plain;

/// Tells people and programs of a run.
pub struct Telling {
    log: Log,
    summary: Option<Summary>,
    results: Option<Results>,
    /// As the log has it.
    level: Level,
    is_cron: bool,
}

impl Telling {
    /// Opens what the settings name, for a run that is called so.
    pub fn open(settings: &Settings, run: u64) -> Result<Self> {
        let level = settings.config.log_level;
        let style = Style {
            format: settings.log_format,
            decimal: settings.log_decimal,
            pid: settings.config.pid,
            run: named(run),
        };
        let cannot = |what: &str, file: &Path, error: &io::Error| {
            anyhow!("can't open the {what} `{}`: {}", file.display(), plain(error))
        };
        let file = settings.log_file.as_deref();
        let log = Log::open(file, level, style.clone())
            .map_err(|error| cannot("log", file.unwrap_or(Path::new("")), &error))?;
        let open = |file| Results::open(file, style).map_err(|it| cannot("results", file, &it));
        Ok(Self {
            log,
            summary: settings.summary.then(Summary::default),
            results: settings.results.as_deref().map(open).transpose()?,
            level,
            is_cron: settings.cron,
        })
    }

    /// How much has to be told for all of it.
    pub fn level(&self) -> Level {
        let summary = self.summary.is_some().then_some(Summary::LEVEL);
        let results = self.results.is_some().then_some(Results::LEVEL);
        [summary, results].into_iter().flatten().fold(self.level, Level::max)
    }

    /// Whether what the shell is doing may be shown meanwhile.
    pub fn is_wordy(&self) -> bool {
        self.level > Level::NOTHING
    }

    /// The run is one that began earlier.
    pub fn goes_on(&mut self, run: u64) {
        self.log.name_run(&named(run));
        if let Some(results) = &mut self.results {
            results.name_run(&named(run));
        }
    }

    /// An earlier start of the run has told this.
    pub fn recall(&mut self, record: &Record) {
        self.log.recall(record);
        if let Some(summary) = &mut self.summary {
            summary.add(record);
        }
    }

    /// Tells this.
    pub fn tell(&mut self, record: &Record) {
        self.log.write(record);
        if let Some(summary) = &mut self.summary {
            summary.add(record);
        }
        if let Some(results) = &mut self.results {
            results.add(record);
        }
    }

    /// Says what a run of `script` came to.
    pub fn finish(&mut self, script: &str, outcome: &Outcome, now: Time, secrets: &Secrets) {
        // A job that goes well is silent.
        if let Some(summary) = self.summary.take()
            && !(self.is_cron && outcome.exit_code() == 0)
        {
            messages::report(&summary.render(script, outcome, now));
        }
        let failure = match outcome {
            Outcome::Failed(failure) => Some(Failure::clone(failure)),
            _ => self.log.withheld().cloned(),
        };
        if let Some(failure) = &failure {
            self.log.write_rest(failure);
        }
        self.log.finish();
        if let Some(failure) = &failure
            // What the log told is kept, and comes after this.
            && (self.is_cron || self.is_wordy() && !self.log.is_read_by_programs())
        {
            messages::report(&report::render(failure, secrets));
        }
    }

    /// The log alone, for what comes before the run, or is known before it.
    pub fn log(&mut self) -> &mut Log {
        &mut self.log
    }
}

fn named(run: u64) -> String {
    format!("{run:016x}")
}
