//! Table of all options: names, variable, parser, default and help.
//!
//! Parsing, help and the completions are generated from [`TABLE`]. A test compares the page on the
//! command line with it.

pub mod flags;
pub(super) mod shebang;
mod spec;
pub mod topics;
pub(super) mod values;

use std::ffi::OsStr;
use std::time::Duration;

use bstr::BString;

use self::spec::PLAIN;
pub use self::spec::{Setting, Spec, short};
use self::values::{CronMode, WhenBusy, Words};
use crate::log::Format;
use ftsh_syntax::backoff::{Policy, PolicyKind};
use ftsh_syntax::clauses::On;
use ftsh_syntax::slug::Slug;

const TRYING: &str = "Trying and ending";
const LOG: &str = "Log";
const CRON: &str = "Cron";
const RECORDED: &str = "Recorded runs";
const ELSEWHERE: &str = "Other machines";
const STORMS: &str = "Is it safe to repeat?";

/// Text of a script.
pub static TEXT: Spec = Spec {
    names: &["-c"],
    value: Some("TEXT"),
    is_common: true,
    help: "Run TEXT; the words after it are $0, $1, …",
    ..PLAIN
};

/// Check of a script.
pub static CHECK: Spec = Spec {
    names: &["-n"],
    is_common: true,
    help: "Check the script for errors and likely mistakes; run nothing",
    ..PLAIN
};

/// Status of a check with warnings.
pub static STRICT: Spec = Spec {
    names: &["--strict"],
    help: "With -n: end with status 1 if there are warnings, except for missing programs",
    ..PLAIN
};

/// Formatted script.
pub static PRINT: Spec =
    Spec { names: &["-p"], help: "Print the formatted script; run nothing", ..PLAIN };

/// Explanation of a message.
pub static EXPLAIN: Spec = Spec {
    names: &["--explain"],
    value: Some("SLUG"),
    is_optional: true,
    suggestions: || Slug::ALL.iter().map(|slug| slug.name()).collect(),
    help: "Explain the message with SLUG, as in error[SLUG], or list all slugs; run nothing",
    ..PLAIN
};

/// Language server.
pub static LSP: Spec = Spec {
    names: &["--lsp"],
    help: "Serve an editor as a language server, on standard input and output; run nothing",
    ..PLAIN
};

const UNSET_WORDS: Words<bool> = &[("empty", true), ("fail", false)];

/// True if variables that are not set are empty.
pub static UNSET: Setting<bool> = Setting {
    option: Spec {
        names: &["--unset"],
        value: Some("empty"),
        suggestions: || values::names(UNSET_WORDS),
        variable: Some("FTSH_UNSET"),
        default: Some("fail"),
        help: "Read variables that are not set as empty, instead of failing",
        ..PLAIN
    },
    read: |text| values::word(UNSET_WORDS, text),
    write: |empty| values::name(UNSET_WORDS, empty),
};

/// Directories of a run whose changes are dropped.
pub static PREVIEW: Spec = Spec {
    names: &["--preview"],
    value: Some("DIR"),
    is_file: true,
    is_repeated: true,
    help: "Run in a copy of DIR, list what has changed there, and keep nothing of it",
    ..PLAIN
};

/// Runs with one fault each.
pub static STORM: Spec = Spec {
    names: &["--storm"],
    heading: STORMS,
    help: "Run in copies of a directory, with one fault each; report commands that can't be repeated",
    ..PLAIN
};

/// Directories that a storm copies.
pub static STORM_IN: Spec = Spec {
    names: &["--in"],
    value: Some("DIR"),
    is_file: true,
    is_repeated: true,
    heading: STORMS,
    help: "With --storm: copy DIR, besides the current directory",
    ..PLAIN
};

/// Models of commands in a storm.
pub static STORM_COMMAND: Spec = Spec {
    names: &["--command"],
    value: Some("MODEL"),
    is_repeated: true,
    heading: STORMS,
    help: "With --storm: a model in the place of a command: 'curl fails 30%'",
    ..PLAIN
};

/// Report of a storm for programs.
pub static STORM_JSON: Spec =
    Spec { names: &["--json"], heading: STORMS, help: "With --storm: report in JSON", ..PLAIN };

/// Version.
pub static VERSION: Spec =
    Spec { names: &["-V", "-v", "--version"], is_common: true, help: "Print the version", ..PLAIN };

/// Most used options.
pub static HELP: Spec =
    Spec { names: &["-h"], is_common: true, help: "Print the most used options", ..PLAIN };

/// Complete help.
pub static HELP_ALL: Spec = Spec {
    names: &["--help"],
    is_common: true,
    help: "Print all options, the environment and exit statuses",
    ..PLAIN
};

