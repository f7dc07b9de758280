//! What was typed: the definition of the command line, and its words unexamined.
//!
//! Help, and whatever else is made of the definition, come from [`command`]. Values are examined in
//! `settings`, together with those from the environment, so that both get the same messages.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use super::lock::may_be_lock;
use crate::backoff::Kind;

/// What was typed, option by option.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
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
    /// `--redact NAME`, each
    pub redact: Vec<OsString>,
    /// `--summary`
    pub summary: bool,
    /// `--seed N`
    pub seed: Option<OsString>,
    /// `--cron`
    pub cron: bool,
    /// `--lock`
    pub lock: Option<Lock>,
    /// `--lock-wait D`
    pub lock_wait: Option<OsString>,
    /// `--splay D`
    pub splay: Option<OsString>,
    /// The script or the name, and the arguments.
    pub words: Vec<OsString>,
}

/// What follows `--lock`.
#[derive(Debug, PartialEq, Eq)]
pub enum Lock {
    /// Nothing: the script has a lock of its own.
    Alone,
    /// This file.
    File(OsString),
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
       ftsh [options] -c TEXT [args]
       … | ftsh [options]
       ftsh [options]  (a prompt)";

/// What the environment says; options override it.
pub const ENVIRONMENT: [(&str, &str); 16] = [
    ("FTSH_LOG_FILE", "as -f"),
    ("FTSH_LOG_LEVEL", "as -l"),
    ("FTSH_LOG_DECIMAL=1", "as -D"),
    ("FTSH_LOG_FORMAT", "as --log-format"),
    ("FTSH_KILL_TIMEOUT", "as -t"),
    ("FTSH_KILL_MODE", "as -k"),
    ("FTSH_BACKOFF", "as --backoff"),
    ("FTSH_UNSET", "as --unset"),
    ("FTSH_REDACT", "values to hide as --redact does, one a line"),
    ("FTSH_REDACT_NAMES", "as --redact, with blanks between the names"),
    ("FTSH_CRON=1", "as --cron; not for shells that a script starts"),
    ("FTSH_LOCK, FTSH_LOCK_WAIT", "as --lock=FILE, --lock-wait; not for them either"),
    ("FTSH_SPLAY", "as --splay; not for them either"),
    ("FTSH_LOCK_DIR", "where the locks of --lock alone are"),
    ("FTSH_EXPMIN, _EXPMAX, _EXPFACTOR, _EXPRAND", "delays, as in 2003"),
    ("FTSH_DEADLINE", "a limit for the whole run, in seconds since 1970"),
];

/// What the shell ends with.
pub const STATUS: [(&str, &str); 8] = [
    ("0", "success"),
    ("n", "exit n; or the status of the command that failed"),
    ("124", "out of time"),
    ("126, 127", "a program can't be executed, isn't there"),
    ("128+n", "a command was killed by signal n"),
    ("75", "--lock: another run is on"),
    ("1", "any other failure"),
    ("2", "wrong usage or a syntax error: nothing was run"),
];

/// Lists of names and what they mean.
fn list(title: &str, entries: &[(&str, &str)]) -> String {
    let mut text = format!("{title}:\n");
    for (name, meaning) in entries {
        text += &format!("  {name}: {meaning}\n");
    }
    text
}

/// Values to be suggested; whether they are right is examined later.
#[derive(Clone)]
struct Suggest(Vec<&'static str>);

impl TypedValueParser for Suggest {
    type Value = OsString;

    fn parse_ref(
        &self,
        _: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<OsString, clap::Error> {
        Ok(value.to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// The definition of the command line: parsing, help, the manual page and completions.
pub fn command() -> Command {
    let flag = |name: &'static str| Arg::new(name).action(ArgAction::SetTrue);
    let value = |name: &'static str, shown: &'static str| {
        Arg::new(name)
            .value_name(shown)
            .value_parser(value_parser!(OsString))
            .hide_possible_values(true)
            // `-l -5` is a wrong level, not a missing one.
            .allow_hyphen_values(true)
    };
    let general = [
        value("text", "TEXT").short('c').help("Run TEXT; what follows is $0 $1 …"),
        flag("check").short('n').help("Check the script, run nothing"),
        flag("print")
            .short('p')
            .hide_short_help(true)
            .help("Print the script, tidied, run nothing"),
        value("unset", "empty")
            .long("unset")
            .value_parser(Suggest(vec!["empty", "fail"]))
            .hide_short_help(true)
            .help("Read variables that are set nowhere as empty, don't fail"),
        flag("version")
            .short('V')
            .visible_short_alias('v')
            .long("version")
            .help("Print the version"),
        Arg::new("help")
            .short('h')
            .action(ArgAction::HelpShort)
            .help("Print the most used options"),
        flag("help-all").long("help").help("Print all options, the environment and exit statuses"),
    ];
    let trying = [
        value("backoff", "POLICY")
            .long("backoff")
            .value_parser(Suggest(Kind::ALL.into_iter().map(Kind::name).collect()))
            .help("Delays of tries that name none: 'full from 1 s'"),
        value("kill-timeout", "SECS")
            .short('t')
            .hide_short_help(true)
            .help("Seconds from SIGTERM to SIGKILL [30]"),
        value("kill-mode", "MODE")
            .short('k')
            .value_parser(Suggest(vec!["strong", "weak"]))
            .hide_short_help(true)
            .help("SIGKILL until nothing is left (strong), or once (weak)"),
        value("seed", "N")
            .long("seed")
            .hide_short_help(true)
            .help("Repeat the random choices of another run"),
    ];
    let log = [
        value("log-file", "FILE")
            .short('f')
            .value_hint(ValueHint::FilePath)
            .help("Append the log to FILE, not to standard error"),
        value("log-level", "N")
            .short('l')
            .value_parser(Suggest(vec!["0", "10", "20", "30", "40"]))
            .help("10 failures, 20 commands, 30 structures, 40 all [10]"),
        flag("log-decimal")
            .short('D')
            .hide_short_help(true)
            .help("Log times as seconds since 1970"),
        value("log-format", "FORMAT")
            .long("log-format")
            .value_parser(Suggest(vec!["text", "json"]))
            .hide_short_help(true)
            .help("Log as text or json [text]"),
        value("redact", "NAME")
            .long("redact")
            .action(ArgAction::Append)
            .hide_short_help(true)
            .help("Hide the value of the variable NAME in the log and in messages"),
        flag("summary")
            .long("summary")
            .hide_short_help(true)
            .help("Sum up at the end what was tried and failed"),
    ];
    let cron = [
        flag("cron").long("cron").help("Show what is printed only if the script fails"),
        value("lock", "FILE")
            .long("lock")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(ALONE)
            .value_hint(ValueHint::FilePath)
            .help("Refuse a second run while one is on"),
        value("lock-wait", "D")
            .long("lock-wait")
            .hide_short_help(true)
            .help("Wait for the lock, at most '5 minutes'"),
        value("splay", "D")
            .long("splay")
            .hide_short_help(true)
            .help("Wait a random part of D first, as of 10min"),
    ];
    Command::new("ftsh")
        .about("The fault-tolerant shell: scripts around commands that fail")
        .override_usage(USAGE)
        .max_term_width(100)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args_override_self(true)
        .next_help_heading("General")
        .args(general)
        .next_help_heading("Trying and ending")
        .args(trying)
        .next_help_heading("Log")
        .args(log)
        .next_help_heading("Cron")
        .args(cron)
        .arg(
            Arg::new("words")
                .value_name("script and arguments")
                .value_parser(value_parser!(OsString))
                .value_hint(ValueHint::FilePath)
                .num_args(0..)
                // Options stop at the script's name.
                .trailing_var_arg(true)
                .hide(true),
        )
}

/// The definition with a help that tells everything.
pub fn help() -> Command {
    command()
        .mut_args(|argument| argument.hide_short_help(false))
        .after_help(list("Environment", &ENVIRONMENT) + "\n" + &list("Exit status", &STATUS))
}

/// Stands for the value that `--lock` alone lacks; nobody can type it.
const ALONE: &str = "\0";

/// Reads the words of a command line, without the program's name.
pub fn parse(mut words: Vec<OsString>) -> Result<Request> {
    // Most command lines name a script first. Defining all options takes longer than the rest of
    // the shell's start, so these do without.
    if words.first().is_some_and(|word| !word.as_bytes().starts_with(b"-")) {
        return Ok(Request::Work(Box::new(Flags { words, ..Flags::default() })));
    }
    loop {
        let request = read(&words)?;
        let Request::Work(flags) = &request else { return Ok(request) };
        let Some(at) = file_of_lock(&words, flags)? else { return Ok(request) };
        let file = words.remove(at);
        words[at - 1] = "--lock=".into();
        words[at - 1].push(file);
    }
}

fn read(words: &[OsString]) -> Result<Request> {
    let mut matches = match command().no_binary_name(true).try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return Ok(Request::Tell(error.to_string()));
        }
        Err(error) => return Err(one_line(&error)),
    };
    if matches.get_flag("help-all") {
        return Ok(Request::Tell(help().render_help().to_string()));
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
        redact: matches.remove_many("redact").into_iter().flatten().collect(),
        summary: matches.get_flag("summary"),
        seed: take(&mut matches, "seed"),
        cron: matches.get_flag("cron"),
        lock: take(&mut matches, "lock").map(|file| match file {
            alone if alone == ALONE => Lock::Alone,
            file => Lock::File(file),
        }),
        lock_wait: take(&mut matches, "lock-wait"),
        splay: take(&mut matches, "splay"),
        words: matches.remove_many("words").into_iter().flatten().collect(),
    })))
}

/// Where the file stands that `--lock FILE` names, if the word after a bare `--lock` is one and not
/// the script: `--lock FILE script`, but `--lock script arguments`.
fn file_of_lock(words: &[OsString], flags: &Flags) -> Result<Option<usize>> {
    let at = words.len() - flags.words.len();
    let is_after_lock = at > 0 && words[at - 1] == "--lock" && flags.lock == Some(Lock::Alone);
    let Some(word) = flags.words.first().filter(|_| is_after_lock) else { return Ok(None) };
    let is_script = flags.text.is_none()
        && (flags.words.len() == 1 || word == "-" || looks_like_script(Path::new(word)));
    if is_script {
        return Ok(None);
    }
    if !may_be_lock(Path::new(word)) {
        bail!(
            "`--lock {0}`: is that the lock or the script? There is such a file, and it is \
             neither empty nor begins with `#!`; write --lock={0} or --lock -- {0}",
            word.display()
        );
    }
    Ok(Some(at))
}

fn looks_like_script(path: &Path) -> bool {
    let mut start = [0; 2];
    path.extension().is_some_and(|extension| extension == "ftsh")
        || path.is_file()
            && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
            && &start == b"#!"
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
