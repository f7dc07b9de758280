//! Plan of a run: all decisions of options and environment, grouped by the part that receives them.

pub(super) mod resolve;
pub(super) mod source;

use std::path::PathBuf;
use std::time::Duration;

use bstr::BString;

use self::source::ScriptSource;
use crate::cli::lock;
use crate::cli::options::values::{CronMode, WhenBusy};
use crate::log::Format;
use crate::telemetry::{Destination, TIMEOUT, Url};
use ftsh_cluster::ClusterConfig;
use ftsh_machine::{Config, Deadline};
use ftsh_process::ProcessConfig;
use ftsh_storm::RunSpec;

/// All decisions of options and environment. Each part receives its group as a whole.
#[derive(Debug)]
pub(super) struct RunPlan {
    /// Treatment of the script.
    pub action: Action,
    /// The script and its arguments.
    pub script: ScriptPlan,
    /// Waits before the first command.
    pub start: StartPlan,
    /// Settings of the machine.
    pub machine: Config,
    /// Settings of the process driver.
    pub process: ProcessConfig,
    /// Settings of the cluster driver.
    pub cluster: ClusterConfig,
    /// Recording of the run, if the run is recorded.
    pub journal: Option<JournalPlan>,
    /// Reports about the run.
    pub reporting: ReportingPlan,
    /// Reports to other programs.
    pub telemetry: TelemetryPlan,
    /// Instructions of a storm, if the run belongs to one.
    pub storm: Option<RunSpec>,
}

impl RunPlan {
    /// Returns the deadline of this start of the run, relative to its beginning.
    pub(super) fn deadline_mut(&mut self) -> &mut Deadline {
        match &mut self.journal {
            Some(journal) => &mut journal.deadline,
            None => &mut self.machine.deadline,
        }
    }
}

/// Treatment of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Run the script.
    Run,
    /// Search the script for errors, and fail because of warnings if `strict`.
    Check { strict: bool },
    /// Print the script.
    Print,
    /// List the durations of the script, or forget them.
    Durations { forgets: bool },
    /// Serve an editor, which provides scripts.
    Serve,
    /// Show a journal.
    View(JournalView, PathBuf),
}

/// View of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JournalView {
    /// The log.
    Log,
    /// State of the run.
    Status,
    /// Picture of the run.
    Timeline,
    /// Trace of the run.
    Trace,
}

/// A script and its arguments.
#[derive(Debug)]
pub(super) struct ScriptPlan {
    /// Source of the script.
    pub program: ScriptSource,
    /// Values of `$0`, `$1`, …
    pub arguments: Vec<BString>,
    /// Seed of random choices; if none, the system provides one.
    pub seed: Option<u64>,
}

impl ScriptPlan {
    /// True if the statements come from a person at a terminal.
    pub(super) fn is_prompt(&self) -> bool {
        matches!(self.program, ScriptSource::Prompt)
    }
}

/// Waits before the first command.
#[derive(Debug, Default)]
pub(super) struct StartPlan {
    /// Longest random delay.
    pub splay: Duration,
    /// Lock that keeps a second run from starting.
    pub lock: Option<lock::LockLocation>,
    /// Directory of the locks of scripts, if not the usual one.
    pub lock_directory: Option<PathBuf>,
    /// Longest wait for the lock.
    pub lock_wait: Duration,
    /// End of the run when another one holds the lock or the journal.
    pub when_busy: WhenBusy,
    /// True if the run ends with the process that started it.
    pub end_with_caller: bool,
}

/// Recording of a run.
#[derive(Debug, Default)]
pub(super) struct JournalPlan {
    /// File of the journal.
    pub file: PathBuf,
    /// Deadline of this start of the run. The next start may continue after this deadline.
    pub deadline: Deadline,
}

/// Trace of a run.
#[derive(Clone, Debug)]
pub(super) struct TracePlan {
    /// Destination of the spans.
    pub destination: Destination,
    /// Place of the caller in its trace.
    pub caller: Option<BString>,
}

/// Reports about a run.
#[derive(Debug)]
pub(super) struct ReportingPlan {
    /// File of the log; standard error if none.
    pub log_file: Option<PathBuf>,
    /// Format of the log.
    pub log_format: Format,
    /// True if times in the log are seconds since 1970.
    pub log_decimal: bool,
    /// True if a failure is reported in one line.
    pub is_brief: bool,
    /// Runs whose output is shown at their end only.
    pub cron: CronMode,
    /// True if a summary ends the run.
    pub summary: bool,
    /// File that receives a line for each branch.
    pub results: Option<PathBuf>,
    /// Trace of the run, if wanted.
    pub trace: Option<TracePlan>,
    /// File of the picture of a journal; standard output if none.
    pub picture: Option<PathBuf>,
}

impl RunPlan {
    /// Returns how long the end waits for pings, and before that for traces: together for
    /// [`TIMEOUT`].
    pub(super) fn report_limit(&self) -> Duration {
        let has_both = self.telemetry.ping.is_some() && self.reporting.trace.is_some();
        if has_both { TIMEOUT / 2 } else { TIMEOUT }
    }
}

/// Reports to other programs, and reports of repeated failures only.
#[derive(Debug, Default)]
pub(super) struct TelemetryPlan {
    /// Address of a monitor.
    pub ping: Option<Url>,
    /// Directory of files with metrics.
    pub metrics: Option<PathBuf>,
    /// Number of failures in a row from which on reports are shown.
    pub cron_after: Option<u64>,
}