/// Default policy of delays.
pub static BACKOFF: Setting<Policy> = Setting {
    option: Spec {
        names: &["--backoff"],
        value: Some("POLICY"),
        suggestions: || PolicyKind::ALL.into_iter().map(PolicyKind::name).collect(),
        variable: Some("FTSH_BACKOFF"),
        heading: TRYING,
        is_common: true,
        help: "Delays of a try without its own: 'full from 1 s'",
        ..PLAIN
    },
    read: values::policy,
    write: Policy::to_string,
};

/// Time from SIGTERM to SIGKILL.
pub static KILL_TIMEOUT: Setting<Duration> = Setting {
    option: Spec {
        names: &["-t"],
        value: Some("SECS"),
        variable: Some("FTSH_KILL_TIMEOUT"),
        default: Some("30"),
        heading: TRYING,
        help: "Seconds from SIGTERM to SIGKILL when commands are canceled",
        ..PLAIN
    },
    read: values::seconds,
    write: values::decimal,
};

const KILL_WORDS: Words<bool> = &[("strong", true), ("weak", false)];

/// True if SIGKILL is repeated until no process is left.
pub static KILL_MODE: Setting<bool> = Setting {
    option: Spec {
        names: &["-k"],
        value: Some("MODE"),
        suggestions: || values::names(KILL_WORDS),
        variable: Some("FTSH_KILL_MODE"),
        default: Some("strong"),
        heading: TRYING,
        help: "SIGKILL until no process is left (strong), or once (weak)",
        ..PLAIN
    },
    read: |text| values::word(KILL_WORDS, text),
    write: |strong| values::name(KILL_WORDS, strong),
};

/// Seed of random choices.
pub static SEED: Setting<u64> = Setting {
    option: Spec {
        names: &["--seed"],
        value: Some("N"),
        heading: TRYING,
        help: "Repeat the random choices of another run",
        ..PLAIN
    },
    read: values::seed,
    write: u64::to_string,
};

/// File of the log.
pub static LOG_FILE: Spec = Spec {
    names: &["-f"],
    value: Some("FILE"),
    is_file: true,
    variable: Some("FTSH_LOG_FILE"),
    heading: LOG,
    is_common: true,
    help: "Append the log to FILE, not to standard error",
    ..PLAIN
};

/// Level of the log.
pub static LOG_LEVEL: Setting<u8> = Setting {
    option: Spec {
        names: &["-l"],
        value: Some("N"),
        suggestions: || vec!["0", "5", "10", "20", "30", "40"],
        variable: Some("FTSH_LOG_LEVEL"),
        default: Some("10"),
        heading: LOG,
        is_common: true,
        help: "0 none, 5 fatal, 10 failed, 20 commands, 30 structures, 40 all",
        ..PLAIN
    },
    read: values::level,
    write: u8::to_string,
};

/// True if times in the log are seconds since 1970.
pub static LOG_DECIMAL: Setting<bool> = Setting {
    option: Spec {
        names: &["-D"],
        variable: Some("FTSH_LOG_DECIMAL"),
        heading: LOG,
        help: "Log times as seconds since 1970",
        ..PLAIN
    },
    read: values::switch,
    write: |_| "1".into(),
};

const FORMATS: Words<Format> = &[("text", Format::Text), ("json", Format::Json)];

/// Format of the log.
pub static LOG_FORMAT: Setting<Format> = Setting {
    option: Spec {
        names: &["--log-format"],
        value: Some("FORMAT"),
        suggestions: || values::names(FORMATS),
        variable: Some("FTSH_LOG_FORMAT"),
        default: Some("text"),
        heading: LOG,
        help: "Log as text, a line for people, or json, an object for programs",
        ..PLAIN
    },
    read: |text| values::word(FORMATS, text),
    write: |format| values::name(FORMATS, format),
};

/// Variables whose values are hidden.
pub static REDACT: Setting<Vec<String>> = Setting {
    option: Spec {
        names: &["--redact"],
        value: Some("NAME"),
        is_repeated: true,
        variable: Some("FTSH_REDACT_NAMES"),
        heading: LOG,
        help: "Hide the value of the variable NAME in the log and in messages",
        ..PLAIN
    },
    read: values::variables,
    write: |names| names.join(" "),
};

/// Summary at the end of a run.
pub static SUMMARY: Spec = Spec {
    names: &["--summary"],
    heading: LOG,
    help: "Print a summary at the end: attempts, their time, failures",
    ..PLAIN
};

/// File of the results of branches.
pub static RESULTS: Spec = Spec {
    names: &["--results"],
    value: Some("FILE"),
    is_file: true,
    heading: LOG,
    help: "Append a line to FILE for each branch of a forall: JSON, or .tsv as GNU parallel's job log",
    ..PLAIN
};

