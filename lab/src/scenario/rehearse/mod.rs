//! Rehearsal of a user's script in virtual time with modelled commands: its chance of success, its
//! time, and what decides them.

mod effects;
mod endless;
mod notes;
mod picture;
mod tables;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use ftsh_syntax::diagnostic;
use ftsh_syntax::{Script, parse_bytes};
use ftsh_sys::os_error::plain;

use crate::common::{CommonOptions, RenderedError, Report, TrialProgress, input, trials};
use crate::rehearsal::{
    CLAUSES, ClientRun, CommandModel, Detail, Rehearsal, Share, Trial, TryStatistics, named, share,
    without_comment,
};

/// What will come of a script whose commands fail, take their time or hang, as you say
///
/// The script itself runs, in virtual time; its commands are models, and those without one succeed
/// at once. The first model that is about a command counts. A model is a command's name, words that
/// are among its arguments, and what it does:
///   fails [30% | 2 times]  exits N  takes 2s [to 20s] [or 1 min if it fails]
///   down [from 10 min] for 20 min  hangs [1%]  serves N  prints TEXT  ignores SIGTERM
///
/// Example: ftsh-lab rehearse examples/mirror.ftsh a.iso --command 'wget *.de.* hangs 10%'
///                   --command 'wget fails 30% takes 2s to 20s'
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct RehearseOptions {
    /// The script
    pub script: PathBuf,
    /// Arguments of the script; after `--` if they begin with a hyphen
    #[arg(value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
    /// Model of a command; repeatable
    #[arg(long = "command", value_name = "MODEL", value_parser = str::parse::<CommandModel>)]
    pub models: Vec<CommandModel>,
    /// A file of models, one per line, after those of --command; `#` begins a comment
    #[arg(long, value_name = "FILE")]
    pub commands: Option<PathBuf>,
    /// A file that exists when the script begins, with its present content or with this text, which
    /// may be empty (`PATH=`); repeatable
    #[arg(long = "file", value_name = "PATH[=TEXT]")]
    pub files: Vec<String>,
    /// Number of clients that run the script concurrently and use the same servers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: u32,
    /// Period in which several clients begin
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = input::length)]
    pub start: Duration,
    /// Stops unfinished runs at this time
    #[arg(long, value_name = "TIME", value_parser = input::length)]
    pub until: Option<Duration>,
    /// Skips the search for changes of limits and policies
    #[arg(long)]
    pub as_it_is: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Number of trials by default, with one client.
const TRIALS: u32 = 1000;
/// Number of trials before the first of them is examined.
const AT_A_TIME: usize = 100;
/// Minimum number of meaningful trials.
const FEWEST: u32 = 20;
/// Number of events of all trials above which fewer trials are made.
const AFFORDABLE: u64 = 20_000_000;

/// State of the search for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Changes were tried.
    Tried,
    /// Changes were not requested.
    Unwanted,
    /// Changes would have taken too long.
    TooMuch,
}

/// Results of all trials.
pub struct RehearsalResult {
    /// Name of the rehearsed script.
    pub name: String,
    /// Parameters.
    pub rehearsal: Rehearsal,
    /// The trials.
    pub trials: Vec<Trial>,
    /// Probability that a client's script succeeds.
    pub success: Share,
    /// Commands without a model that never ran, in the order of the text.
    pub never: Vec<String>,
    /// Counts of the tries.
    pub tries: TryStatistics,
    /// State of the search for changes.
    pub changes: Changes,
    /// Effects of changes, largest first.
    pub effects: Vec<effects::ChangeEffect>,
    /// Trial, client and log of the worst run.
    pub worst: (usize, usize, Trial),
}

/// Runs the scenario.
pub fn run(options: &RehearseOptions) -> Result<Report> {
    let name = options.script.display().to_string();
    let script = read(&options.script)?;
    let rehearsal = rehearsal(options, &name)?;
    let detail = if options.common.plot.is_some() { Detail::Starts } else { Detail::Tries };
    let first = rehearsal.trial(&script, 0, detail);
    endless::refuse(&name, &rehearsal, &first)?;
    let count = options.common.trials(usual(options.clients, first.events));
    input::bounded(first.events as f64 * f64::from(count))?;
    let numbers: Vec<u64> = (0..u64::from(count)).collect();
    let progress = TrialProgress::new(numbers.len());
    let mut all = Vec::with_capacity(numbers.len());
    // In batches, because refused trials take longest.
    for some in numbers.chunks(AT_A_TIME) {
        let trials = trials(some, &progress, |number| rehearsal.trial(&script, *number, detail));
        for trial in &trials {
            endless::refuse(&name, &rehearsal, trial)?;
        }
        all.extend(trials);
    }
    let trials = all;
    drop(progress);
    let shares: Vec<f64> = trials.iter().map(Trial::share).collect();
    let mut tries = TryStatistics::default();
    for trial in &trials {
        tries.merge(&trial.tries);
    }
    let (changes, effects) = if options.as_it_is {
        (Changes::Unwanted, Vec::new())
    } else {
        match effects::effects(&rehearsal, &script, &trials, &tries) {
            Some(effects) => (Changes::Tried, effects),
            None => (Changes::TooMuch, Vec::new()),
        }
    };
    let (trial, client) = worst(&trials);
    let log = rehearsal.trial(&script, trial as u64, Detail::Log(client));
    let found = RehearsalResult {
        success: share(&shares, options.clients),
        never: never(&script, &rehearsal, &trials),
        worst: (trial, client, log),
        name,
        changes,
        rehearsal,
        trials,
        tries,
        effects,
    };
    Ok(Report {
        tables: tables::tables(&found, &script),
        notes: notes::notes(&found, &script),
        picture: picture::picture(&found),
    })
}

