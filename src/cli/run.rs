//! Runs a script for real: what comes before its first command, in order.

use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStringExt;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::conduct::{Means, Work};
use super::journal::{self, Found, Recording, Taken};
use super::messages::{complain, remark};
use super::settings::{DEADLINE, Settings};
use super::source::{Program, Unusable};
use super::telling::Telling;
use super::{begin, end, options};
use crate::repl::{self, Story};
use ftsh_machine::effect::Environment;
use ftsh_machine::{Machine, Outcome, Time};
use ftsh_process as process;
use ftsh_syntax::Script;
use ftsh_sys::os_error::plain;

/// Runs `script`, in a process of its own if it may start others; then that one ends here. An error
/// means that nothing was run.
pub fn run(script: Result<Script, Unusable>, mut settings: Settings) -> Result<Outcome> {
    // A run that goes on has its text, and has waited.
    let has_earlier = settings.journal.as_deref().is_some_and(journal::has_earlier);
    let script = match script {
        Err(unusable) if !has_earlier => return unusable.tell(),
        script => script,
    };
    if has_earlier {
        settings.splay = Duration::ZERO;
    }
    let mut capture = begin::capture(&settings)?;
    let run = random()?;
    let mut telling = Telling::open(&settings, run)?;
    settings.config.log_level = telling.level();
    let seed = settings.seed.map_or_else(random, Ok)?;
    if let Some(outcome) = begin::wait(&mut settings, seed, telling.log())? {
        return Ok(outcome);
    }
    let (is_cron, locks) = (settings.cron, settings.lock.is_some());
    let name = settings.program.name();
    let talks = matches!(settings.program, Program::Prompt);
    if talks {
        settings.config.log_level = settings.config.log_level.max(Story::LEVEL);
    }
    let told = std::mem::take(&mut settings.told);
    let (patience, channels) = (settings.patience.inside(), settings.channels.take());
    let (lease, ship) = (settings.lease, settings.ship);
    // What is recorded goes on after it.
    let limit = settings.journal.as_ref().and_then(|_| settings.config.deadline.take());
    if limit.is_some_and(|limit| limit == Time::START) {
        complain(&format!("{name}: not run: its time is over"));
        return Ok(Outcome::Exited(begin::OUT_OF_TIME));
    }
    let work = match work(script, settings, run, seed, &mut telling)? {
        Ok(work) => work,
        Err(outcome) => return Ok(outcome),
    };
    if let (Some(capture), Some((place, begins))) = (&mut capture, work.place()) {
        capture.keep_in(journal::open_output(place, begins)?);
    }
    let at_end = work.place().map(|(place, _)| journal::at_end(place, is_cron)).transpose()?;
    let options = process::SupervisorOptions {
        capture: capture.map(Rc::new),
        stay: locks || at_end.is_some(),
        restore: if talks { repl::restore() } else { None }.map(Rc::new),
        at_end: at_end.clone(),
        lifelines: work.place().and_then(|(place, _)| place.lifelines.clone()),
        limit: None,
    };
    let is_alone = !is_cron && !talks && !work.may_run_programs();
    let means = Means {
        file: work.name().unwrap_or(&name).into(),
        telling: Rc::new(RefCell::new(telling)),
        told,
        patience,
        channels,
        lease,
        ship,
        limit: limit.map(Time::elapsed),
        talks,
        is_cron,
        at_end,
    };
    if is_alone {
        return means.perform(work, None);
    }
    process::supervise(options, move |supervision| -> Infallible {
        end(means.perform(work, supervision))
    })
}

/// What there is to do, or how it ends before it begins.
fn work(
    script: Result<Script, Unusable>,
    settings: Settings,
    run: u64,
    seed: u64,
    telling: &mut Telling,
) -> Result<Result<Work, Outcome>> {
    // The deadline of this start is told to commands anew; the next start has another one.
    let is_kept = |name: &OsStr| settings.journal.is_none() || name != DEADLINE;
    let environment: Environment = std::env::vars_os()
        .filter(|(name, _)| !options::is_private(name) && is_kept(name))
        .map(|(name, value)| (name.into_vec().into(), value.into_vec().into()))
        .collect();
    let (level, grace) = (settings.config.log_level, settings.config.kill_timeout);
    let (arguments, config) = (settings.arguments, settings.config);
    let skips = settings.lock_skips;
    let taken = settings.journal.map(|path| journal::take(&path)).transpose()?;
    let name = settings.program.name();
    Ok(Ok(match (taken, script) {
        (Some(Taken::Busy(reason)), _) => {
            return Ok(Err(begin::busy(&name, &reason, skips, telling.log())));
        }
        (Some(Taken::Earlier(earlier)), script) => {
            let text = script.as_ref().ok().map(|script| script.source.text());
            if let Some(text) = earlier.compared(&settings.program, text)? {
                remark(&format!("{name}: {text}"));
            }
            telling.goes_on(earlier.run());
            match earlier.repeat(level, grace, |record| telling.recall(record))? {
                // That isn't another run, and won't be over by itself.
                Found::Busy(reason) => {
                    return Ok(Err(begin::busy(&name, &reason, false, telling.log())));
                }
                Found::Over(ended) => Work::Tell(ended),
                Found::Unfinished(recording) => Work::Record(recording),
            }
        }
        // It was there when it was looked at, and is no more.
        (_, Err(unusable)) => return unusable.tell().map(Err),
        (Some(Taken::New(place)), Ok(script)) => {
            Work::Record(Recording::of(place, run, &script, arguments, environment, config, seed))
        }
        (None, Ok(script)) => {
            Work::Run(Box::new(Machine::new(&script, arguments, environment, config, seed)))
        }
    }))
}

fn random() -> Result<u64> {
    process::random()
        .map_err(|error| anyhow!("the system has no random numbers: {}", plain(&error)))
}