/// List of channels.
pub static CHANNELS: Spec = Spec {
    names: &["--channels"],
    heading: TRYING,
    help: "List the channels of all your shells; run nothing",
    ..PLAIN
};

/// List of the durations that limits are learned from.
pub static DURATIONS: Spec = Spec {
    names: &["--durations"],
    heading: TRYING,
    help: "List the durations and limits of the script's usual clauses; run nothing",
    ..PLAIN
};

/// Removal of the durations.
pub static DURATIONS_FORGET: Spec = Spec {
    names: &["--durations-forget"],
    heading: TRYING,
    help: "Drop the durations of the script's usual clauses; run nothing",
    ..PLAIN
};

/// Runs whose output is shown at their end only.
pub static QUIET: Setting<CronMode> = Setting {
    option: Spec {
        names: &["--cron"],
        value: Some("MODE"),
        suggestions: || vec!["stderr"],
        is_optional: true,
        is_joined: true,
        variable: Some("FTSH_CRON"),
        is_private: true,
        heading: CRON,
        is_common: true,
        help: "Show output only if the script fails (stderr: or warns)",
        ..PLAIN
    },
    read: |text| values::word(CronMode::WORDS, text),
    write: |mode| values::name(CronMode::WORDS, mode),
};

/// Lock against a second run.
pub static LOCK: Spec = Spec {
    names: &["--lock"],
    value: Some("FILE"),
    is_optional: true,
    is_joined: true,
    is_file: true,
    variable: Some("FTSH_LOCK"),
    is_private: true,
    heading: CRON,
    is_common: true,
    help: "Refuse to run while another run is in progress",
    ..PLAIN
};

/// Maximum wait for the lock.
pub static LOCK_WAIT: Setting<Duration> = Setting {
    option: Spec {
        names: &["--lock-wait"],
        value: Some("D"),
        variable: Some("FTSH_LOCK_WAIT"),
        is_private: true,
        heading: CRON,
        help: "Wait for the lock, at most D, such as '5 minutes'",
        ..PLAIN
    },
    read: values::duration,
    write: values::decimal,
};

/// End of a run while another run holds the lock.
pub static LOCK_BUSY: Setting<WhenBusy> = Setting {
    option: Spec {
        names: &["--lock-busy"],
        value: Some("MODE"),
        suggestions: || values::names(WhenBusy::WORDS),
        variable: Some("FTSH_LOCK_BUSY"),
        default: Some("fail"),
        is_private: true,
        heading: CRON,
        help: "If another run holds the lock: report it and exit with 75 (fail), exit with 0 silently (skip), or end that run first (replace)",
        ..PLAIN
    },
    read: |text| values::word(WhenBusy::WORDS, text),
    write: |busy| values::name(WhenBusy::WORDS, busy),
};

/// Maximum random delay before a run.
pub static SPLAY: Setting<Duration> = Setting {
    option: Spec {
        names: &["--splay"],
        value: Some("D"),
        variable: Some("FTSH_SPLAY"),
        is_private: true,
        heading: CRON,
        help: "Wait a random part of D first, such as 10min",
        ..PLAIN
    },
    read: values::duration,
    write: values::decimal,
};

/// Engine for branches on other machines.
pub static ON: Setting<On<BString>> = Setting {
    option: Spec {
        names: &["--on"],
        value: Some("ENGINE"),
        variable: Some("FTSH_ON"),
        is_private: true,
        heading: ELSEWHERE,
        help: "Run the branches of each forall on an engine, such as 'slurm' with options or 'ssh HOST ...'",
        ..PLAIN
    },
    read: values::on,
    write: values::on_written,
};

/// Time that branches on other machines continue without contact.
pub static LEASE: Setting<Duration> = Setting {
    option: Spec {
        names: &["--lease"],
        value: Some("D"),
        variable: Some("FTSH_LEASE"),
        default: Some("1 minute"),
        is_private: true,
        heading: ELSEWHERE,
        help: "Time that branches there continue without contact to this shell",
        ..PLAIN
    },
    read: values::lease,
    write: values::decimal,
};

/// True if the program is copied to other machines.
pub static SHIP: Setting<bool> = Setting {
    option: Spec {
        names: &["--ship"],
        variable: Some("FTSH_SHIP"),
        is_private: true,
        heading: ELSEWHERE,
        help: "Copy this program to machines that lack it",
        ..PLAIN
    },
    read: values::switch,
    write: |_| "1".into(),
};

/// Journal of a run.
pub static JOURNAL: Spec = Spec {
    names: &["--journal"],
    value: Some("FILE"),
    is_file: true,
    variable: Some("FTSH_JOURNAL"),
    is_private: true,
    heading: RECORDED,
    help: "Record the run in FILE, or resume the unfinished run in FILE",
    ..PLAIN
};

