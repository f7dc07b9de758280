//! The command line: from arguments and environment to an exit status.

mod branch;
mod call;
mod journal;
mod lock;
mod messages;
pub mod options;
mod plan;
mod prefix;
mod preview;
mod run;
mod storm;
#[cfg(test)]
mod tests;
mod views;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::rc::Rc;

use anyhow::{Result, anyhow};
use nix::sys::stat::{SFlag, fstat};

use self::messages::{NOTHING_WAS_RUN, end, print_error, print_message, print_text};
use self::options::flags::{self, Flags, Request};
use self::options::shebang;
use self::plan::resolve::{self, ProcessContext};
use self::plan::source::{ScriptSource, UnusableScript};
use self::plan::{Action, RunPlan, TelemetryPlan};
use self::run::Telemetry;
use ftsh_ide::known::SessionSnapshot;
use ftsh_ide::lint::{self, Programs, UnknownPrograms, lint};
use ftsh_machine::Outcome;
use ftsh_process as process;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::{Script, print};
use ftsh_sys::os_error::plain;

/// Exit status if the program of a prefix does not exist.
const NOT_FOUND: u8 = 127;

/// Memory that a shell needs beside its program, in bytes: stack, threads, a script.
const LEAST_MEMORY: usize = 3 * 1024 * 1024;

/// Executes the command line of this process.
pub fn main() -> ! {
    process::with_large_stack(|| {
        messages::report_panics();
        storm::serve_program();
        process::prepare_allocator();
        process::ignore_file_size_limit();
        process::keep_closed();
        process::restore_job_control();
        process::remove_expired_limit();
        if !process::has_room(LEAST_MEMORY) {
            end(Err(anyhow!("there is too little memory to start; see `ulimit -v`")))
        }
        end(execute_command_line(std::env::args_os().skip(1).collect()))
    })
}

/// True if bytes can be read from the descriptor only once: a pipe or a socket.
fn is_passing(fd: impl AsFd) -> bool {
    let kind = |mode| SFlag::from_bits_truncate(mode) & SFlag::S_IFMT;
    fstat(fd).is_ok_and(|stat| matches!(kind(stat.st_mode), SFlag::S_IFIFO | SFlag::S_IFSOCK))
}

fn execute_command_line(mut words: Vec<OsString>) -> Result<Outcome> {
    // Roles of processes that other shells start, before any option is read.
    if branch::is_requested(&words) {
        return branch::serve();
    }
    if process::is_filter(&words) {
        process::serve_filter(&words);
    }
    storm::hang_if_requested(&words);
    let storm_run = storm::StormRun::take(&mut words)?;
    let is_previewed = preview::is_inside(&mut words);
    // In a removed directory, relative paths stay relative.
    let directory = std::env::current_dir().unwrap_or_default();
    let context = ProcessContext {
        variable: &|name| std::env::var_os(name),
        kill_timeout: &process::KillTimeout::inherited,
        directory: &directory,
        clocks: &process::LimitClocks::now,
        pid: std::process::id(),
        umask: process::umask(),
        passing_input: is_passing(io::stdin()),
        terminal: io::stdin().is_terminal() && io::stdout().is_terminal(),
        status_line: process::shows_status_line(),
    };
    let flags = match request(&mut words) {
        Ok(Request::Work(flags)) => *flags,
        Ok(Request::Print(text)) => return Ok(print_text(&text)),
        Err(error) => {
            // No option could be read, so the environment alone names secrets.
            let secrets = resolve::secrets(&[], &context)?;
            let error = anyhow!("{}", secrets.hide(&error.to_string()));
            run::refuse(resolve::ping(None, &context), &error);
            return Err(error);
        }
    };
    if flags.only_reads_scripts() && flags.words.len() > 1 {
        return Ok(read_each(&words, &flags));
    }
    if !flags.preview.is_empty() && !is_previewed {
        return preview::run(&flags.preview, std::env::args_os().skip(1));
    }
    if let Some(slug) = flags.explain {
        return views::explain(slug.as_ref());
    }
    // `resolve` refuses both.
    if flags.channels && !flags.lsp {
        messages::hide_secrets(resolve::secrets(&flags.redact, &context)?);
        return views::channels(resolve::channels(&context));
    }
    let url = || resolve::ping(Some(&flags), &context).filter(|_| !is_previewed);
    let refuse = |error: &_| run::refuse(url(), error);
    let mut plan = RunPlan::resolve(&flags, &context).inspect_err(refuse)?;
    if is_previewed {
        plan.telemetry = TelemetryPlan::default();
    }
    messages::hide_secrets(plan.machine.secrets.clone());
    match (flags.answer, &flags.call_home) {
        (Some(ip), _) => return call::answer(ip, &flags.words),
        (_, Some(home)) => return call::call_home(home, &flags.words, plan.machine.kill_timeout),
        _ => {}
    }
    match storm_run {
        Some(run) => run.adjust(&mut plan),
        None if flags.storm => {
            return storm::run(&flags, &plan, std::env::args_os().skip(1).collect());
        }
        None => {}
    }
    execute(plan, &context)
}

