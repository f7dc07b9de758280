//! Reporters of a run: the log, the summary, the results, the last report.

use std::fmt::Write;
use std::io;
use std::path::Path;

use anyhow::{Result, anyhow};

use crate::cli::messages;
use crate::cli::plan::RunPlan;
use crate::log::{LogStyle, LogWriter, Results, Summary};
use crate::report;
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Failure, Outcome, Time};
use ftsh_sys::os_error::plain;

/// Reporters of a run, to people and programs.
pub(crate) struct Reporters {
    log: LogWriter,
    summary: Option<Summary>,
    results: Option<Results>,
    /// Level of the log.
    level: Level,
    is_cron: bool,
    /// True if a failure is reported in one line.
    is_brief: bool,
    /// Calls left behind in the kernel.
    hanging: Vec<String>,
}

impl Reporters {
    /// Opens the reporters that the plan names, for the run with this id.
    pub(crate) fn open(plan: &RunPlan, run: u64) -> Result<Self> {
        let reporting = &plan.reporting;
        let level = plan.machine.log_level;
        let style = LogStyle {
            format: reporting.log_format,
            decimal: reporting.log_decimal,
            pid: plan.machine.pid,
            run: named(run),
        };
        let cannot = |what: &str, file: &Path, error: &io::Error| {
            anyhow!("can't open the {what} `{}`: {}", file.display(), plain(error))
        };
        let file = reporting.log_file.as_deref();
        let log = LogWriter::open(file, level, style.clone())
            .map_err(|error| cannot("log", file.unwrap_or(Path::new("")), &error))?;
        let open = |file| Results::open(file, style).map_err(|it| cannot("results", file, &it));
        Ok(Self {
            log,
            summary: reporting.summary.then(Summary::default),
            results: reporting.results.as_deref().map(open).transpose()?,
            level,
            is_cron: reporting.cron.is_on(),
            is_brief: reporting.is_brief,
            hanging: Vec::new(),
        })
    }

    /// Returns the level of records that the reporters need.
    pub(crate) fn level(&self) -> Level {
        let summary = self.summary.is_some().then_some(Summary::LEVEL);
        let results = self.results.is_some().then_some(Results::LEVEL);
        [summary, results].into_iter().flatten().fold(self.level, Level::max)
    }

    /// True if a status line may show the state of the run.
    pub(crate) fn is_wordy(&self) -> bool {
        self.level > Level::NOTHING
    }

    /// True if a failure is reported in one line, without a place in a script.
    pub(crate) fn is_brief(&self) -> bool {
        self.is_brief
    }

    /// Names the run after its first start.
    pub(crate) fn resume(&mut self, run: u64) {
        self.log.name_run(&named(run));
        if let Some(results) = &mut self.results {
            results.name_run(&named(run));
        }
    }

    /// Counts a record that an earlier start of the run has reported.
    pub(crate) fn recall(&mut self, record: &LogRecord) {
        self.log.recall(record);
        if let Some(summary) = &mut self.summary {
            summary.add(record);
        }
    }

    /// Reports a record.
    pub(crate) fn report(&mut self, record: &LogRecord) {
        self.log.write(record);
        if let LogEvent::Hanging { call } = &record.event {
            self.hanging.push(call.clone());
        }
        if let Some(summary) = &mut self.summary {
            summary.add(record);
        }
        if let Some(results) = &mut self.results {
            results.add(record);
        }
    }

    /// Reports the end of a run of `script`.
    pub(crate) fn finish(&mut self, script: &str, outcome: &Outcome, now: Time, secrets: &Secrets) {
        let failure = match outcome {
            Outcome::Failed(failure) => Some(Failure::clone(failure)),
            _ => self.log.withheld().cloned(),
        };
        if let Some(failure) = &failure {
            self.log.write_rest(failure);
        }
        self.log.finish();
        // A successful job prints nothing.
        if let Some(summary) = self.summary.take()
            && !(self.is_cron && outcome.exit_code() == 0)
        {
            messages::report(&summary.render(script, outcome, now));
        }
        if let Some(failure) = &failure
            // The captured log follows this report.
            && (self.is_cron || self.is_wordy() && !self.log.is_read_by_programs())
        {
            let render = if self.is_brief { report::brief::render } else { report::render };
            let mut text = render(failure, secrets);
            for call in &self.hanging {
                let _ = writeln!(text, "  left behind: {call}, which hangs in the kernel");
            }
            messages::report(&text);
        }
    }

    /// Returns the log, for records before the run.
    pub(crate) fn log(&mut self) -> &mut LogWriter {
        &mut self.log
    }
}

fn named(run: u64) -> String {
    format!("{run:016x}")
}
