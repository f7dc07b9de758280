//! Reporters of a run: the log, the summary, the results, the last report.

use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::cli::journal::EarlierRun;
use crate::cli::messages;
use crate::cli::plan::RunPlan;
use crate::log::{LogStyle, LogWriter, Results, Summary};
use crate::report;
use crate::telemetry::{Exporter, Metrics, SpanSender, Spans};
use ftsh_machine::effect::TaskId;
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Failure, Outcome, Time};
use ftsh_process::OutputCapture;
use ftsh_sys::os_error::plain;

/// Positions of the output of commands.
struct CapturedCommands {
    output: Rc<OutputCapture>,
    /// Starts of the commands in progress.
    starts: HashMap<TaskId, u64>,
    /// Output of the command that failed last, with the line and the message of its failure.
    failed: Option<([u64; 2], u32, String)>,
}

impl CapturedCommands {
    fn add(&mut self, record: &LogRecord) {
        let Some(task) = record.task else { return };
        match &record.event {
            LogEvent::CommandStarted(_) => {
                self.starts.extend(self.output.position().map(|start| (task, start)));
            }
            LogEvent::CommandSucceeded { .. } => _ = self.starts.remove(&task),
            LogEvent::CommandFailed(failure) => {
                let range = self.starts.remove(&task).zip(self.output.position());
                let message = failure.message.clone();
                self.failed = range.map(|(from, to)| ([from, to], failure.line, message));
            }
            _ => {}
        }
    }
}

/// Reporters of a run, to people and programs.
pub(crate) struct Reporters {
    log: LogWriter,
    summary: Option<Summary>,
    results: Option<Results>,
    trace: Option<(Spans, Exporter)>,
    /// Level of the log.
    level: Level,
    is_cron: bool,
    /// Captured output, with positions in it.
    capture: Option<CapturedCommands>,
    /// Metrics, with the attempts and failures of this start.
    metrics: Option<(Metrics, Summary)>,
    /// Id of the run.
    run: u64,
    /// True if a failure is reported in one line.
    is_brief: bool,
    /// Calls left behind in the kernel.
    hanging: Vec<String>,
}

impl Reporters {
    /// Opens the reporters that the plan names, for the run with this id.
    pub(crate) fn open(plan: &RunPlan, run: u64, metrics: Option<&Metrics>) -> Result<Self> {
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
        let name = plan.script.program.name();
        let trace = reporting.trace.clone().zip(plan.machine.trace).map(|(trace, context)| {
            let exporter = Exporter::new(SpanSender::new(trace.destination), plan.report_limit());
            (Spans::new(context, &name, plan.machine.pid), exporter)
        });
        let open = |file| Results::open(file, style).map_err(|it| cannot("results", file, &it));
        Ok(Self {
            log,
            summary: reporting.summary.then(Summary::default),
            results: reporting.results.as_deref().map(open).transpose()?,
            trace,
            level,
            is_cron: reporting.cron.is_on(),
            capture: None,
            metrics: metrics.map(|metrics| (metrics.clone(), Summary::default())),
            run,
            is_brief: reporting.is_brief,
            hanging: Vec::new(),
        })
    }