/// Returns the default number of trials, which is smaller for long trials.
fn usual(clients: u32, events: u64) -> u32 {
    let affordable = u32::try_from(AFFORDABLE / events.max(1)).unwrap_or(u32::MAX);
    (TRIALS / clients).min(affordable).max(FEWEST)
}

fn read(path: &Path) -> Result<Script> {
    let name = path.display().to_string();
    let text = std::fs::read(path)
        .map_err(|error| anyhow!("can't read the script `{name}`: {}", plain(&error)))?;
    let render = |mistakes| RenderedError(diagnostic::render_all(&mistakes)).into();
    parse_bytes(&name, &text).map_err(render)
}

fn rehearsal(options: &RehearseOptions, name: &str) -> Result<Rehearsal> {
    let mut models = options.models.clone();
    if let Some(path) = &options.commands {
        models.extend(from_file(path)?);
    }
    let args = std::iter::once(name.into())
        .chain(options.arguments.iter().map(|it| it.clone().into_vec().into()));
    // As in the shell, except for variables of a surrounding shell.
    let environment = std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec()));
    let environment = environment.filter(|(name, _)| !name.starts_with(b"FTSH_"));
    let policy = match &options.common.policies[..] {
        [] => ftsh_syntax::backoff::Policy::default(),
        [crowd] => match crowd.single() {
            Some(policy) => policy.clone(),
            None => bail!("--policy: tries without a policy share a single one; give one policy"),
        },
        _ => bail!("--policy: tries without a policy share a single one; give one policy"),
    };
    Ok(Rehearsal {
        args: args.collect(),
        environment: environment.map(|(name, value)| (name.into(), value.into())).collect(),
        files: options.files.iter().map(|file| content(file)).collect::<Result<_>>()?,
        models,
        policy,
        clients: options.clients,
        start: options.start,
        until: options.until,
        seed: options.common.seed,
    })
}

fn from_file(path: &Path) -> Result<Vec<CommandModel>> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| anyhow!("can't read {name}: {}", plain(&error)))?;
    let mut models = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = without_comment(line).trim();
        if !line.is_empty() {
            let model = line.parse::<CommandModel>();
            models.push(model.map_err(|mistake| anyhow!("{name}:{}: {mistake}", at + 1))?);
        }
    }
    if models.is_empty() {
        bail!("{name} has no model; a line is a command with its clauses: {CLAUSES}");
    }
    Ok(models)
}

/// Returns the path and the content of a file.
fn content(file: &str) -> Result<(String, String)> {
    let (path, text) = file.split_once('=').map_or((file, None), |(path, text)| (path, Some(text)));
    if path.is_empty() {
        bail!("--file `{file}`: missing path, as in `--file PATH` or `--file PATH=TEXT`");
    }
    let content = match text {
        Some("") => String::new(),
        Some(text) => format!("{text}\n"),
        None => match std::fs::read(path) {
            Ok(content) => String::from_utf8_lossy(&content).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(
                "--file: no file `{path}`; give its text with `--file {path}=TEXT`, \
                 or an empty file with `--file {path}=`"
            ),
            Err(error) => bail!("--file: can't read `{path}`: {}", plain(&error)),
        },
    };
    Ok((path.into(), content))
}

/// Returns the commands without a model that never ran.
fn never(script: &Script, rehearsal: &Rehearsal, trials: &[Trial]) -> Vec<String> {
    let ran = |name: &str| {
        trials.iter().flat_map(|trial| &trial.others).any(|(other, _)| *other == *name)
    };
    let mut names = Vec::new();
    for command in named(script) {
        let name = command.short_name();
        let has_model = rehearsal.models.iter().any(|model| command.may_match(model));
        if !has_model && !ran(name) && !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Returns the trial and the client of the worst run: the longest failed one, or else the longest
/// of all. The first of equal ones counts.
fn worst(trials: &[Trial]) -> (usize, usize) {
    let runs = trials.iter().enumerate().flat_map(|(trial, it)| {
        it.runs.iter().enumerate().map(move |(client, run)| (trial, client, run))
    });
    let how_bad = |run: &ClientRun| (!run.success(), run.time);
    let worst =
        runs.reduce(|worst, next| if how_bad(next.2) > how_bad(worst.2) { next } else { worst });
    worst.map_or((0, 0), |(trial, client, _)| (trial, client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_trials_are_fewer() {
        assert_eq!(
            (usual(1, 0), usual(1, 10), usual(10, 10), usual(100_000, 10)),
            (1000, 1000, 100, 20)
        );
        assert_eq!((usual(1, AFFORDABLE / 300), usual(1, u64::MAX)), (300, 20));
    }
}
