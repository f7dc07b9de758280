//! A run of a script: the steps before its first command, in order.

mod arguments;
mod execute;
mod preflight;
mod reporters;
mod telemetry;

use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStringExt;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, anyhow};

use self::execute::{RunContext, Workload};
use self::reporters::Reporters;
pub(super) use self::telemetry::{Telemetry, refuse};
use crate::cli::journal::{self, JournalClaim, Recording, Resumption};
use crate::cli::messages::{end, print_message, print_note};
use crate::cli::options;
use crate::cli::options::values::WhenBusy;
use crate::cli::plan::resolve::DEADLINE;
use crate::cli::plan::source::UnusableScript;
use crate::cli::plan::{RunPlan, ScriptPlan};
use crate::repl::{self, Story};
use ftsh_machine::effect::Environment;
use ftsh_machine::record::spans::TraceContext;
use ftsh_machine::time::Deadline;
use ftsh_machine::{Machine, Outcome, Time};
use ftsh_process as process;
use ftsh_syntax::Script;
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Runs `script`. If the script may start programs or use files, the run gets a process of its own, and this one
/// supervises it and ends here.
///
/// # Errors
///
/// Fails if nothing was run.
pub(super) fn run(
    script: Result<Script, UnusableScript>,
    mut plan: RunPlan,
    telemetry: &Rc<Telemetry>,
) -> Result<Outcome> {
    // First: the process that started this one may be gone soon.
    let caller = preflight::caller(&plan)?;
    // A resumed run has its own text, and its splay is over.
    let has_earlier = plan.journal.as_ref().is_some_and(|it| journal::has_earlier(&it.file));
    let script = match script {
        Err(unusable) if !has_earlier => return unusable.report(),
        script => script,
    };
    // Before the splay and the lock: a wrong argument is reported at once.
    if !has_earlier
        && let Ok(script) = &script
        && let Some(outcome) = arguments::refuse(script, &plan.script.arguments)
    {
        return Ok(outcome);
    }
    if has_earlier {
        plan.start.splay = Duration::ZERO;
    }
    plan.process.durations.script = plan.script.program.identity(script.as_ref().ok());
    let mut capture = preflight::capture(&plan)?;
    let run = random()?;
    if let Some(trace) = &plan.reporting.trace {
        plan.machine.trace = TraceContext::new(run, trace.caller.as_deref().map(|it| &**it));
    }
    let mut reporters = Reporters::open(&plan, run, telemetry.metrics())?;
    plan.machine.log_level = reporters.level();
    let seed = plan.script.seed.map_or_else(random, Ok)?;
    let mut wait = || preflight::wait(&mut plan, seed, reporters.log());
    let waited = match &caller {
        Some(caller) => caller.watch_during(wait),
        None => wait(),
    };
    let lock = match waited? {
        Ok(lock) => lock,
        Err(outcome) => return Ok(outcome),
    };
    let (is_cron, has_lock) = (plan.reporting.cron.is_on(), lock.is_some());
    let name = plan.script.program.name();
    let is_prompt = plan.script.is_prompt();
    if is_prompt {
        plan.machine.log_level = plan.machine.log_level.max(Story::LEVEL);
    }
    let deadline = plan.journal.as_ref().map_or(Deadline::NONE, |journal| journal.deadline);
    // The splay and the lock may have taken the time.
    if deadline.is_past(Time::START) {
        print_message(Slug::NotRun, format!("{name}: not run: its time is over"));
        return Ok(Outcome::Exited(preflight::OUT_OF_TIME));
    }
    let (process, cluster) = (plan.process.clone(), plan.cluster.clone());
    let storm = plan.storm.take();
    let workload = match workload(script, plan, run, seed, &mut reporters)? {
        Ok(workload) => workload,
        Err(outcome) => return Ok(outcome),
    };
    if let (Some(capture), Some((journal_file, begins))) = (&mut capture, workload.journal_file()) {
        capture.keep_in(journal::open_output(journal_file, begins)?);
    }
    let at_end = workload
        .journal_file()
        .map(|(journal_file, _)| journal::at_end(journal_file, is_cron))
        .transpose()?;
    telemetry.begin(reporters.run(), capture.as_mut(), workload.secrets());
    let capture = capture.map(Rc::new);
    if let Some(capture) = &capture {
        reporters.capture(capture);
    }
    let reporters = Rc::new(RefCell::new(reporters));
    let at_end = telemetry.at_end(&reporters, at_end);
    let options = process::SupervisorOptions {
        capture,
        // A program after `exec` has no descriptor of the lock or the journal.
        stay: has_lock || at_end.is_some(),
        restore: if is_prompt { repl::restore() } else { None }.map(Rc::new),
        at_end: at_end.clone(),
        liveness_locks: workload
            .journal_file()
            .and_then(|(journal_file, _)| journal_file.liveness_locks.clone()),
        limit: None,
        caller,
    };
    let needs_none = !is_cron && !is_prompt && options.caller.is_none() && !telemetry.is_on();
    let is_alone = needs_none && !workload.needs_supervisor();
    let context = RunContext {
        file: workload.name().unwrap_or(&name).into(),
        reporters,
        process,
        cluster,
        deadline,
        storm,
        is_prompt,
        is_cron,
        lock,
        at_end,
    };
    if is_alone {
        return context.execute(workload, None);
    }
    process::supervise(options, move |supervision| -> Infallible {
        end(context.execute(workload, supervision))
    })
}

