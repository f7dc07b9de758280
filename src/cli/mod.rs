//! The command line: from arguments and environment to an exit status.

mod begin;
mod branch;
mod channels;
mod conduct;
pub mod flags;
mod journal;
mod lock;
mod lsp;
mod messages;
pub mod options;
mod patient;
mod run;
mod settings;
mod shebang;
mod source;
mod telling;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use nix::sys::stat::{SFlag, fstat};

use self::flags::Request;
use self::messages::{complain, tell};
use self::settings::{Action, Settings, Surroundings};
use ftsh_ide::known::Known;
use ftsh_ide::lint::{Programs, lint};
use ftsh_machine::Outcome;
use ftsh_process as process;
use ftsh_process::non_blocking_writer;
use ftsh_syntax::diagnostic;
use ftsh_syntax::print;

/// The exit status of wrong usage and of anything else that keeps a script from starting.
const NOTHING_WAS_RUN: u8 = 2;

/// What a shell needs beside its program: its stack, its threads, a script.
const LEAST_MEMORY: usize = 3 * 1024 * 1024;

/// The programs that a script would find.
struct Along(Known);

impl Programs for Along {
    fn has(&self, name: &str) -> bool {
        self.0.is_command(name)
    }

    fn names(&self) -> Vec<String> {
        self.0.programs("")
    }
}

/// Does what the command line of this process says.
pub fn main() -> ! {
    process::with_large_stack(|| {
        messages::tell_of_panics();
        process::survive_file_limit();
        process::keep_closed();
        process::forget_dead_limit();
        if !process::has_room(LEAST_MEMORY) {
            end(Err(anyhow!("there is too little memory to start (see `ulimit -v`)")))
        }
        end(obey(std::env::args_os().skip(1).collect()))
    })
}

/// Ends this process as its work ended, once what was to be printed has been.
fn end(result: Result<Outcome>) -> ! {
    let code = match result {
        Ok(Outcome::Interrupted(signal)) => process::die_by(signal),
        Ok(outcome) => outcome.exit_code(),
        Err(error) => {
            complain(&error.to_string());
            NOTHING_WAS_RUN
        }
    };
    non_blocking_writer::wait(None);
    process::exit_now(code.into())
}

/// Whether what comes from there is there once: a pipe or a socket.
fn is_passing(fd: impl AsFd) -> bool {
    let kind = |mode| SFlag::from_bits_truncate(mode) & SFlag::S_IFMT;
    fstat(fd).is_ok_and(|stat| matches!(kind(stat.st_mode), SFlag::S_IFIFO | SFlag::S_IFSOCK))
}

fn obey(words: Vec<OsString>) -> Result<Outcome> {
    if branch::is_asked_for(&words) {
        return branch::serve();
    }
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let around = Surroundings {
        variable: &|name| std::env::var_os(name),
        patience: &process::Patience::inherited,
        directory: &directory,
        now: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        pid: std::process::id(),
        umask: process::umask(),
        passing_input: is_passing(io::stdin()),
        terminal: io::stdin().is_terminal() && io::stdout().is_terminal(),
    };
    let request = flags::parse(shebang::split(words)?).and_then(|request| match request {
        Request::Work(flags) => shebang::complete(*flags),
        Request::Tell(text) => Ok(Request::Tell(text)),
    });
    let flags = match request {
        Ok(Request::Work(flags)) => *flags,
        Ok(Request::Tell(text)) => return Ok(tell(&text)),
        Err(error) => {
            let secrets = settings::secrets(&[], &around)?;
            return Err(anyhow!("{}", secrets.hide(&error.to_string())));
        }
    };
    if flags.has(&options::CHANNELS) {
        messages::keep_secret(settings::secrets(flags.values(&options::REDACT.option), &around)?);
        return channels::show(settings::channels(&around));
    }
    let settings = Settings::resolve(&flags, &around)?;
    messages::keep_secret(settings.config.secrets.clone());
    if let Action::Look(look, file) = &settings.action {
        return journal::look(*look, file, &settings);
    }
    if settings.action == Action::Serve {
        return lsp::serve(settings.config.backoff, directory);
    }
    let script = settings.program.script();
    if settings.action == Action::Run {
        return run::run(script, settings);
    }
    let script = match script {
        Ok(script) => script,
        Err(unusable) => return unusable.tell(),
    };
    match &settings.action {
        Action::Check => {
            let programs = Known::along_path(around.directory, (around.variable)("PATH"));
            let warnings = lint(&script, &settings.config.backoff, &Along(programs));
            messages::report(&diagnostic::render_warnings(&script.source, &warnings));
            // The process ends: to give a large tree back piece by piece is a tenth of the work.
            std::mem::forget(script);
            Ok(Outcome::Succeeded)
        }
        _ => Ok(tell(&print(&script))),
    }
}
