//! Order of the runs of a storm.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::fault::CommandFault;
use crate::judge::{Baseline, DisturbedRun};
use crate::plan::{PlannedCommand, plan};
use crate::report::{CommandReport, StormReport};
use crate::spec::{Injection, RunSpec};
use crate::trace::{RunTrace, TracedCommand};
use crate::tree::Changes;
use crate::world::{RunEnd, StormWorld};
use ftsh_models::CommandModel;

/// Number of commands of a disturbed run beyond those of some undisturbed runs.
const EXTRA_COMMANDS: u64 = 1000;

/// Real time of a disturbed run beyond that of some undisturbed runs.
const EXTRA_TIME: Duration = Duration::from_secs(30);

/// Real time beyond that of two undisturbed runs after which all waits are for a hang.
const EXTRA_SILENCE: Duration = Duration::from_millis(300);

/// Number of undisturbed runs that a disturbed run may take as long as.
const MAX_FACTOR: u32 = 20;

/// Step of the clocks that most scripts read.
const CLOCK_STEP: Duration = Duration::from_millis(1050);

/// Real time of an undisturbed run, at most.
const MAX_TIME: Duration = Duration::from_secs(86_400);

/// Programs that talk to other machines or services. Their effects there are real.
pub const TALKING: [&str; 40] = [
    "aws",
    "az",
    "borg",
    "consul",
    "curl",
    "dig",
    "docker",
    "etcdctl",
    "ftp",
    "gcloud",
    "gh",
    "gsutil",
    "helm",
    "http",
    "kubectl",
    "logger",
    "mail",
    "mongo",
    "mysql",
    "mysqldump",
    "nc",
    "nomad",
    "pg_dump",
    "ping",
    "podman",
    "psql",
    "rclone",
    "redis-cli",
    "restic",
    "rsync",
    "s3cmd",
    "sbatch",
    "scp",
    "sendmail",
    "sftp",
    "srun",
    "ssh",
    "telnet",
    "terraform",
    "wget",
];

/// Settings of a storm.
#[derive(Clone, Debug)]
pub struct StormSettings {
    /// Seed of random choices.
    pub seed: u64,
    /// Models of commands, as text.
    pub models: Vec<String>,
    /// Directories that are copied.
    pub directories: Vec<PathBuf>,
    /// Directory that paths in the report are relative to.
    pub current: PathBuf,
    /// Lines of the script.
    pub lines: Vec<String>,
    /// File of the traces.
    pub trace: PathBuf,
    /// Directory with the numbers of runs of the models.
    pub calls: PathBuf,
    /// Directory that precedes `PATH` of commands.
    pub programs: PathBuf,
}

/// Reason why a storm has no report.
#[derive(Debug, Error)]
pub enum StormError {
    /// The script fails without a fault.
    #[error(
        "the script fails without any fault, with status {status}; a storm needs a run that succeeds"
    )]
    Undisturbed {
        /// Exit status.
        status: i32,
        /// Standard error of the script.
        errors: Vec<u8>,
    },
    /// A signal, given by its number, interrupts the storm.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
    /// The world fails.
    #[error(transparent)]
    StormWorld(#[from] io::Error),
}

/// Runs a script with one fault at a time, and reports the commands that cannot be repeated.
///
/// # Errors
///
/// Fails if the undisturbed run fails, or the world.
pub fn storm(
    world: &mut impl StormWorld,
    settings: &StormSettings,
) -> Result<StormReport, StormError> {
    let start = Instant::now();
    let mut storm = Storm {
        world,
        settings,
        runs: 0,
        usual: (0, Duration::ZERO),
        confirmed: BTreeSet::new(),
        real: BTreeSet::new(),
    };
    let one = storm.undisturbed()?;
    // Times in seconds are to differ.
    std::thread::sleep(CLOCK_STEP.saturating_sub(start.elapsed()));
    let begin_of_other = Instant::now();
    let other = storm.undisturbed()?;
    storm.usual = (one.0.trace.commands.len() as u64, begin_of_other.elapsed());
    let other_trace = other.0.trace.clone();
    let mut baseline = Baseline::new(one, other);
    let trace = baseline.trace.clone();
    let mut commands = Vec::new();
    for planned in plan(&trace, &other_trace) {
        commands.push(storm.disturb(&planned, &mut baseline)?);
    }
    storm.add_causes(&mut commands);
    Ok(StormReport {
        runs: storm.runs,
        took: start.elapsed(),
        commands,
        left_out: baseline.variation.left_out(&settings.current),
        unmodelled: storm.unmodelled(&trace),
    })
}

/// A storm in progress.
struct Storm<'s, W> {
    world: &'s mut W,
    settings: &'s StormSettings,
    runs: u64,
    /// Commands and real time of an undisturbed run.
    usual: (u64, Duration),
    /// Differences that another undisturbed run does not explain.
    confirmed: BTreeSet<String>,
    /// Names of programs that ran for real in the place of others.
    real: BTreeSet<String>,
}

