//! Every option, once: what it is called, the variable that says the same, how its value is read, what
//! holds without it, and what it is for.
//!
//! Parsing, help, the manual page, the completions and README's table are made of [`TABLE`] or tested
//! against it.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::{Result, anyhow};
use bstr::BString;

use super::values::{self, BadValue, Words};
use crate::log::Format;
use ftsh_syntax::backoff::{Kind, Policy};
use ftsh_syntax::clauses::On;

/// An option of the command line.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each can be true of any option")]
pub struct Spec {
    /// How it is typed: `-l`, `--log-format`; the first one names it.
    pub names: &'static [&'static str],
    /// What its value is called; none for a switch.
    pub value: Option<&'static str>,
    /// Whether the value may be missing, and then has to follow a `=`.
    pub is_optional: bool,
    /// Whether it may be given several times, and all count.
    pub is_repeated: bool,
    /// What a value can be, for completions; whether it is right is examined later.
    pub suggestions: fn() -> Vec<&'static str>,
    /// What is completed if nothing is suggested.
    pub is_file: bool,
    /// The variable that says the same.
    pub variable: Option<&'static str>,
    /// Whether what the variable says is for one shell only, not for those that a script starts.
    pub is_private: bool,
    /// What holds without it.
    pub default: Option<&'static str>,
    /// Under which heading the help has it.
    pub heading: &'static str,
    /// Whether the short help has it.
    pub is_common: bool,
    /// What it does.
    pub help: &'static str,
}

/// An option whose value is more than text.
#[derive(Debug)]
pub struct Setting<T> {
    /// The option.
    pub option: Spec,
    /// Reads a value.
    pub read: fn(&str) -> Result<T, BadValue>,
    /// Writes a value as nested shells read it.
    pub write: fn(&T) -> String,
}

const GENERAL: &str = "General";
const TRYING: &str = "Trying and ending";
const LOG: &str = "Log";
const CRON: &str = "Cron";
const RECORDED: &str = "Recorded runs";
const ELSEWHERE: &str = "Other machines";

/// What most options are.
const PLAIN: Spec = Spec {
    names: &[],
    value: None,
    is_optional: false,
    is_repeated: false,
    suggestions: Vec::new,
    is_file: false,
    variable: None,
    is_private: false,
    default: None,
    heading: GENERAL,
    is_common: false,
    help: "",
};

/// The text of a script.
pub static TEXT: Spec = Spec {
    names: &["-c"],
    value: Some("TEXT"),
    is_common: true,
    help: "Run TEXT; what follows is $0 $1 …",
    ..PLAIN
};

/// Look for mistakes.
pub static CHECK: Spec = Spec {
    names: &["-n"],
    is_common: true,
    help: "Check the script and warn of what is rarely meant, run nothing",
    ..PLAIN
};

/// Print the script.
pub static PRINT: Spec =
    Spec { names: &["-p"], help: "Print the script, tidied, run nothing", ..PLAIN };

/// Talk with an editor.
pub static LSP: Spec = Spec {
    names: &["--lsp"],
    help: "Serve an editor as a language server, on standard input and output; run nothing",
    ..PLAIN
};

const UNSET_WORDS: Words<bool> = &[("empty", true), ("fail", false)];

/// Whether variables that are set nowhere are empty.
pub static UNSET: Setting<bool> = Setting {
    option: Spec {
        names: &["--unset"],
        value: Some("empty"),
        suggestions: || values::names(UNSET_WORDS),
        variable: Some("FTSH_UNSET"),
        default: Some("fail"),
        help: "Read variables that are set nowhere as empty, don't fail",
        ..PLAIN
    },
    read: |text| values::word(UNSET_WORDS, text),
    write: |empty| values::name(UNSET_WORDS, empty),
};

/// Print the version.
pub static VERSION: Spec =
    Spec { names: &["-V", "-v", "--version"], is_common: true, help: "Print the version", ..PLAIN };

/// Print the options that are used most.
pub static HELP: Spec =
    Spec { names: &["-h"], is_common: true, help: "Print the most used options", ..PLAIN };

/// Print everything about the command line.
pub static HELP_ALL: Spec = Spec {
    names: &["--help"],
    is_common: true,
    help: "Print all options, the environment and exit statuses",
    ..PLAIN
};

/// The delays of tries that name none.
pub static BACKOFF: Setting<Policy> = Setting {
    option: Spec {
        names: &["--backoff"],
        value: Some("POLICY"),
        suggestions: || Kind::ALL.into_iter().map(Kind::name).collect(),
        variable: Some("FTSH_BACKOFF"),
        heading: TRYING,
        is_common: true,
        help: "Delays of tries that name none: 'full from 1 s'",
        ..PLAIN
    },
    read: values::policy,
    write: Policy::to_string,
};

