//! What was typed: the definition of the command line, and its words unexamined.
//!
//! Help, and whatever else is made of the definition, come from [`command`]. Values are examined in
//! `settings`, together with those from the environment, so that both get the same messages.

use std::ffi::OsString;

use anyhow::{Error, Result, anyhow};
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

/// What was typed, option by option.
#[derive(Debug, Default)]
pub struct Flags {
    /// `-c TEXT`
    pub text: Option<OsString>,
    /// `-n`
    pub check: bool,
    /// `-p`
    pub print: bool,
    /// `-f FILE`
    pub log_file: Option<OsString>,
    /// `-l N`
    pub log_level: Option<OsString>,
    /// `-D`
    pub log_decimal: bool,
    /// `--log-format`
    pub log_format: Option<OsString>,
    /// `-t SECS`
    pub kill_timeout: Option<OsString>,
    /// `-k MODE`
    pub kill_mode: Option<OsString>,
    /// `--backoff POLICY`
    pub backoff: Option<OsString>,
    /// `--unset=empty`
    pub unset: Option<OsString>,
    /// `--seed N`
    pub seed: Option<OsString>,
    /// The script or the name, and the arguments.
    pub words: Vec<OsString>,
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Request {
    /// Work on a script.
    Work(Box<Flags>),
    /// Print this on standard output: help or the version.
    Tell(String),
}

const USAGE: &str = "ftsh [options] script.ftsh [args]
       ftsh [options] -c 'text' [name args]
       … | ftsh [options]";

const ENVIRONMENT: &str = "\
Environment, overridden by options; both are handed down to shells that a script starts:
  FTSH_LOG_FILE -f        FTSH_LOG_LEVEL -l     FTSH_LOG_DECIMAL=1 -D   FTSH_LOG_FORMAT --log-format
  FTSH_KILL_TIMEOUT -t    FTSH_KILL_MODE -k     FTSH_BACKOFF --backoff  FTSH_UNSET --unset
  FTSH_EXPMIN, FTSH_EXPMAX (seconds), FTSH_EXPFACTOR, FTSH_EXPRAND=0|1: delays, as in 2003
  FTSH_DEADLINE: a limit for the whole run, in seconds since 1970

Exit status: 0 success; n from `exit n`; that of the command that failed; 124 out of time;
126 not executable; 127 not found; 128+n killed by signal n; 1 other failures; 2 wrong usage or
syntax.";

/// The definition of the command line.
pub fn command() -> Command {
    let flag =
        |name: &'static str, short: char| Arg::new(name).short(short).action(ArgAction::SetTrue);
    let value = |name: &'static str, shown: &'static str| {
        Arg::new(name)
            .value_name(shown)
            .value_parser(value_parser!(OsString))
            // `-l -5` is a wrong level, not a missing one.
            .allow_hyphen_values(true)
    };
    Command::new("ftsh")
        .about("The fault-tolerant shell: scripts around commands that fail")
        .override_usage(USAGE)
        .after_help(ENVIRONMENT)
        .disable_help_flag(true)
        .args_override_self(true)
        .arg(value("text", "TEXT").short('c').help("Run TEXT; what follows is $0 $1 …"))
        .arg(flag("check", 'n').help("Check the script, run nothing"))
        .arg(flag("print", 'p').help("Print the script, tidied, run nothing"))
        .arg(
            value("log-file", "FILE")
                .short('f')
                .help("Append the log to FILE [default: standard error]"),
        )
        .arg(
            value("log-level", "N")
                .short('l')
                .help("Log 10 failures, 20 commands, 30 structures, 40 processes [default: 10]"),
        )
        .arg(flag("log-decimal", 'D').help("Log times as seconds since 1970"))
        .arg(
            value("log-format", "FORMAT")
                .long("log-format")
                .help("Log as text or json [default: text]"),
        )
        .arg(
            value("kill-timeout", "SECS")
                .short('t')
                .help("Time from SIGTERM to SIGKILL when a command is cancelled [default: 30]"),
        )
        .arg(
            value("kill-mode", "MODE")
                .short('k')
                .help("SIGKILL until nothing is left (strong) or once (weak) [default: strong]"),
        )
        .arg(
            value("backoff", "POLICY")
                .long("backoff")
                .help("Delays of tries that name none, like 'full from 100 ms to 20 s by 2'"),
        )
        .arg(
            value("unset", "empty")
                .long("unset")
                .help("Read variables that are set nowhere as empty, don't fail"),
        )
        .arg(value("seed", "N").long("seed").help("Repeat the random choices of another run"))
        .arg(
            Arg::new("version")
                .short('V')
                .visible_short_alias('v')
                .long("version")
                .action(ArgAction::SetTrue)
                .help("Print the version"),
        )
        .arg(Arg::new("help").short('h').long("help").action(ArgAction::SetTrue).help("Print this"))
        .arg(
            Arg::new("words")
                .value_name("script and arguments")
                .value_parser(value_parser!(OsString))
                .num_args(0..)
                // Options stop at the script's name.
                .trailing_var_arg(true)
                .hide(true),
        )
        .disable_version_flag(true)
}

/// Reads the words of a command line, without the program's name.
pub fn parse(words: Vec<OsString>) -> Result<Request> {
    let mut command = command().no_binary_name(true);
    let mut matches = command.try_get_matches_from_mut(words).map_err(|error| one_line(&error))?;
    if matches.get_flag("help") {
        return Ok(Request::Tell(command.render_help().to_string()));
    }
    if matches.get_flag("version") {
        return Ok(Request::Tell(concat!("ftsh ", env!("CARGO_PKG_VERSION"), "\n").into()));
    }
    let take = |matches: &mut ArgMatches, name| matches.remove_one::<OsString>(name);
    Ok(Request::Work(Box::new(Flags {
        text: take(&mut matches, "text"),
        check: matches.get_flag("check"),
        print: matches.get_flag("print"),
        log_file: take(&mut matches, "log-file"),
        log_level: take(&mut matches, "log-level"),
        log_decimal: matches.get_flag("log-decimal"),
        log_format: take(&mut matches, "log-format"),
        kill_timeout: take(&mut matches, "kill-timeout"),
        kill_mode: take(&mut matches, "kill-mode"),
        backoff: take(&mut matches, "backoff"),
        unset: take(&mut matches, "unset"),
        seed: take(&mut matches, "seed"),
        words: matches.remove_many("words").into_iter().flatten().collect(),
    })))
}

fn one_line(error: &clap::Error) -> Error {
    let about = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let option = about(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => match error.get(ContextKind::SuggestedArg) {
            Some(known) => anyhow!("unknown option `{option}`, did you mean `{known}`?"),
            None => anyhow!("unknown option `{option}`"),
        },
        ErrorKind::InvalidValue => anyhow!("`{option}` lacks its value"),
        ErrorKind::TooManyValues => {
            anyhow!("`{option}` takes no value, not `{}`", about(ContextKind::InvalidValue))
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            anyhow!("{}", first.trim_start_matches("error: "))
        }
    }
}