impl<W: StormWorld> Storm<'_, W> {
    /// Runs the script without a fault in a fresh copy.
    fn undisturbed(&mut self) -> Result<(RunEnd, Changes), StormError> {
        self.world.renew()?;
        let spec = RunSpec { max_commands: u64::MAX, max_time: MAX_TIME, ..self.spec() };
        let end = self.run(&spec, false)?;
        if end.status != 0 {
            return Err(StormError::Undisturbed { status: end.status, errors: end.errors });
        }
        Ok((end, self.world.changes()?))
    }

    /// Runs the script with each fault of a command.
    fn disturb(
        &mut self,
        planned: &PlannedCommand,
        baseline: &mut Baseline,
    ) -> Result<CommandReport, StormError> {
        let mut findings = Vec::new();
        for injection in &planned.injections {
            let run = self.disturbed(injection)?;
            let mut finding = baseline.judge(&run, injection, &self.settings.current);
            // A date may have changed only now.
            if let Some(difference) = &finding.difference
                && self.confirmed.insert(difference.clone())
            {
                baseline.extend(self.undisturbed()?);
                finding = baseline.judge(&run, injection, &self.settings.current);
            }
            findings.push(finding);
        }
        let line = planned.command.line;
        Ok(CommandReport { line, text: self.text(planned.command), findings })
    }

    /// Runs the script with a fault. A run that fails is followed by an undisturbed one, as cron or a
    /// person would start it.
    fn disturbed(&mut self, injection: &Injection) -> Result<DisturbedRun, StormError> {
        self.world.renew()?;
        let is_recorded = injection.fault == CommandFault::ShellKilled;
        let spec = RunSpec { injection: Some(*injection), is_recorded, ..self.spec() };
        let mut end = self.run(&spec, false)?;
        if is_recorded && end.trace.injected.is_some() {
            end = self.run(&RunSpec { injection: None, ..spec }, true)?;
        }
        let again = match end.status {
            0 => None,
            _ if end.trace.is_endless => None,
            _ => Some(self.run(&self.spec(), false)?),
        };
        Ok(DisturbedRun { end, again, changes: self.world.changes()? })
    }

    fn run(&mut self, spec: &RunSpec, is_continued: bool) -> Result<RunEnd, StormError> {
        self.runs += u64::from(!is_continued);
        let end = self.world.run(spec, is_continued)?;
        self.real.extend(end.real.iter().cloned());
        match end.interrupt {
            Some(signal) => Err(StormError::Interrupted(signal)),
            None => Ok(end),
        }
    }

    /// Returns the instructions for a run without a fault.
    fn spec(&self) -> RunSpec {
        let (commands, time) = self.usual;
        let max_silence = time * 2 + EXTRA_SILENCE;
        RunSpec {
            seed: self.settings.seed,
            injection: None,
            models: self.settings.models.clone(),
            directories: self.settings.directories.clone(),
            trace: self.settings.trace.clone(),
            calls: self.settings.calls.clone(),
            programs: self.settings.programs.clone(),
            is_recorded: false,
            max_commands: commands * u64::from(MAX_FACTOR) + EXTRA_COMMANDS,
            max_time: time * MAX_FACTOR + EXTRA_TIME,
            max_silence,
        }
    }

    /// Returns the names of programs that ran for real, though they have a model or are known to talk to
    /// others: by the script, through other programs, or by a path among the words of a command.
    fn unmodelled(&self, trace: &RunTrace) -> Vec<String> {
        let models = self.settings.models.iter().filter_map(|it| it.parse::<CommandModel>().ok());
        let models: Vec<_> = models.collect();
        let mut real = self.real.clone();
        let may_be_modelled =
            |name: &str| models.iter().any(|it| it.may_apply_to_name(name.as_bytes()));
        for command in trace.commands.iter().filter(|it| it.is_program && !it.is_modelled) {
            let of_path = |c: char| c.is_alphanumeric() || "._/+-".contains(c);
            let words = command.text.split(|c| !of_path(c));
            let paths = words.filter(|it| it.contains('/') && self.is_program(it));
            for word in command.text.split(' ').take(1).chain(paths) {
                let name = word.rsplit('/').next().unwrap_or_default();
                if TALKING.contains(&name) || (word.contains('/') && may_be_modelled(name)) {
                    real.insert(name.to_owned());
                }
            }
        }
        real.into_iter().collect()
    }

    fn is_program(&self, path: &str) -> bool {
        let data = self.settings.current.join(path).metadata();
        data.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    }

    /// Adds the lines that cannot be repeated and have no command with a fault, such as a builtin
    /// that fails in the next run.
    fn add_causes(&self, commands: &mut Vec<CommandReport>) {
        let causes: BTreeSet<u32> =
            commands.iter().flat_map(|it| &it.findings).filter_map(|it| it.cause).collect();
        for line in causes {
            if commands.iter().all(|it| it.line != line) {
                let text = self.line(line).to_owned();
                commands.push(CommandReport { line, text, findings: Vec::new() });
            }
        }
        commands.sort_by_key(|it| it.line);
    }

    /// Returns a line of the script.
    fn line(&self, number: u32) -> &str {
        let index = (number as usize).saturating_sub(1);
        self.settings.lines.get(index).map(|line| line.trim()).unwrap_or_default()
    }

    /// Returns the text of a command: its line in the script, if the line has its name.
    fn text(&self, command: &TracedCommand) -> String {
        let line = self.line(command.line);
        let name = command.text.split(' ').next().unwrap_or_default();
        if line.contains(name) { line.to_owned() } else { command.text.clone() }
    }
}
