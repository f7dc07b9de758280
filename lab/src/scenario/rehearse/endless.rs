//! Says what helps where a run does too much to be gone on with.

use anyhow::{Result, bail};
use ftsh_machine::outcome::Human;

use crate::rehearsal::{
    MOST_AT_ONCE, MOST_EVENTS, MOST_EVENTS_UNTIL, Model, Rehearsal, Stop, Trial,
};

/// A command that starts so often in a second takes no time.
const OFTEN: u64 = 1000;

/// Refuses a trial that wasn't gone on with.
pub fn refuse(name: &str, rehearsal: &Rehearsal, trial: &Trial) -> Result<()> {
    let Some(stop) = trial.stop else { return Ok(()) };
    let time = Human(trial.runs.iter().map(|run| run.time).max().unwrap_or_default());
    match (stop, rehearsal.until) {
        (Stop::StandsStill, _) => bail!(
            "{name}: time stands still after {time}, with {MOST_AT_ONCE} events that take none: {}",
            what_takes_none(rehearsal, trial)
        ),
        (Stop::TooMuch, None) => bail!(
            "{name}: a run isn't over after {time} and {MOST_EVENTS} events: does it end by itself? \
             `--until 1h` stops each run that isn't over by then"
        ),
        (Stop::TooMuch, Some(_)) => bail!(
            "{name}: a run isn't over after {time} and {MOST_EVENTS_UNTIL} events, more than anybody \
             would wait for: say a time before that with `--until`"
        ),
    }
}

/// Which command goes on for ever, since it takes no time, and how to have it take some.
fn what_takes_none(rehearsal: &Rehearsal, trial: &Trial) -> String {
    let models = trial.uses.iter().zip(&rehearsal.models).map(|(it, model)| (it, Ok(model)));
    let others = trial.others.iter().map(|(name, it)| (it, Err(name)));
    let often = models.chain(others).filter(|(it, _)| it.a_second >= OFTEN);
    match often.max_by_key(|(it, _)| it.a_second) {
        Some((_, Ok(model))) => advice(model),
        Some((_, Err(name))) => {
            format!(
                "`{name}` ends at once unless told how long it takes: --command '{name} takes 1s'"
            )
        }
        None => "the shell's own commands take none; is there a loop without an end, or without a \
                 `sleep`?"
            .into(),
    }
}

fn advice(model: &Model) -> String {
    if model.takes.is_none() {
        return format!(
            "`{}` ends at once unless told how long it takes: --command '{model} takes 1s'",
            model.name()
        );
    }
    if model.failing.is_none() && !model.down.is_empty() {
        return format!(
            "while it is down `{}` fails at once unless told how long that takes, after `takes …`: \
             `or 1s if it fails`",
            model.name()
        );
    }
    format!("have `{model}` take some")
}
