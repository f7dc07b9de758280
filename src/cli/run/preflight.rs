//! Steps before the first command of a script: capture of output, a random delay, the lock.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::cli::lock::{self, HeldLock, LockHolder, LockResult};
use crate::cli::messages::{print_message, redirect_to, usage};
use crate::cli::options::values::{CronMode, WhenBusy};
use crate::cli::plan::source::ScriptSource;
use crate::cli::plan::{RunPlan, StartPlan};
use crate::log::LogWriter;
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::time::Deadline;
use ftsh_machine::{Outcome, Time};
use ftsh_process::non_blocking_writer::{self, NonBlockingWriter};
use ftsh_process::{Caller, OutputCapture, die_by};
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Exit status while another run is in progress: `EX_TEMPFAIL` of sysexits.h, a temporary failure.
pub(crate) const BUSY: u8 = 75;
/// Exit status when a deadline has passed.
pub(crate) const OUT_OF_TIME: u8 = 124;

/// Returns the process that started this one, if its end is to end the run. A run whose caller is
/// gone already ends here.
pub(crate) fn caller(plan: &RunPlan) -> Result<Option<Arc<Caller>>> {
    if !plan.start.end_with_caller {
        return Ok(None);
    }
    let caller = Caller::find();
    let is_asked = plan.reporting.cron.is_on() || plan.start.lock.is_some();
    if caller.is_none() && (is_asked || File::open("/dev/tty").is_err()) {
        let message = "`--end-with-caller` has no caller to watch: process 1 started the shell, or \
                       the caller is gone; a service needs no such option";
        return Err(usage(Slug::OptionConflict, message));
    }
    if caller.is_none() {
        die_by(libc::SIGTERM);
    }
    Ok(caller)
}

/// Begins to capture output, if the plan says so. Messages of the shell are not captured.
pub(crate) fn capture(plan: &RunPlan) -> Result<Option<OutputCapture>> {
    if !plan.reporting.cron.is_on() {
        return Ok(None);
    }
    let begin = || {
        let shows_errors = plan.reporting.cron == CronMode::Errors;
        let capture = OutputCapture::begin(&plan.script.program.name(), shows_errors)?;
        if shows_errors {
            non_blocking_writer::leave_errors();
        }
        if let Some(uncaptured) = capture.message_fd() {
            redirect_to(NonBlockingWriter::new(File::from(uncaptured.try_clone_to_owned()?)));
        }
        Ok(capture)
    };
    begin()
        .map(Some)
        .map_err(|error: std::io::Error| anyhow!("can't capture the output: {}", plain(&error)))
}

/// Waits a random part of the splay, then takes the lock: a run in its splay blocks no other run.
/// Returns the lock, if the plan has one, or the outcome of a run that ends before it begins.
pub(crate) fn wait(
    plan: &mut RunPlan,
    seed: u64,
    log: &mut LogWriter,
) -> Result<Result<Option<HeldLock>, Outcome>> {
    let start = Instant::now();
    let deadline = *plan.deadline_mut();
    let StartPlan { splay, lock, lock_directory, lock_wait, when_busy, .. } = &plan.start;
    let remaining = || deadline.remaining(Time::after(start.elapsed()));
    let left = || remaining().unwrap_or(Duration::MAX);
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
    let mut held = None;
    if let Some(place) = lock {
        let path = place.file(lock_directory.clone())?;
        let holder =
            LockHolder { pid: plan.machine.pid, script: &description(&plan.script.program) };
        let longest = (*lock_wait).min(left());
        let waiting = |owner: &str| report(owner, longest);
        let taken = match when_busy {
            WhenBusy::Replace => lock::replace(&path, &holder, longest, waiting)?,
            WhenBusy::Fail | WhenBusy::Skip => lock::take(&path, &holder, longest, waiting)?,
        };
        held = Some(match taken {
            LockResult::Held(held) => held,
            LockResult::Busy(owner) if left().is_zero() => {
                let message = format!("{name}: not run: {owner}; the deadline has passed");
                print_message(Slug::NotRun, message);
                return Ok(Err(Outcome::Exited(OUT_OF_TIME)));
            }
            LockResult::Busy(mut owner) => {
                if *when_busy == WhenBusy::Fail && lock_wait.is_zero() {
                    owner += "; use `--lock-wait D` to wait for it";
                }
                return Ok(Err(busy(&name, &owner, *when_busy == WhenBusy::Skip, log)));
            }
        });
    }
    // The run begins now, and the deadline is relative to this moment.
    *plan.deadline_mut() = Deadline::of_limit(Time::START, remaining());
    Ok(Ok(held))
}

/// Returns the outcome of a run that ends before it begins, because another one is in progress.
pub(crate) fn busy(name: &str, owner: &str, skips: bool, log: &mut LogWriter) -> Outcome {
    if !skips {
        print_message(Slug::NotRun, format!("{name}: not run: {owner}"));
        return Outcome::Exited(BUSY);
    }
    let event = LogEvent::Note(format!("not run: {owner}"));
    let record = LogRecord::of_shell(Time::START, name.into(), 0, event);
    // Same level as the wait for a lock.
    log.write(&LogRecord { level: Level::COMMANDS, ..record });
    Outcome::Succeeded
}

/// Describes a program to another run, possibly in another directory. Other users may read the
/// description, so the words of a text are left out.
fn description(program: &ScriptSource) -> String {
    match program {
        ScriptSource::File(path) => {
            let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            whole.display().to_string()
        }
        other => other.name(),
    }
}

/// Returns a random number from 0 to 1, from a stream that the script's own choices do not use.
fn fraction(seed: u64) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(1);
    random.random()
}
