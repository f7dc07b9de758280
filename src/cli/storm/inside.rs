//! One run of a storm, in the shell that runs the script.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, pause};

use crate::cli::journal::Recorded;
use crate::cli::options::values::CronMode;
use crate::cli::plan::{Action, JournalPlan, RunPlan, StartPlan, TelemetryPlan};
use crate::cli::preview::covered::PROGRAM;
use ftsh_cluster::ClusterDriver;
use ftsh_machine::driver::{self, Driver};
use ftsh_machine::{Deadline, Machine, Outcome, Time};
use ftsh_process as process;
use ftsh_storm::{RunSpec, StormDriver, SystemHooks};
use ftsh_sys::remove_tree;

/// First argument of the shell that runs the script. The second one is the directory of the storm's
/// own files.
pub(super) const INSIDE: &str = "--in-storm";

/// Only argument of a process that hangs.
const HANG: &str = "--hang-in-storm";

/// Files of a storm.
pub(super) struct StormFiles {
    pub directory: PathBuf,
    pub spec: PathBuf,
    pub trace: PathBuf,
    pub output: PathBuf,
    pub errors: PathBuf,
    pub journal: PathBuf,
    pub channels: PathBuf,
    /// Directory for temporary files of the script.
    pub temporary: PathBuf,
    /// Directory with the numbers of runs of the models.
    pub calls: PathBuf,
    /// Names of programs that ran for real.
    pub real: PathBuf,
}

impl StormFiles {
    /// Returns the files in a directory.
    pub(super) fn new(directory: &Path) -> Self {
        let file = |name| directory.join(name);
        Self {
            directory: directory.into(),
            spec: file("spec"),
            trace: file("trace"),
            output: file("output"),
            errors: file("errors"),
            journal: file("journal"),
            channels: file("channels"),
            temporary: file("tmp"),
            calls: file("calls"),
            real: file("real"),
        }
    }

    /// Removes what an earlier run wrote.
    pub(super) fn remove(&self) -> io::Result<()> {
        let files =
            [&self.spec, &self.trace, &self.output, &self.errors, &self.journal, &self.real];
        for path in files {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        for path in [&self.temporary, &self.calls] {
            remove_tree(path)?;
            fs::create_dir(path)?;
        }
        Ok(())
    }

    /// Reads the instructions of a run.
    pub(super) fn read_spec(&self) -> Result<RunSpec> {
        let text = fs::read(&self.spec).context("the instructions of the storm")?;
        serde_json::from_slice(&text).context("the instructions of the storm")
    }
}

/// Instructions for this process, which runs a script in a storm.
pub(in crate::cli) struct StormRun {
    files: StormFiles,
    spec: RunSpec,
}

impl StormRun {
    /// Reads the instructions, and removes the arguments that name them. Returns `None` outside a
    /// storm.
    pub(in crate::cli) fn take(words: &mut Vec<OsString>) -> Result<Option<Self>> {
        if words.len() < 2 || words[0] != INSIDE {
            return Ok(None);
        }
        let taken: Vec<OsString> = words.drain(..2).collect();
        let files = StormFiles::new(Path::new(&taken[1]));
        let spec = files.read_spec()?;
        Ok(Some(Self { files, spec }))
    }

    /// Removes the parts of a plan that concern other runs, and adds the journal of the storm.
    pub(in crate::cli) fn adjust(self, plan: &mut RunPlan) {
        plan.action = Action::Run;
        plan.start = StartPlan::default();
        plan.script.seed = Some(self.spec.seed);
        plan.reporting.cron = CronMode::Off;
        plan.reporting.log_file = None;
        plan.reporting.results = None;
        plan.reporting.trace = None;
        plan.reporting.summary = false;
        plan.telemetry = TelemetryPlan::default();
        let journal = JournalPlan { file: self.files.journal, deadline: Deadline::NONE };
        plan.journal = self.spec.is_recorded.then_some(journal);
        plan.storm = Some(self.spec);
    }
}

/// Hangs if a command line requests it.
pub(in crate::cli) fn hang_if_requested(words: &[OsString]) {
    if matches!(words, [word] if word == HANG) {
        loop {
            pause();
        }
    }
}

/// Returns the functions of the system for the driver.
fn hooks() -> SystemHooks {
    SystemHooks {
        hanging: vec![PROGRAM.into(), HANG.into()],
        kill_tree: process::kill_subtree,
        kill_self: || loop {
            let _ = kill(Pid::this(), Signal::SIGKILL);
        },
    }
}

/// Runs a script with the fault of a storm.
pub(in crate::cli) fn run_machine(
    driver: ClusterDriver,
    spec: RunSpec,
    machine: &mut Machine,
) -> (Outcome, Time, ClusterDriver) {
    let mut driver = StormDriver::new(driver, spec, hooks());
    let outcome = driver::run(machine, &mut driver);
    (outcome.clone(), driver.now(), driver.finish(&outcome))
}

/// Runs a script with the fault of a storm and a journal.
pub(in crate::cli) fn run_recorded(
    driver: ClusterDriver,
    spec: RunSpec,
    recorded: Recorded,
    pid: u32,
) -> Result<(Outcome, Time, ClusterDriver)> {
    let mark = driver.tag_name().to_owned();
    let mut driver = StormDriver::new(driver, spec, hooks());
    let outcome = recorded.run(&mut driver, pid, &mark, Deadline::NONE)?;
    Ok((outcome.clone(), driver.now(), driver.finish(&outcome)))
}
