//! Options of the command line: their definition for clap, and their variables and defaults.
//!
//! Parsing, help and the completions are generated from [`Flags`](flags::Flags). A test compares the
//! page on the command line with it.

pub mod flags;
pub(super) mod shebang;
pub mod topics;
pub(super) mod values;

use std::ffi::OsStr;

use clap::builder::Str;
use clap::{Arg, ArgAction};

/// Variable of the environment with the meaning of an option that was not typed.
#[derive(Debug)]
pub struct Setting {
    /// Main name of the option.
    pub option: &'static str,
    /// Name of the variable.
    pub variable: &'static str,
    /// True if the variable applies to one shell only, not to shells that a script starts.
    pub is_private: bool,
    /// Value without the option and the variable, if not empty.
    pub default: &'static str,
}

const fn private(option: &'static str, variable: &'static str, default: &'static str) -> Setting {
    Setting { option, variable, is_private: true, default }
}

const fn inherited(option: &'static str, variable: &'static str, default: &'static str) -> Setting {
    Setting { option, variable, is_private: false, default }
}

/// Variables of options in the order of the help.
pub static SETTINGS: [Setting; 23] = [
    inherited("--unset", "FTSH_UNSET", "fail"),
    inherited("--backoff", "FTSH_BACKOFF", ""),
    inherited("-t", "FTSH_KILL_TIMEOUT", "30"),
    inherited("-k", "FTSH_KILL_MODE", "strong"),
    private("--end-with-caller", "FTSH_END_WITH_CALLER", ""),
    inherited("-f", "FTSH_LOG_FILE", ""),
    inherited("-l", "FTSH_LOG_LEVEL", "10"),
    inherited("-D", "FTSH_LOG_DECIMAL", ""),
    inherited("--log-format", "FTSH_LOG_FORMAT", "text"),
    inherited("--redact", "FTSH_REDACT_NAMES", ""),
    inherited("--otlp", "FTSH_OTLP", ""),
    private("--cron", "FTSH_CRON", ""),
    private("--cron-after", "FTSH_CRON_AFTER", ""),
    private("--lock", "FTSH_LOCK", ""),
    private("--lock-wait", "FTSH_LOCK_WAIT", ""),
    private("--lock-busy", "FTSH_LOCK_BUSY", "fail"),
    private("--splay", "FTSH_SPLAY", ""),
    private("--ping", "FTSH_PING", ""),
    private("--metrics", "FTSH_METRICS", ""),
    private("--on", "FTSH_ON", ""),
    private("--lease", "FTSH_LEASE", "1 minute"),
    private("--ship", "FTSH_SHIP", ""),
    private("--journal", "FTSH_JOURNAL", ""),
];

/// Returns the variable and the default of an option that has a variable.
pub fn setting(option: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.option == option)
}

/// Returns the names of an option on the command line, such as `-l` and `--log-format`; the first is
/// the main name.
pub fn names(option: &Arg) -> Vec<String> {
    let letters = option.get_short_and_visible_aliases().unwrap_or_default();
    let letters = letters.into_iter().map(|letter| format!("-{letter}"));
    letters.chain(option.get_long().map(|word| format!("--{word}"))).collect()
}

/// Returns the name of an option's value, if the option takes a value.
pub fn value_name(option: &Arg) -> Option<&str> {
    let names = option.get_value_names().filter(|_| option.get_action().takes_values());
    names.and_then(|names| names.first()).map(Str::as_str)
}

/// Returns the variable of an option in the form of an assignment; a switch has the value that turns
/// it on.
pub fn assignment(option: &Arg) -> Option<String> {
    let on = match option.get_long() {
        // Unlike the option, the variable has no form without a value.
        Some("lock") => "=FILE",
        _ if option.get_action().takes_values() => "",
        _ => "=1",
    };
    setting(names(option).first()?).map(|setting| format!("{}{on}", setting.variable))
}

/// Exit statuses of the shell.
pub const STATUS: [(&str, &str); 9] = [
    ("0", "success"),
    ("n", "exit n; or the status of the command that failed"),
    ("124", "out of time"),
    ("126, 127", "a program can't be executed, does not exist"),
    ("128+n", "a command was killed by signal n"),
    (
        "134",
        "an internal error of ftsh, reported on standard error; or a command was killed by SIGABRT",
    ),
    (
        "75",
        "another run holds the lock or the journal; or a failure was deferred or refused, or an engine failed",
    ),
    ("1", "any other failure"),
    (
        "2",
        "wrong usage or a syntax error in the script, and nothing was run; or a command's own status",
    ),
];

/// Variables of the environment without an option.
pub const WITHOUT_OPTION: [(&str, &str); 4] = [
    ("FTSH_REDACT", "values to hide as --redact does, one a line"),
    ("FTSH_CHANNELS, _DURATIONS, _LOCK_DIR", "directory of channels, durations, locks"),
    ("FTSH_EXPMIN, _EXPMAX, _EXPFACTOR, _EXPRAND", "delays, as in the ftsh of 2003"),
    ("FTSH_DEADLINE", "a limit for the whole run, in seconds since 1970"),
];

/// True if a variable of the environment applies to one shell only, not to shells that it starts.
pub fn is_private(variable: &OsStr) -> bool {
    SETTINGS.iter().any(|setting| setting.is_private && variable == setting.variable)
}

/// End of the meaning of a variable that applies to one shell only.
const FOR_ONE_SHELL: &str = "; for one shell only";

/// Returns the variables with their meanings, as listed in the help.
pub fn environment() -> Vec<(String, String)> {
    let command = flags::command();
    let of_options = command.get_arguments().filter_map(|option| {
        let setting = setting(names(option).first()?)?;
        let private = if setting.is_private { FOR_ONE_SHELL } else { "" };
        let is_repeated = matches!(option.get_action(), ArgAction::Append);
        let spaces = if is_repeated { ", with spaces between" } else { "" };
        Some((assignment(option)?, format!("as {}{spaces}{private}", setting.option)))
    });
    let others = WITHOUT_OPTION.into_iter().map(|(name, meaning)| (name.into(), meaning.into()));
    of_options.chain(others).collect()
}
