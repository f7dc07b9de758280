//! Steps before the first command of a script: capture of output, a random delay, the lock.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::lock::{self, Holder, Taken};
use super::messages::{complain, speak_through};
use super::plan::{RunPlan, StartPlan};
use super::source::Program;
use crate::log::LogWriter;
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::{Outcome, Time};
use ftsh_process::OutputCapture;
use ftsh_process::non_blocking_writer::NonBlockingWriter;
use ftsh_sys::os_error::plain;

/// Exit status when another run is in progress: `EX_TEMPFAIL` of sysexits.h, try again later.
const BUSY: u8 = 75;
/// Exit status when a deadline has passed.
pub const OUT_OF_TIME: u8 = 124;

/// Begins to capture output, if the plan says so. Messages of the shell still appear.
pub fn capture(plan: &RunPlan) -> Result<Option<OutputCapture>> {
    if !plan.reporting.is_cron {
        return Ok(None);
    }
    let begin = || {
        let capture = OutputCapture::begin(&plan.script.program.name())?;
        if let Some(voice) = capture.voice() {
            speak_through(NonBlockingWriter::new(File::from(voice.try_clone_to_owned()?)));
        }
        Ok(capture)
    };
    begin()
        .map(Some)
        .map_err(|error: std::io::Error| anyhow!("can't keep what is printed: {}", plain(&error)))
}

/// Waits a random part of the splay and takes the lock, in that order: a run that only waits blocks
/// no other one. An outcome means that the run is over before it began.
pub fn wait(plan: &mut RunPlan, seed: u64, log: &mut LogWriter) -> Result<Option<Outcome>> {
    let start = Instant::now();
    let deadline = plan.deadline_mut().as_ref().map(|deadline| deadline.elapsed());
    let StartPlan { splay, lock, lock_directory, lock_wait, skips_when_busy } = &plan.start;
    let left = || deadline.map_or(Duration::MAX, |time| time.saturating_sub(start.elapsed()));
    let name = plan.script.program.name();
    let file: Arc<str> = name.as_str().into();
    let mut report = |reason: &str, time| {
        let event = LogEvent::Waiting { reason: reason.into(), time };
        log.write(&LogRecord::of_shell(Time::START, Arc::clone(&file), 0, event));
    };
    let longest = (*splay).min(left());
    if !longest.is_zero() {
        let delay = longest.mul_f64(fraction(seed));
        report("splay", delay);
        std::thread::sleep(delay);
    }
    if let Some(place) = lock {
        let path = place.file(lock_directory.clone())?;
        let holder = Holder { pid: plan.machine.pid, script: &description(&plan.script.program) };
        let longest = (*lock_wait).min(left());
        if let Taken::Busy(owner) = lock::take(&path, &holder, longest, |owner| {
            report(owner, longest);
        })? {
            return Ok(Some(if longest < *lock_wait {
                complain(&format!("{name}: not run: {owner}"));
                Outcome::Exited(OUT_OF_TIME)
            } else {
                busy(&name, &owner, *skips_when_busy, log)
            }));
        }
    }
    // The run begins now, and its deadline is relative to its beginning.
    if let Some(deadline) = plan.deadline_mut() {
        *deadline = Time::after(left());
    }
    Ok(None)
}

/// Returns the outcome of a run that ends before it begins, because another one is in progress.
pub fn busy(name: &str, owner: &str, skips: bool, log: &mut LogWriter) -> Outcome {
    if !skips {
        complain(&format!("{name}: not run: {owner}"));
        return Outcome::Exited(BUSY);
    }
    let event = LogEvent::Note(format!("not run: {owner}"));
    let record = LogRecord::of_shell(Time::START, name.into(), 0, event);
    // With the waiting for a lock.
    log.write(&LogRecord { level: Level::COMMANDS, ..record });
    Outcome::Succeeded
}

/// A program in a message to another run, which may be in another directory. Others may read it: a
/// text's words are none of their business.
fn description(program: &Program) -> String {
    match program {
        Program::File(path) => {
            let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            whole.display().to_string()
        }
        other => other.name(),
    }
}

/// A number from 0 to 1, of a stream that the script's own choices don't use.
fn fraction(seed: u64) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(1);
    random.random()
}
