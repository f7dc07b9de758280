//! The command line: from arguments and environment to an exit status.

mod arguments;
mod blocking_io;
mod branch;
mod channels;
mod covered;
mod durations;
mod execute;
mod explain;
pub mod flags;
mod journal;
mod lock;
mod lsp;
mod messages;
pub mod options;
mod plan;
mod prefix;
mod preflight;
mod preview;
mod replace;
mod reporters;
mod resolve;
mod run;
mod shebang;
mod source;
mod storm;
#[cfg(test)]
mod tests;
pub mod topics;
mod values;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use anyhow::{Result, anyhow};
use nix::sys::stat::{SFlag, fstat};

use self::flags::Request;
use self::messages::{print_error, print_message, print_text};
use self::plan::{Action, RunPlan};
pub use self::prefix::HEADS;
use self::resolve::ProcessContext;
use self::source::ScriptSource;
use ftsh_ide::known::SessionSnapshot;
use ftsh_ide::lint::{Programs, Warning, check_code, lint};
use ftsh_machine::Outcome;
use ftsh_machine::event::CommandStatus;
use ftsh_process as process;
use ftsh_process::non_blocking_writer;
use ftsh_syntax::diagnostic;
use ftsh_syntax::print;
use ftsh_syntax::slug::Slug;

/// Exit status of wrong usage and of other errors before a script starts.
const NOTHING_WAS_RUN: u8 = 2;

/// Exit status if the program of a prefix does not exist.
const NOT_FOUND: u8 = 127;

/// Memory that a shell needs beside its program, in bytes: stack, threads, a script.
const LEAST_MEMORY: usize = 3 * 1024 * 1024;

/// Lookup of programs along `PATH`.
struct PathLookup(SessionSnapshot);

impl Programs for PathLookup {
    fn has(&self, name: &str) -> bool {
        self.0.is_command(name)
    }

    fn names(&self) -> Vec<String> {
        self.0.programs("")
    }
}

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

/// Ends this process with the status of its work, after all output is written.
fn end(result: Result<Outcome>) -> ! {
    let code = match result {
        Ok(Outcome::Interrupted(signal)) => process::end(CommandStatus::Signaled(signal)),
        Ok(outcome) => outcome.exit_code(),
        Err(error) => {
            print_error(&error);
            NOTHING_WAS_RUN
        }
    };
    non_blocking_writer::wait(None);
    process::end(CommandStatus::Exited(code.into()))
}

/// True if bytes can be read from the descriptor only once: a pipe or a socket.
fn is_passing(fd: impl AsFd) -> bool {
    let kind = |mode| SFlag::from_bits_truncate(mode) & SFlag::S_IFMT;
    fstat(fd).is_ok_and(|stat| matches!(kind(stat.st_mode), SFlag::S_IFIFO | SFlag::S_IFSOCK))
}

fn execute_command_line(mut words: Vec<OsString>) -> Result<Outcome> {
    storm::hang_if_requested(&words);
    let storm_run = storm::StormRun::take(&mut words)?;
    let is_previewed = preview::is_inside(&mut words);
    if branch::is_requested(&words) {
        return branch::serve();
    }
    if process::is_filter(&words) {
        process::serve_filter(&words);
    }
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
    let request = flags::parse(shebang::split(words)?).and_then(|request| match request {
        Request::Work(flags) => match prefix::help(&flags) {
            Some(text) => Ok(Request::Print(text)),
            None => shebang::complete(*flags),
        },
        Request::Print(text) => Ok(Request::Print(text)),
    });
    let flags = match request {
        Ok(Request::Work(flags)) => *flags,
        Ok(Request::Print(text)) => return Ok(print_text(&text)),
        Err(error) => {
            let secrets = resolve::secrets(&[], &context)?;
            return Err(anyhow!("{}", secrets.hide(&error.to_string())));
        }
    };
    let covered = flags.values(&options::PREVIEW);
    if !covered.is_empty() && !is_previewed {
        return preview::run(covered, std::env::args_os().skip(1));
    }
    if flags.has(&options::EXPLAIN) {
        return explain::show(flags.optional_value(&options::EXPLAIN));
    }
    if flags.has(&options::CHANNELS) {
        messages::hide_secrets(resolve::secrets(flags.values(&options::REDACT.option), &context)?);
        return channels::show(resolve::channels(&context));
    }
    storm::check(&flags)?;
    let mut plan = RunPlan::resolve(&flags, &context)?;
    messages::hide_secrets(plan.machine.secrets.clone());
    match storm_run {
        Some(run) => run.adjust(&mut plan),
        None if flags.has(&options::STORM) => {
            return storm::run(&flags, &plan, std::env::args_os().skip(1).collect());
        }
        None => {}
    }
    if let Action::View(view, file) = &plan.action {
        return journal::view(*view, file, &plan);
    }
    if plan.action == Action::Serve {
        return lsp::serve(plan.machine.backoff, plan.process.durations.store, directory);
    }
    let script = match plan.action {
        Action::Print => plan.script.program.script_alone(),
        _ => plan.script.program.script(),
    };
    if plan.action == Action::Run {
        if let ScriptSource::Prefix(prefix) = &plan.script.program {
            let path = SessionSnapshot::along_path(context.directory, (context.variable)("PATH"));
            if let Some(message) = prefix.missing_program(|name| path.has_program(name)) {
                print_message(Slug::NotFound, message);
                return Ok(Outcome::Exited(NOT_FOUND));
            }
            for warning in script.iter().flat_map(check_code) {
                messages::print_warning(&warning);
            }
        }
        return run::run(script, plan);
    }
    let script = match script {
        Ok(script) => script,
        Err(unusable) => return unusable.report(),
    };
    match &plan.action {
        Action::Check { strict } => {
            let programs =
                SessionSnapshot::along_path(context.directory, (context.variable)("PATH"));
            let programs = PathLookup(programs);
            // What one machine lacks says nothing about the script.
            let is_portable = |it: &Warning| it.slug != Slug::MissingProgram;
            let mut has_warnings = false;
            for file in script.all_files() {
                let warnings = lint(file, &plan.machine.backoff, &programs);
                messages::report(&diagnostic::render_warnings(&file.source, &warnings));
                has_warnings |= warnings.iter().any(is_portable);
            }
            durations::note(&script, &plan);
            // The process ends now. Freeing a large tree node by node takes a tenth of the whole
            // time.
            std::mem::forget(script);
            let fails = *strict && has_warnings;
            Ok(if fails { Outcome::Exited(1) } else { Outcome::Succeeded })
        }
        Action::Durations { forgets: true } => durations::forget(&script, &plan),
        Action::Durations { forgets: false } => Ok(durations::show(&script, &plan)),
        _ => Ok(print_text(&print(&script))),
    }
}