/// Checks or prints several scripts, each with the options of its own `#!` line. Returns the outcome
/// with the highest status.
fn read_each(words: &[OsString], flags: &Flags) -> Outcome {
    let options = &words[..words.len() - flags.words.len()];
    let mut highest = Outcome::Succeeded;
    for script in &flags.words {
        let read = match std::fs::metadata(script) {
            Err(error) if script != "-" => Err(messages::usage(
                Slug::ScriptFile,
                format_args!(
                    "can't read the script `{}`: {}; with `-n` or `-p`, each word is a script",
                    script.display(),
                    plain(&error)
                ),
            )),
            _ => execute_command_line(options.iter().chain([script]).cloned().collect()),
        };
        let outcome = read.unwrap_or_else(|error| {
            print_error(&error);
            Outcome::Exited(NOTHING_WAS_RUN)
        });
        if outcome.exit_code() > highest.exit_code() {
            highest = outcome;
        }
    }
    highest
}

/// Returns the request of a command line, whose words are split where a `#!` line has joined them.
/// Options of the script's `#!` line count as well.
fn request(words: &mut Vec<OsString>) -> Result<Request> {
    *words = shebang::split(std::mem::take(words))?;
    match flags::parse(words)? {
        Request::Work(flags) => match prefix::help(&flags) {
            Some(text) => Ok(Request::Print(text)),
            None => shebang::complete(flags, words.clone()),
        },
        print @ Request::Print(_) => Ok(print),
    }
}

/// Refuses a run with a `forall` on a carrier which is not installed.
fn refuse_missing_carriers(script: &Script, plan: &RunPlan, programs: &dyn Programs) -> Result<()> {
    let default = plan.machine.on.as_ref().map(|on| on.engine);
    for file in script.all_files() {
        for (span, engine) in lint::engines(file) {
            let missing = engine.or(default).and_then(|it| lint::missing_carrier(it, programs));
            let Some((message, meant)) = missing else { continue };
            let place = match plan.script.program {
                _ if engine.is_none() => "--on, FTSH_ON: ".to_owned(),
                ScriptSource::Prefix(_) => String::new(),
                _ => format!("{}:{}: ", file.source.name(), file.source.line(span.start)),
            };
            return Err(messages::usage(
                Slug::UnknownEngine,
                format_args!("{place}{message}; {meant}"),
            ));
        }
    }
    Ok(())
}

/// Runs the script of a plan. Returns the outcome of a run that did not begin, or of a short one.
fn start(
    script: Result<Script, UnusableScript>,
    plan: RunPlan,
    programs: impl Fn() -> SessionSnapshot,
    telemetry: &Rc<Telemetry>,
) -> Result<Outcome> {
    if let ScriptSource::Prefix(prefix) = &plan.script.program {
        let programs = programs();
        if let Some(message) = prefix.missing_program(|name| programs.has_program(name)) {
            print_message(Slug::NotFound, message);
            return Ok(Outcome::Exited(NOT_FOUND));
        }
        for warning in
            script.iter().flat_map(|it| lint(it, &plan.machine.backoff, &UnknownPrograms))
        {
            // Other warnings are about scripts, or follow from the choice of a command alone.
            if matches!(warning.slug, Slug::ValueInCode | Slug::LimitAfterPolicy) {
                messages::print_warning(&warning);
            }
        }
    }
    if let Ok(script) = &script {
        refuse_missing_carriers(script, &plan, &views::PathLookup(programs()))?;
    }
    run::run(script, plan, telemetry)
}

/// Treats the script of a plan as the plan's action requires.
fn execute(plan: RunPlan, context: &ProcessContext) -> Result<Outcome> {
    let programs = || SessionSnapshot::along_path(context.directory, (context.variable)("PATH"));
    match plan.action {
        Action::View(view, ref file) => return journal::view(view, file, &plan),
        Action::Serve => {
            let (policy, store) = (plan.machine.backoff, plan.process.durations.store);
            return views::serve_editor(policy, store, context.directory.into(), programs());
        }
        _ => {}
    }
    let script = match plan.action {
        Action::Print => plan.script.program.script_alone(),
        _ => plan.script.program.script(),
    };
    if plan.action == Action::Run {
        let telemetry = Telemetry::open(&plan, script.as_ref().ok());
        let result = start(script, plan, programs, &telemetry);
        // A run with reports ends in another place, together with its process.
        telemetry.refuse(&result);
        return result;
    }
    let script = match script {
        Ok(script) => script,
        Err(unusable) => return unusable.report(),
    };
    match plan.action {
        Action::Check { strict } => Ok(views::check(script, &plan, programs(), strict)),
        Action::Durations { forgets: true } => views::forget_durations(&script, &plan),
        Action::Durations { forgets: false } => Ok(views::durations(&script, &plan)),
        _ => Ok(print_text(&print(&script))),
    }
}