/// Log of a recorded run.
pub static REPLAY: Spec = Spec {
    names: &["--replay"],
    value: Some("FILE"),
    is_file: true,
    heading: RECORDED,
    help: "Print the log of the run in FILE at the level of -l; run nothing",
    ..PLAIN
};

/// State of a recorded run.
pub static STATUS_OF: Spec = Spec {
    names: &["--status"],
    value: Some("FILE"),
    is_file: true,
    heading: RECORDED,
    help: "Print the current or last state of the run in FILE",
    ..PLAIN
};

/// Picture of a recorded run.
pub static TIMELINE: Spec = Spec {
    names: &["--timeline"],
    value: Some("FILE"),
    is_file: true,
    heading: RECORDED,
    help: "Draw the run in FILE, to the file of -o or to standard output",
    ..PLAIN
};

/// File of a picture.
pub static OUTPUT: Spec = Spec {
    names: &["-o"],
    value: Some("FILE"),
    is_file: true,
    heading: RECORDED,
    help: "With --timeline: draw into FILE, an .svg, or an .html that zooms",
    ..PLAIN
};

/// All options in the order of the help.
pub static TABLE: [&Spec; 42] = [
    &TEXT,
    &CHECK,
    &STRICT,
    &PRINT,
    &EXPLAIN,
    &LSP,
    &PREVIEW,
    &UNSET.option,
    &VERSION,
    &HELP,
    &HELP_ALL,
    &BACKOFF.option,
    &KILL_TIMEOUT.option,
    &KILL_MODE.option,
    &SEED.option,
    &CHANNELS,
    &DURATIONS,
    &DURATIONS_FORGET,
    &LOG_FILE,
    &LOG_LEVEL.option,
    &LOG_DECIMAL.option,
    &LOG_FORMAT.option,
    &REDACT.option,
    &SUMMARY,
    &RESULTS,
    &QUIET.option,
    &LOCK,
    &LOCK_WAIT.option,
    &LOCK_BUSY.option,
    &SPLAY.option,
    &ON.option,
    &LEASE.option,
    &SHIP.option,
    &JOURNAL,
    &REPLAY,
    &STATUS_OF,
    &TIMELINE,
    &OUTPUT,
    &STORM,
    &STORM_IN,
    &STORM_COMMAND,
    &STORM_JSON,
];

/// Options that request something other than work on a script file.
pub static INSTEAD_OF_SCRIPT: [&Spec; 7] =
    [&TEXT, &REPLAY, &STATUS_OF, &TIMELINE, &EXPLAIN, &LSP, &CHANNELS];

/// Exit statuses of the shell.
pub const STATUS: [(&str, &str); 9] = [
    ("0", "success"),
    ("n", "exit n; or the status of the command that failed"),
    ("124", "out of time"),
    ("126, 127", "a program can't be executed, does not exist"),
    ("128+n", "a command was killed by signal n"),
    (
        "134",
        "an error in ftsh itself, which a message before it names; or a command was killed by SIGABRT",
    ),
    (
        "75",
        "another run holds the lock or the journal; or a failure was deferred, refused or of an engine",
    ),
    ("1", "any other failure"),
    (
        "2",
        "wrong usage or a syntax error in the script, and nothing was run; or a command's own status",
    ),
];

/// Variables of the environment without an option.
pub const WITHOUT_OPTION: [(&str, &str); 5] = [
    ("FTSH_REDACT", "values to hide as --redact does, one a line"),
    ("FTSH_CHANNELS, _DURATIONS", "directories of channels and of durations for usual"),
    ("FTSH_LOCK_DIR", "directory of the locks of --lock without FILE"),
    ("FTSH_EXPMIN, _EXPMAX, _EXPFACTOR, _EXPRAND", "delays, as in the ftsh of 2003"),
    ("FTSH_DEADLINE", "a limit for the whole run, in seconds since 1970"),
];

/// True if a variable of the environment applies to one shell only, not to shells that it starts.
pub fn is_private(variable: &OsStr) -> bool {
    let private =
        |option: &Spec| option.is_private && option.variable.is_some_and(|name| variable == name);
    TABLE.into_iter().any(private)
}

/// Returns the variables with their meanings, as listed in the help.
pub fn environment() -> Vec<(String, String)> {
    let of_options = TABLE.into_iter().filter_map(|option| {
        let private = if option.is_private { "; not for shells that a script starts" } else { "" };
        let blanks = if option.is_repeated { ", with blanks between" } else { "" };
        Some((option.assignment()?, format!("as {}{blanks}{private}", option.name())))
    });
    let others = WITHOUT_OPTION.into_iter().map(|(name, meaning)| (name.into(), meaning.into()));
    of_options.chain(others).collect()
}
