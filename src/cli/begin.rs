//! What comes before a script's first command: keeping its output, a random delay, the lock.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::lock::{self, Holder, Taken};
use super::messages::{complain, speak_through};
use super::settings::Settings;
use super::source::Program;
use crate::log::Log;
use ftsh_machine::record::{Level, LogEvent, Record};
use ftsh_machine::{Outcome, Time};
use ftsh_process::OutputCapture;
use ftsh_process::non_blocking_writer::NonBlockingWriter;
use ftsh_sys::os_error::plain;

/// The exit status when another run is on: `EX_TEMPFAIL` of sysexits.h, try again later.
const BUSY: u8 = 75;
/// The exit status when a deadline has passed.
pub const OUT_OF_TIME: u8 = 124;

/// Begins to keep what is printed, if that is asked for. Messages are still told.
pub fn capture(settings: &Settings) -> Result<Option<OutputCapture>> {
    if !settings.cron {
        return Ok(None);
    }
    let begin = || {
        let capture = OutputCapture::begin(&settings.program.name())?;
        if let Some(voice) = capture.voice() {
            speak_through(NonBlockingWriter::new(File::from(voice.try_clone_to_owned()?)));
        }
        Ok(capture)
    };
    begin()
        .map(Some)
        .map_err(|error: std::io::Error| anyhow!("can't keep what is printed: {}", plain(&error)))
}

/// Waits a random part of the splay and takes the lock, in that order: who only waits keeps nobody
/// away. An outcome means that the run is over before it began.
pub fn wait(settings: &mut Settings, seed: u64, log: &mut Log) -> Result<Option<Outcome>> {
    let start = Instant::now();
    let deadline = settings.config.deadline.map(Time::elapsed);
    let left = || deadline.map_or(Duration::MAX, |time| time.saturating_sub(start.elapsed()));
    let file: Arc<str> = settings.program.name().into();
    let mut tell = |reason: &str, time| {
        let event = LogEvent::Waiting { reason: reason.into(), time };
        log.write(&Record::of_shell(Time::START, Arc::clone(&file), 0, event));
    };
    let longest = settings.splay.min(left());
    if !longest.is_zero() {
        let delay = longest.mul_f64(fraction(seed));
        tell("splay", delay);
        std::thread::sleep(delay);
    }
    if let Some(place) = &settings.lock {
        let path = place.file(settings.lock_directory.take())?;
        let holder = Holder { pid: settings.config.pid, script: &description(&settings.program) };
        let patience = settings.lock_wait.min(left());
        if let Taken::Busy(owner) = lock::take(&path, &holder, patience, |owner| {
            tell(owner, patience);
        })? {
            let name = settings.program.name();
            return Ok(Some(if patience < settings.lock_wait {
                complain(&format!("{name}: not run: {owner}"));
                Outcome::Exited(OUT_OF_TIME)
            } else {
                busy(&name, &owner, settings.lock_skips, log)
            }));
        }
    }
    // Time has passed since the deadline was looked at.
    settings.config.deadline = settings.config.deadline.map(|_| Time::after(left()));
    Ok(None)
}

/// How a run of the script `name` ends before it begins, as another one is on.
pub fn busy(name: &str, owner: &str, skips: bool, log: &mut Log) -> Outcome {
    if !skips {
        complain(&format!("{name}: not run: {owner}"));
        return Outcome::Exited(BUSY);
    }
    let event = LogEvent::Note(format!("not run: {owner}"));
    let record = Record::of_shell(Time::START, name.into(), 0, event);
    // With the waiting for a lock.
    log.write(&Record { level: Level::COMMANDS, ..record });
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