/// The time from SIGTERM to SIGKILL.
pub static KILL_TIMEOUT: Setting<Duration> = Setting {
    option: Spec {
        names: &["-t"],
        value: Some("SECS"),
        variable: Some("FTSH_KILL_TIMEOUT"),
        default: Some("30"),
        heading: TRYING,
        help: "Seconds from SIGTERM to SIGKILL when something is cancelled",
        ..PLAIN
    },
    read: values::seconds,
    write: values::decimal,
};

const KILL_WORDS: Words<bool> = &[("strong", true), ("weak", false)];

/// Whether SIGKILL is repeated until nothing is left.
pub static KILL_MODE: Setting<bool> = Setting {
    option: Spec {
        names: &["-k"],
        value: Some("MODE"),
        suggestions: || values::names(KILL_WORDS),
        variable: Some("FTSH_KILL_MODE"),
        default: Some("strong"),
        heading: TRYING,
        help: "SIGKILL until nothing is left (strong), or once (weak)",
        ..PLAIN
    },
    read: |text| values::word(KILL_WORDS, text),
    write: |strong| values::name(KILL_WORDS, strong),
};

/// Repeat the random choices of another run.
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

/// Where the log goes.
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

/// How much is logged.
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

/// Log times as seconds since 1970.
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

/// How the log is written.
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

/// What isn't told.
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

/// Sum up at the end.
pub static SUMMARY: Spec = Spec {
    names: &["--summary"],
    heading: LOG,
    help: "Sum up at the end what was tried, how long, and what failed where",
    ..PLAIN
};

/// What became of branches.
pub static RESULTS: Spec = Spec {
    names: &["--results"],
    value: Some("FILE"),
    is_file: true,
    heading: LOG,
    help: "Append a line to FILE for each branch of a forall: JSON, or .tsv as GNU parallel's job log",
    ..PLAIN
};

/// What is going on in channels.
pub static CHANNELS: Spec = Spec {
    names: &["--channels"],
    heading: TRYING,
    help: "List the channels of all your shells, run nothing",
    ..PLAIN
};

/// Show output only after a failure.
pub static QUIET: Setting<bool> = Setting {
    option: Spec {
        names: &["--cron"],
        variable: Some("FTSH_CRON"),
        is_private: true,
        heading: CRON,
        is_common: true,
        help: "Show what is printed only if the script fails",
        ..PLAIN
    },
    read: values::switch,
    write: |_| "1".into(),
};

/// Never run twice at once.
pub static LOCK: Spec = Spec {
    names: &["--lock"],
    value: Some("FILE"),
    is_optional: true,
    is_file: true,
    variable: Some("FTSH_LOCK"),
    is_private: true,
    heading: CRON,
    is_common: true,
    help: "Refuse a second run while one is on",
    ..PLAIN
};

/// How long to wait for the lock.
pub static LOCK_WAIT: Setting<Duration> = Setting {
    option: Spec {
        names: &["--lock-wait"],
        value: Some("D"),
        variable: Some("FTSH_LOCK_WAIT"),
        is_private: true,
        heading: CRON,
        help: "Wait for the lock, at most '5 minutes'",
        ..PLAIN
    },
    read: values::duration,
    write: values::decimal,
};

const BUSY_WORDS: Words<bool> = &[("fail", false), ("skip", true)];

/// Whether a run that another one keeps from starting is none, or a failure.
pub static LOCK_BUSY: Setting<bool> = Setting {
    option: Spec {
        names: &["--lock-busy"],
        value: Some("MODE"),
        suggestions: || values::names(BUSY_WORDS),
        variable: Some("FTSH_LOCK_BUSY"),
        default: Some("fail"),
        is_private: true,
        heading: CRON,
        help: "While another run is on: say so and end with 75 (fail), or with 0 in silence (skip)",
        ..PLAIN
    },
    read: |text| values::word(BUSY_WORDS, text),
    write: |skip| values::name(BUSY_WORDS, skip),
};

/// Don't begin at the same moment as others.
pub static SPLAY: Setting<Duration> = Setting {
    option: Spec {
        names: &["--splay"],
        value: Some("D"),
        variable: Some("FTSH_SPLAY"),
        is_private: true,
        heading: CRON,
        help: "Wait a random part of D first, as of 10min",
        ..PLAIN
    },
    read: values::duration,
    write: values::decimal,
};

/// Run branches on other machines.
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

/// How long they go on without the shell.
pub static LEASE: Setting<Duration> = Setting {
    option: Spec {
        names: &["--lease"],
        value: Some("D"),
        variable: Some("FTSH_LEASE"),
        default: Some("1 minute"),
        is_private: true,
        heading: ELSEWHERE,
        help: "There they end when they haven't heard of this shell for so long",
        ..PLAIN
    },
    read: values::lease,
    write: values::decimal,
};

