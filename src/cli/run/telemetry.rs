//! Reports of a run to other programs, and reports that only repeated failures show.
//!
//! The value exists in both processes of the shell. The process that outlives the other one reports
//! the end.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};

use super::preflight::BUSY;
use super::reporters::Reporters;
use crate::cli::lock::{FailureCount, LockLocation, fnv1a};
use crate::cli::messages;
use crate::cli::plan::RunPlan;
use crate::cli::plan::source::ScriptSource;
use crate::telemetry::{Courier, Metrics, Pings, TIMEOUT, Url};
use ftsh_machine::Outcome;
use ftsh_machine::event::CommandStatus;
use ftsh_machine::secrets::Secrets;
use ftsh_process::{AtEnd, OutputCapture, ScriptIdentity, random};
use ftsh_syntax::Script;
use ftsh_sys::os_error::plain;

/// Reports to other programs.
pub(crate) struct Telemetry {
    /// Name of the script.
    name: String,
    pings: Option<Pings>,
    metrics: Option<Metrics>,
    failures: Option<FailureCount>,
    /// True if the options of this start name secrets.
    has_secrets: bool,
    /// Id of the run.
    run: Cell<u64>,
    begun: Cell<Instant>,
    /// Maximum duration of the wait for pings at the end.
    limit: Duration,
    /// Reports that failed, for the log.
    troubles: RefCell<Vec<String>>,
}

impl Telemetry {
    /// Prepares the reports that the plan names. Must be called while there is one thread.
    pub(crate) fn open(plan: &RunPlan, script: Option<&Script>) -> Rc<Self> {
        let program = &plan.script.program;
        let lock = match (&plan.start.lock, program) {
            (Some(lock), _) => Some(lock.clone()),
            (None, ScriptSource::File(script)) => Some(LockLocation::Script(script.clone())),
            // `resolve` has refused others.
            _ => None,
        };
        let mut this = Self {
            name: program.name(),
            pings: None,
            metrics: plan.telemetry.metrics.as_ref().zip(program.identity(script)).map(metrics),
            failures: None,
            has_secrets: !plan.machine.secrets.is_empty(),
            run: Cell::new(random().unwrap_or_default()),
            begun: Cell::new(Instant::now()),
            limit: plan.report_limit(),
            troubles: RefCell::default(),
        };
        if let Some((lock, shown_from)) = lock.zip(plan.telemetry.cron_after) {
            let count = FailureCount::new(&lock, plan.start.lock_directory.clone(), shown_from);
            this.failures = count.map_err(|error| this.note("count failures", error)).ok();
        }
        if let Some(url) = plan.telemetry.ping.clone() {
            messages::keep_copy();
            let courier = this.check("send a ping", Courier::start());
            this.pings = courier.map(|courier| Pings { url, courier });
        }
        Rc::new(this)
    }

    /// True if the end of the run, or a failed report, is reported.
    pub(crate) fn is_on(&self) -> bool {
        let has_some = self.pings.is_some() || self.metrics.is_some() || self.failures.is_some();
        has_some || !self.troubles.borrow().is_empty()
    }

    /// Returns the metrics, for the attempts and failures of the run.
    pub(crate) fn metrics(&self) -> Option<&Metrics> {
        self.metrics.as_ref()
    }

    /// Reports the start of a run, after all waits. A resumed run may have other secrets than the
    /// options.
    pub(crate) fn begin(&self, run: u64, capture: Option<&mut OutputCapture>, secrets: &Secrets) {
        self.run.set(run);
        self.begun.set(Instant::now());
        if let Some(metrics) = &self.metrics {
            self.check(&metrics.action(), metrics.begin());
        }
        let failures = self.failures.as_ref();
        if let Some(failures) = failures {
            self.check(&failures.action(), failures.begin());
        }
        let is_withheld = failures.is_some_and(FailureCount::is_withheld);
        messages::withhold(is_withheld);
        if let Some(capture) = capture {
            let has_secrets = self.has_secrets || !secrets.is_empty();
            capture.copy_to(messages::copy().filter(|_| !has_secrets), is_withheld);
        }
        if let Some(pings) = &self.pings {
            pings.start(run, &format!("ftsh: {}: ended by SIGKILL\n", self.name));
        }
    }