    /// Returns the level of records that the reporters need.
    pub(crate) fn level(&self) -> Level {
        let is_summed = self.summary.is_some() || self.metrics.is_some();
        let summary = is_summed.then_some(Summary::LEVEL);
        let results = self.results.is_some().then_some(Results::LEVEL);
        let capture = self.is_cron.then_some(Level::COMMANDS);
        let spans = self.trace.is_some().then_some(Level::SPANS);
        let levels = [summary, results, capture, spans];
        levels.into_iter().flatten().fold(self.level, Level::max)
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
    pub(crate) fn resume(&mut self, run: &EarlierRun) {
        self.run = run.run();
        let name = named(self.run);
        self.log.name_run(&name);
        if let Some(results) = &mut self.results {
            results.name_run(&name);
        }
        if let Some((spans, _)) = &mut self.trace {
            *spans = run.spans();
        }
    }

    /// Notes a start of the shell, at a moment of the run and a time since 1970.
    pub(crate) fn start(&mut self, elapsed: Duration, at: Duration) {
        if let Some((spans, _)) = &mut self.trace {
            spans.start(elapsed, at);
        }
    }

    /// Takes the captured output, whose part of a failed command comes first in a report.
    pub(crate) fn capture(&mut self, output: &Rc<OutputCapture>) {
        let output = Rc::clone(output);
        self.capture = Some(CapturedCommands { output, starts: HashMap::new(), failed: None });
    }

    /// Returns the id of the run.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Counts a record that an earlier start of the run has reported.
    pub(crate) fn recall(&mut self, record: &LogRecord) {
        if let Some((spans, _)) = &mut self.trace {
            spans.recall(record);
        }
        if let LogEvent::Span(_) = &record.event {
            return;
        }
        self.log.recall(record);
        if let Some(summary) = &mut self.summary {
            summary.add(record);
        }
    }

    /// Reports a record.
    pub(crate) fn report(&mut self, record: &LogRecord) {
        if let Some((spans, exporter)) = &mut self.trace {
            spans.add(record);
            exporter.export(spans.take(), spans.take_dropped());
        }
        if let LogEvent::Span(_) = &record.event {
            return;
        }
        // Lines of the log are not output of the command.
        let is_end = record.event.failure().is_some();
        let mut capture = self.capture.as_mut();
        capture.iter_mut().filter(|_| is_end).for_each(|it| it.add(record));
        self.log.write(record);
        capture.iter_mut().filter(|_| !is_end).for_each(|it| it.add(record));
        if let LogEvent::Hanging { call } = &record.event {
            self.hanging.push(call.clone());
        }
        let metrics = self.metrics.as_mut().map(|(_, summary)| summary);
        for summary in self.summary.iter_mut().chain(metrics) {
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
            if let Some(capture) = &self.capture
                && let Some((range, line, message)) = &capture.failed
                && (*line, message) == (failure.line, &failure.message)
            {
                capture.output.show_first(*range);
            }
        }
        // The end of the shell reports an error.
        let _ = self.metrics.take().map(|(metrics, it)| metrics.add(it.attempts, &it.kinds));
        if let Some((mut spans, mut exporter)) = self.trace.take() {
            spans.finish(Some(outcome));
            exporter.export(spans.take(), spans.take_dropped());
            if let Some(note) = exporter.finish() {
                let record = LogRecord::of_shell(now, script.into(), 0, LogEvent::Note(note));
                self.log.write(&LogRecord { level: Level::FAILURES, ..record });
            }
        }
        self.log.finish();
        // A successful job prints nothing.
        if let Some(summary) = self.summary.take()
            && !(self.is_cron && outcome.exit_code() == 0)
        {
            messages::report_with(6, &summary.render(script, outcome, now));
        }
        // The captured log follows this report.
        let is_shown = self.is_cron || self.is_wordy() && !self.log.is_read_by_programs();
        if let Some(failure) = &failure
            && (is_shown || messages::copy().is_some())
        {
            let render = if self.is_brief { report::brief::render } else { report::render };
            let mut text = render(failure, secrets);
            for call in &self.hanging {
                let _ = writeln!(text, "  left behind: {call}, which hangs in the kernel");
            }
            let is_withheld = messages::withhold(!is_shown);
            messages::withhold(!is_shown || is_withheld);
            messages::report(&text);
            messages::withhold(is_withheld);
        }
    }

    /// Notes an error of the shell after the run, unless standard error then belongs to the report.
    pub(crate) fn note_at_end(&mut self, script: &str, text: &str) {
        if !(self.is_cron && self.log.is_on_standard_error()) {
            let event = LogEvent::Note(text.to_owned());
            let record = LogRecord::of_shell(Time::START, script.into(), 0, event);
            self.log.write(&LogRecord { level: Level::FAILURES, ..record });
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