/// Other machines needn't have the program.
pub static SHIP: Setting<bool> = Setting {
    option: Spec {
        names: &["--ship"],
        variable: Some("FTSH_SHIP"),
        is_private: true,
        heading: ELSEWHERE,
        help: "Send this program along, so that they needn't have it",
        ..PLAIN
    },
    read: values::switch,
    write: |_| "1".into(),
};

/// Record the run.
pub static JOURNAL: Spec = Spec {
    names: &["--journal"],
    value: Some("FILE"),
    is_file: true,
    variable: Some("FTSH_JOURNAL"),
    is_private: true,
    heading: RECORDED,
    help: "Record the run in FILE, or go on with the one in it that isn't over",
    ..PLAIN
};

/// The log of a recorded run.
pub static REPLAY: Spec = Spec {
    names: &["--replay"],
    value: Some("FILE"),
    is_file: true,
    heading: RECORDED,
    help: "Print the log of the run in FILE at the level of -l, whatever its own was; run nothing",
    ..PLAIN
};

/// What a recorded run does.
pub static STATUS_OF: Spec = Spec {
    names: &["--status"],
    value: Some("FILE"),
    is_file: true,
    heading: RECORDED,
    help: "Print what the run in FILE is doing, or was doing at last",
    ..PLAIN
};

/// A picture of a recorded run.
pub static TIMELINE: Spec = Spec {
    names: &["--timeline"],
    value: Some("FILE"),
    is_file: true,
    heading: RECORDED,
    help: "Draw the run in FILE, into the file of -o or on standard output",
    ..PLAIN
};

/// Where the picture goes.
pub static OUTPUT: Spec = Spec {
    names: &["-o"],
    value: Some("FILE"),
    is_file: true,
    heading: RECORDED,
    help: "With --timeline: draw into FILE, an .svg or an .html to look closer at",
    ..PLAIN
};

/// All options, in the order of the help.
pub static TABLE: [&Spec; 33] = [
    &TEXT,
    &CHECK,
    &PRINT,
    &LSP,
    &UNSET.option,
    &VERSION,
    &HELP,
    &HELP_ALL,
    &BACKOFF.option,
    &KILL_TIMEOUT.option,
    &KILL_MODE.option,
    &SEED.option,
    &CHANNELS,
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
];

/// What the environment says beside what options do.
pub const OTHER_VARIABLES: [(&str, &str); 5] = [
    ("FTSH_REDACT", "values to hide as --redact does, one a line"),
    ("FTSH_CHANNELS", "where the files of channels are"),
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
    (
        "75",
        "another run has the lock or the journal; or a failure was deferred, refused or of an engine",
    ),
    ("1", "any other failure"),
    (
        "2",
        "wrong usage or a syntax error in the script, and nothing was run; or a command's own status",
    ),
];

impl<T> Setting<T> {
    /// What holds without the option.
    ///
    /// # Errors
    ///
    /// There is no default, which the table should have.
    pub fn default(&self) -> Result<T> {
        let option = &self.option;
        let text = option.default.ok_or_else(|| anyhow!("`{}` has no default", option.name()))?;
        (self.read)(text)
            .map_err(|reason| anyhow!("`{}` has a bad default: {reason}", option.name()))
    }
}

impl Spec {
    /// The first of its names.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Whether it is this letter and takes a value.
    pub fn takes_value_as(&self, letter: char) -> bool {
        self.value.is_some() && self.names.iter().any(|name| short(name) == Some(letter))
    }

    /// What it does, and what holds without it.
    pub fn meaning(&self) -> String {
        let default = self.default.map(|default| format!(" [{default}]"));
        format!("{}{}", self.help, default.unwrap_or_default())
    }

    /// The variable as one writes it: a switch with the value that turns it on.
    pub fn assignment(&self) -> Option<String> {
        let on = if self.value.is_none() { "=1" } else { "" };
        self.variable.map(|variable| format!("{variable}{on}"))
    }
}

/// The letter of an option that is one.
pub fn short(name: &str) -> Option<char> {
    let rest = name.strip_prefix('-')?;
    let mut letters = rest.chars();
    letters.next().filter(|letter| *letter != '-' && letters.next().is_none())
}

/// Whether a variable of the environment is meant for one shell, not for those that it starts.
pub fn is_private(variable: &OsStr) -> bool {
    let private =
        |option: &Spec| option.is_private && option.variable.is_some_and(|name| variable == name);
    TABLE.into_iter().any(private)
}

/// The variables and what each says, as the help lists them.
pub fn environment() -> Vec<(String, String)> {
    let of_options = TABLE.into_iter().filter_map(|option| {
        let private = if option.is_private { "; not for shells that a script starts" } else { "" };
        let blanks = if option.is_repeated { ", with blanks between" } else { "" };
        Some((option.assignment()?, format!("as {}{blanks}{private}", option.name())))
    });
    let others = OTHER_VARIABLES.into_iter().map(|(name, meaning)| (name.into(), meaning.into()));
    of_options.chain(others).collect()
}