    /// Reports that nothing was run.
    pub(crate) fn refuse(&self, result: &Result<Outcome>) {
        if let Some(pings) = &self.pings {
            let path = match result {
                // The usage text of the script.
                Ok(Outcome::Exited(0)) => return,
                Ok(Outcome::Succeeded | Outcome::Exited(BUSY)) => "/log",
                _ => "/fail",
            };
            pings.end(path, self.run.get(), &refusal(result.as_ref().err()), TIMEOUT);
        }
    }

    /// Returns the action at the end of the shell, before another one.
    pub(crate) fn at_end(
        self: &Rc<Self>,
        reporters: &Rc<RefCell<Reporters>>,
        next: Option<AtEnd>,
    ) -> Option<AtEnd> {
        if !self.is_on() {
            return next;
        }
        let (this, reporters) = (Rc::clone(self), Rc::clone(reporters));
        Some(Rc::new(move |status| {
            this.end(status);
            // The interpreter of a killed supervisor may end anywhere.
            if let Ok(mut reporters) = reporters.try_borrow_mut() {
                this.troubles.take().iter().for_each(|it| reporters.note_at_end(&this.name, it));
            }
            if let Some(next) = &next {
                next(status);
            }
        }))
    }

    /// Reports the end of the run.
    fn end(&self, status: CommandStatus) {
        let status = match status {
            CommandStatus::Exited(code) => code,
            CommandStatus::Signaled(signal) => 128 + signal,
            CommandStatus::OutOfMemory => 128 + libc::SIGKILL,
            CommandStatus::Lost => 1,
        };
        if let Some(metrics) = &self.metrics {
            self.check(&metrics.action(), metrics.end(status, self.begun.get().elapsed()));
        }
        if let Some(failures) = self.failures.as_ref().filter(|_| status == 0)
            && let Some(Some(before)) = self.check(&failures.action(), failures.succeed())
        {
            let noun = if before == 1 { "failed run" } else { "failed runs" };
            messages::report(&format!("ftsh: {}: works again after {before} {noun}\n", self.name));
        }
        if let Some(pings) = &self.pings {
            let mut report = messages::copied();
            if report.is_empty() {
                report = format!("ftsh: {}: ended with status {status}\n", self.name);
            }
            let path = if status == 0 { "" } else { "/fail" };
            for why in pings.end(path, self.run.get(), &report, self.limit) {
                self.note("send a ping", why);
            }
        }
    }

    /// Returns a success, and notes for the log that an action, as `send a ping`, failed.
    fn check<T>(&self, what: &str, result: std::io::Result<T>) -> Option<T> {
        result.map_err(|error| self.note(what, plain(&error))).ok()
    }

    fn note(&self, what: &str, why: impl Display) {
        let text = format!("can't {what}: {why}");
        let mut troubles = self.troubles.borrow_mut();
        if !troubles.contains(&text) {
            troubles.push(text);
        }
    }
}

/// Reports an error of the command line, whose run had this address for pings.
pub(crate) fn refuse(url: Option<Url>, error: &Error) {
    if let Some((url, courier)) = url.zip(Courier::start().ok()) {
        let pings = Pings { url, courier };
        pings.end("/fail", random().unwrap_or_default(), &refusal(Some(error)), TIMEOUT);
    }
}

/// Returns the messages about a run that did not begin.
fn refusal(error: Option<&Error>) -> String {
    let error = error.map(|error| messages::hidden(&format!("ftsh: {error}\n")).into_owned());
    messages::copied() + &error.unwrap_or_default()
}

/// Returns the metrics of a script in a directory: a file by its path, another one by its text.
fn metrics((directory, script): (&PathBuf, ScriptIdentity)) -> Metrics {
    match script {
        ScriptIdentity::File(path) => {
            let path = std::path::absolute(&path).unwrap_or(path);
            let base = path.file_name().unwrap_or_default().to_string_lossy();
            let hash = fnv1a(path.as_os_str().as_encoded_bytes());
            Metrics::new(directory, &path.to_string_lossy(), &base, hash)
        }
        ScriptIdentity::Text(text) => {
            let hash = fnv1a(&text);
            Metrics::new(directory, &format!("-c {hash:016x}"), "-c", hash)
        }
    }
}