/// Returns the workload, or the outcome of a run that ends before it begins.
fn workload(
    script: Result<Script, UnusableScript>,
    plan: RunPlan,
    run: u64,
    seed: u64,
    reporters: &mut Reporters,
) -> Result<Result<Workload, Outcome>> {
    let RunPlan { script: ScriptPlan { program, arguments, .. }, machine: config, .. } = plan;
    let is_recorded = plan.journal.is_some();
    // Each start of a recorded run has a deadline of its own, which commands get from the driver.
    let is_kept = |name: &OsStr| !is_recorded || name != DEADLINE;
    let mut environment: Environment = std::env::vars_os()
        .filter(|(name, _)| !options::is_private(name) && is_kept(name))
        .map(|(name, value)| (name.into_vec().into(), value.into_vec().into()))
        .collect();
    // A program such as `make -C` changes the directory without the variable.
    if let Some((_, value)) = environment.iter_mut().find(|(name, _)| name == "PWD")
        && let Ok(directory) = process::own_directory()
    {
        *value = directory.into_os_string().into_vec().into();
    }
    let skips = plan.start.when_busy == WhenBusy::Skip;
    let taken = plan.journal.map(|journal| journal::claim(&journal.file)).transpose()?;
    let name = program.name();
    Ok(Ok(match (taken, script) {
        (Some(JournalClaim::Busy(reason)), _) => {
            return Ok(Err(preflight::busy(&name, &reason, skips, reporters.log())));
        }
        (Some(JournalClaim::Earlier(earlier)), script) => {
            if let Some(text) = earlier.compared(&program, script.as_ref().ok())? {
                print_note(&format!("{name}: {text}"));
            }
            reporters.resume(&earlier);
            let (level, grace) = (config.log_level, config.kill_timeout);
            match earlier.replay(level, grace, |record| reporters.recall(record))? {
                // The earlier run is this run, and does not end by itself.
                Resumption::Busy(reason) => {
                    return Ok(Err(preflight::busy(&name, &reason, false, reporters.log())));
                }
                Resumption::Over(ended) => Workload::Report(ended),
                Resumption::Unfinished(recording) => Workload::Record(recording),
            }
        }
        // The earlier run has vanished since the check.
        (_, Err(unusable)) => return unusable.report().map(Err),
        (Some(JournalClaim::New(journal_file)), Ok(script)) => Workload::Record(Recording::of(
            journal_file,
            run,
            &script,
            arguments,
            environment,
            config,
            seed,
        )),
        (None, Ok(script)) => {
            Workload::Run(Box::new(Machine::new(&script, arguments, environment, config, seed)))
        }
    }))
}

/// Returns a random number from the system.
fn random() -> Result<u64> {
    process::random()
        .map_err(|error| anyhow!("the system has no random numbers: {}", plain(&error)))
}
