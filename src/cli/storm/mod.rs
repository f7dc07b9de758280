//! `--storm`: runs of a script with one fault each, in copies of directories.

mod inside;
mod programs;
mod work;
mod world;

use std::ffi::OsString;

use anyhow::{Result, anyhow};

use self::inside::StormFiles;
use self::work::WorkDirectory;
use self::world::CoveredWorld;
use crate::cli::messages::{print_text, report, usage};
use crate::cli::options::flags::Flags;
use crate::cli::plan::source::ScriptSource;
use crate::cli::plan::{Action, RunPlan};
use ftsh_layers::Directories;
use ftsh_machine::Outcome;
use ftsh_models::CommandModel;
use ftsh_process as process;
use ftsh_storm::{StormError, StormSettings, storm};
use ftsh_syntax::slug::Slug;

pub(super) use self::programs::serve_program;

pub(super) use self::inside::{StormRun, hang_if_requested, run_machine, run_recorded};

/// Status of a storm with commands that cannot be repeated.
const NOT_REPEATABLE: u8 = 1;

/// Status of a storm whose result cannot be printed, as of one without a result.
const NO_RESULT: u8 = 2;

/// Directory that is always copied, since most scripts change something there.
const OWN_DIRECTORY: &str = ".";

/// Words of the C library for EROFS, without the first letter.
const READ_ONLY: &str = "ead-only file system";

/// Runs the script of a plan with each fault, and reports the result.
pub(super) fn run(flags: &Flags, plan: &RunPlan, words: Vec<OsString>) -> Result<Outcome> {
    let is_rereadable = !matches!(plan.script.program, ScriptSource::StandardInput);
    if plan.action != Action::Run || plan.script.is_prompt() || !is_rereadable {
        let message = "`--storm` needs a script to run: a file, `-c` or a prefix";
        return Err(usage(Slug::OptionConflict, message));
    }
    let script = match plan.script.program.script() {
        Ok(script) => script,
        Err(unusable) => return unusable.report(),
    };
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let models: Vec<String> = flags.storm_command.iter().map(text).collect();
    for model in &models {
        model.parse::<CommandModel>().map_err(|reason| {
            usage(Slug::OptionValue, format_args!("`--command` can't be `{model}`: {reason}"))
        })?;
    }
    let own = OsString::from(OWN_DIRECTORY);
    let directories: Vec<_> = flags.storm_in.iter().chain([&own]).collect();
    let places = Directories::find(&directories).map_err(|error| anyhow!("--storm: {error}"))?;
    let work = WorkDirectory::create(&places)?;
    let files = StormFiles::new(work.path());
    let settings = StormSettings {
        seed: plan.script.seed.map_or_else(process::random, Ok)?,
        directories: places.directories().map(Into::into).collect(),
        current: std::env::current_dir().unwrap_or_default(),
        lines: script.source.text().lines().map(ToOwned::to_owned).collect(),
        trace: files.trace.clone(),
        calls: files.calls.clone(),
        programs: programs::create(work.path(), &models)?,
        models,
    };
    let mut world = CoveredWorld::new(places, files, words);
    match storm(&mut world, &settings) {
        Ok(found) => {
            let text =
                if flags.storm_json { format!("{:#}\n", found.json()) } else { found.text() };
            Ok(match print_text(&text) {
                Outcome::Succeeded if !found.is_repeatable() => Outcome::Exited(NOT_REPEATABLE),
                Outcome::Succeeded => Outcome::Succeeded,
                // Status 1 is a result.
                _ => Outcome::Exited(NO_RESULT),
            })
        }
        Err(StormError::Interrupted(signal)) => Ok(Outcome::Interrupted(signal)),
        Err(error) => {
            let mut hint = "";
            if let StormError::Undisturbed { errors, .. } = &error {
                let errors = String::from_utf8_lossy(errors);
                report(&errors);
                if errors.contains(READ_ONLY) {
                    hint = "; files outside of the copies are read-only: `--in DIR` copies DIR as well";
                }
            }
            Err(anyhow!("--storm: {error}{hint}"))
        }
    }
}
