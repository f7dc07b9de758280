//! Advice for runs that do too much to continue.

use anyhow::{Result, bail};
use ftsh_machine::outcome::Human;

use crate::rehearsal::{
    CommandModel, MAX_AT_ONCE, MAX_EVENTS, MAX_EVENTS_UNTIL, Rehearsal, Stop, Trial,
};

/// Number of starts in a second above which a command counts as taking no time.
const OFTEN: u64 = 1000;

/// Refuses a trial that was stopped early.
pub(super) fn refuse(name: &str, rehearsal: &Rehearsal, trial: &Trial) -> Result<()> {
    let Some(stop) = trial.stop else { return Ok(()) };
    let time = Human(trial.runs.iter().map(|run| run.time).max().unwrap_or_default());
    match (stop, rehearsal.until) {
        (Stop::StandsStill, _) => bail!(
            "{name}: time stands still after {time}, with {MAX_AT_ONCE} events that take none: {}",
            what_takes_none(rehearsal, trial)
        ),
        (Stop::TooMuch, None) => bail!(
            "{name}: a run is not over after {time} and {MAX_EVENTS} events, and may be endless; \
             `--until 1h` stops each unfinished run at that time"
        ),
        (Stop::TooMuch, Some(_)) => bail!(
            "{name}: a run is not over after {time} and {MAX_EVENTS_UNTIL} events, too many to \
             simulate; give an earlier time with `--until`"
        ),
    }
}

/// Names the command that runs endlessly because it takes no time, and a remedy.
fn what_takes_none(rehearsal: &Rehearsal, trial: &Trial) -> String {
    let models = trial.uses.iter().zip(&rehearsal.models).map(|(it, model)| (it, Ok(model)));
    let others = trial.others.iter().map(|(name, it)| (it, Err(name)));
    let often = models.chain(others).filter(|(it, _)| it.a_second >= OFTEN);
    match often.max_by_key(|(it, _)| it.a_second) {
        Some((_, Ok(model))) => advice(model),
        Some((_, Err(name))) => {
            format!("`{name}` ends at once without a duration: use --command '{name} takes 1s'")
        }
        None => "the shell's own commands take none; is there a loop without an end, or without a \
                 `sleep`?"
            .into(),
    }
}

fn advice(model: &CommandModel) -> String {
    if model.takes.is_none() {
        return format!(
            "`{}` ends at once without a duration: use --command '{model} takes 1s'",
            model.name()
        );
    }
    if model.failing.is_none() && !model.down.is_empty() {
        return format!(
            "while it is down `{}` fails at once without a duration: add after `takes …` \
             `or 1s if it fails`",
            model.name()
        );
    }
    format!("have `{model}` take some")
}
