//! Parsed command line: options for clap, and words whose values are not examined yet.
//!
//! Help, manual page and completions come from [`Flags`]. `resolve` examines values together with
//! those of the environment, so both get the same messages.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Error, Result};

use crate::cli::messages::usage;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, Command, CommandFactory, FromArgMatches, Parser, ValueHint};

use crate::cli::lock::may_be_lock;
use crate::cli::options::values::{self, WhenBusy, names};
use crate::cli::options::{self, STATUS};
use ftsh_ide::help;
use ftsh_syntax::backoff::PolicyKind;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::slug::Slug;

const TRYING: &str = "Trying and ending";
const LOG: &str = "Log";
const CRON: &str = "Cron";
const MONITORS: &str = "Monitors";
const RECORDED: &str = "Recorded runs";
const ELSEWHERE: &str = "Other machines";
const STORMS: &str = "Is it safe to repeat?";

/// Hint that a value is a file.
const FILE: ValueHint = ValueHint::FilePath;

/// Help of `--explain`.
const EXPLAIN: &str =
    "Explain the message with SLUG, as in error[SLUG], or list all slugs; run nothing";

/// Main names of the options in the short help.
const COMMON: [&str; 10] =
    ["-c", "-n", "-V", "-h", "--help", "--backoff", "-f", "-l", "--cron", "--lock"];

/// Words that begin a command line such as `ftsh try 3 times -- rsync …`.
pub const HEADS: [&str; 5] = ["try", "limit", "forany", "forall", "on"];

/// Options of similar programs, each with the way to the same here.
const HABITS: [(&str, &str); 10] = [
    ("--retries", TRY),
    ("--times", TRY),
    ("--max-retries", TRY),
    ("--timeout", "a limit is a word: `ftsh limit 5 minutes -- COMMAND`"),
    ("--quiet", QUIET),
    ("-q", QUIET),
    ("--verbose", VERBOSE),
    ("--debug", VERBOSE),
    ("-x", VERBOSE),
    (
        "--dry-run",
        "`ftsh -n SCRIPT` checks a script, and `ftsh --preview=DIR SCRIPT` shows its effects",
    ),
];
const TRY: &str = "the number is a word: `ftsh try 5 times -- COMMAND`";
const QUIET: &str = "`-l 0` logs nothing, and `--cron` prints nothing of a run that succeeds";
const VERBOSE: &str = "`-l 20` logs each command";

/// Returns the head with this name.
pub(crate) fn head(word: &OsString) -> Option<&'static str> {
    HEADS.into_iter().find(|head| word == head)
}

/// Options and words of a command line.
#[derive(Debug, Default, Parser)]
#[command(name = "ftsh", about = "The fault-tolerant shell: scripts around commands that fail")]
#[command(override_usage = USAGE, max_term_width = 100, args_override_self = true)]
#[command(disable_help_flag = true, disable_version_flag = true, next_help_heading = "General")]
#[expect(clippy::struct_excessive_bools, reason = "each switch is a field")]
pub struct Flags {
    /// Run TEXT; the words after it are $0, $1, …
    #[arg(short = 'c', value_name = "TEXT")]
    pub text: Option<OsString>,
    /// Check the script for errors and likely mistakes; run nothing
    #[arg(short = 'n')]
    pub check: bool,
    /// With -n: exit with status 1 if there are warnings, except for missing programs
    #[arg(long)]
    pub strict: bool,
    /// Print the formatted script; run nothing
    #[arg(short = 'p')]
    pub print: bool,
    /// Explanation of the message with a slug, or a list of all slugs.
    #[arg(long, value_name = "SLUG", value_parser = Suggested(slugs), help = EXPLAIN)]
    pub explain: Option<Option<OsString>>,
    /// Serve an editor as a language server, on standard input and output; run nothing
    #[arg(long)]
    pub lsp: bool,
    /// Run in a copy of DIR, list what has changed there, and keep nothing of it
    #[arg(long, value_name = "DIR", value_hint = FILE)]
    pub preview: Vec<OsString>,
    /// Read an unset variable as an empty value, instead of failing
    #[arg(long, value_name = "empty", value_parser = Suggested(|| names(values::UNSET)))]
    pub unset: Option<OsString>,
    /// Print the version
    #[arg(short = 'V', visible_short_alias = 'v', long)]
    pub version: bool,
    /// Print the most used options
    #[arg(short = 'h', action = ArgAction::HelpShort)]
    help: Option<bool>,
    /// Print all options, the environment and exit statuses
    #[arg(long = "help")]
    pub help_all: bool,

    /// Policy of a try without one, such as 'full from 1 s'
    #[arg(long, value_name = "POLICY", value_parser = Suggested(policies), help_heading = TRYING)]
    pub backoff: Option<OsString>,
    /// Seconds from SIGTERM to SIGKILL when commands are canceled
    #[arg(short = 't', value_name = "SECS", help_heading = TRYING)]
    pub kill_timeout: Option<OsString>,
    /// SIGKILL until no process is left (strong), or once (weak)
    #[arg(short = 'k', value_name = "MODE", help_heading = TRYING)]
    #[arg(value_parser = Suggested(|| names(values::KILL_MODE)))]
    pub kill_mode: Option<OsString>,
    /// Kill processes that a successful run leaves behind
    #[arg(long, help_heading = TRYING)]
    pub no_leftovers: bool,
    /// Stop the run when the process that started it is gone
    #[arg(long, help_heading = TRYING)]
    pub end_with_caller: bool,
    /// Repeat the random choices of another run
    #[arg(long, value_name = "N", help_heading = TRYING)]
    pub seed: Option<OsString>,
    /// List the channels of all your shells; run nothing
    #[arg(long, help_heading = TRYING)]
    pub channels: bool,
    /// List the durations and limits that 'usual' has learned for the script; run nothing
    #[arg(long, help_heading = TRYING)]
    pub durations: bool,
    /// Drop the durations that 'usual' has learned for the script; run nothing
    #[arg(long, help_heading = TRYING)]
    pub durations_forget: bool,

    /// Append the log to FILE, not to standard error
    #[arg(short = 'f', value_name = "FILE", value_hint = FILE, help_heading = LOG)]
    pub log_file: Option<OsString>,
    /// 0 none, 5 fatal, 10 failed, 20 commands, 30 structures, 40 all
    #[arg(short = 'l', value_name = "N", value_parser = Suggested(levels), help_heading = LOG)]
    pub log_level: Option<OsString>,
    /// Log times as seconds since 1970
    #[arg(short = 'D', help_heading = LOG)]
    pub log_decimal: bool,
    /// Log as text, a line for people, or json, an object for programs
    #[arg(long, value_name = "FORMAT", help_heading = LOG)]
    #[arg(value_parser = Suggested(|| names(values::FORMATS)))]
    pub log_format: Option<OsString>,
    /// Hide the value of the variable NAME in the log and in messages
    #[arg(long, value_name = "NAME", help_heading = LOG)]
    pub redact: Vec<OsString>,
    /// Print a summary at the end: attempts, their time, failures
    #[arg(long, help_heading = LOG)]
    pub summary: bool,
    /// Append a line to FILE for each branch of a forall: JSON, or .tsv as GNU parallel's job log
    #[arg(long, value_name = "FILE", value_hint = FILE, help_heading = LOG)]
    pub results: Option<OsString>,
    /// Append the trace of the run to FILE in OpenTelemetry's JSON, or send it to a URL (1: as OTEL_...)
    #[arg(long, value_name = "FILE", value_hint = FILE, help_heading = LOG)]
    pub otlp: Option<OsString>,

    /// Show output only if the run fails (=stderr: or warns)
    #[arg(long, value_name = "MODE", require_equals = true, help_heading = CRON)]
    #[arg(value_parser = Suggested(|| vec!["stderr"]))]
    pub cron: Option<Option<OsString>>,
    /// Like --cron, but show only the N-th failure in a row and later ones
    #[arg(long, value_name = "N", help_heading = CRON)]
    pub cron_after: Option<OsString>,
    /// Refuse to run while another run is in progress
    #[arg(long, value_name = "FILE", require_equals = true, value_hint = FILE, help_heading = CRON)]
    pub lock: Option<Option<OsString>>,
    /// Wait for the lock, at most D, such as '5 minutes'
    #[arg(long, value_name = "D", help_heading = CRON)]
    pub lock_wait: Option<OsString>,
    /// If another run holds the lock: report it and exit with 75 (fail), exit with 0 silently (skip),
    /// or stop that run first (replace)
    #[arg(long, value_name = "MODE", help_heading = CRON)]
    #[arg(value_parser = Suggested(|| names(WhenBusy::WORDS)))]
    pub lock_busy: Option<OsString>,
    /// Wait a random part of D first, such as 10min
    #[arg(long, value_name = "D", help_heading = CRON)]
    pub splay: Option<OsString>,

    /// Report the start and the end of the run to a monitor, as healthchecks does
    #[arg(long, value_name = "URL", help_heading = MONITORS)]
    pub ping: Option<OsString>,
    /// Write metrics of the script to a file in DIR, for Prometheus
    #[arg(long, value_name = "DIR", value_hint = FILE, help_heading = MONITORS)]
    pub metrics: Option<OsString>,

    /// Run the branches of each forall on an engine, such as 'slurm' with options or 'ssh HOST ...'
    #[arg(long, value_name = "ENGINE", help_heading = ELSEWHERE)]
    pub on: Option<OsString>,
    /// Time that branches on other machines continue without contact to this shell
    #[arg(long, value_name = "D", help_heading = ELSEWHERE)]
    pub lease: Option<OsString>,
    /// Copy this program to machines that lack it
    #[arg(long, help_heading = ELSEWHERE)]
    pub ship: bool,
    /// Run a command that queues a job, and give its streams to the job that calls at IP
    #[arg(long, value_name = "IP", help_heading = ELSEWHERE)]
    pub answer: Option<Option<IpAddr>>,
    /// Run a command with the streams of the `--answer` that waits at HOME, or in @FILE
    #[arg(long, value_name = "HOME", help_heading = ELSEWHERE)]
    pub call_home: Option<OsString>,

    /// Record the run in FILE, or resume the unfinished run in FILE
    #[arg(long, value_name = "FILE", value_hint = FILE, help_heading = RECORDED)]
    pub journal: Option<OsString>,
    /// Print the log of the run in FILE at the level of -l; run nothing
    #[arg(long, value_name = "FILE", value_hint = FILE, help_heading = RECORDED)]
    pub replay: Option<OsString>,
    /// Print the current or last state of the run in FILE
    #[arg(long, value_name = "FILE", value_hint = FILE, help_heading = RECORDED)]
    pub status: Option<OsString>,
    /// Draw the run in FILE, to the file of -o or to standard output
    #[arg(long, value_name = "FILE", value_hint = FILE, help_heading = RECORDED)]
    pub timeline: Option<OsString>,
    /// With --otlp: write the trace of the run in FILE; run nothing
    #[arg(long, value_name = "FILE", value_hint = FILE, help_heading = RECORDED)]
    pub trace: Option<OsString>,
    /// With --timeline: draw into FILE, an .svg, or an .html that zooms
    #[arg(short = 'o', value_name = "FILE", value_hint = FILE, help_heading = RECORDED)]
    pub output: Option<OsString>,

    /// Run in copies of a directory, with one fault each; report commands that can't be repeated
    #[arg(long, help_heading = STORMS)]
    pub storm: bool,
    /// With --storm: copy DIR, besides the current directory
    #[arg(long = "in", value_name = "DIR", value_hint = FILE, help_heading = STORMS)]
    pub storm_in: Vec<OsString>,
    /// With --storm: a model in the place of a command: 'curl fails 30%'
    #[arg(long = "command", value_name = "MODEL", help_heading = STORMS)]
    pub storm_command: Vec<OsString>,
    /// With --storm: report in JSON
    #[arg(long = "json", help_heading = STORMS)]
    pub storm_json: bool,

    /// The script or its name, and the arguments. Options end at the name of the script.
    #[arg(value_name = "script and arguments", value_hint = FILE)]
    #[arg(trailing_var_arg = true, hide = true)]
    pub words: Vec<OsString>,
}

/// Main names of options that request something other than work on a script file.
pub const INSTEAD_OF_SCRIPT: [&str; 8] =
    ["-c", "--replay", "--status", "--timeline", "--trace", "--explain", "--lsp", "--channels"];

impl Flags {
    /// True if the first word names a script or is a head.
    pub(crate) fn has_script(&self) -> bool {
        let views = [&self.text, &self.replay, &self.status, &self.timeline, &self.trace];
        let is_other = self.explain.is_some() || self.lsp || self.channels || self.calls();
        !is_other && views.into_iter().all(Option::is_none)
    }

    /// True if each word names a script, because scripts are only checked or printed.
    pub(crate) fn only_reads_scripts(&self) -> bool {
        (self.check || self.print)
            && !(self.durations || self.durations_forget || self.storm)
            && self.preview.is_empty()
            && self.has_script()
            && !self.is_prefix()
    }

    /// True for one end of a call between a job and a head.
    pub(crate) fn calls(&self) -> bool {
        self.answer.is_some() || self.call_home.is_some()
    }

    /// Returns combinations of options that are errors, each with its message. True if the command
    /// line has the combination. Clap's `requires` has no place for the reason.
    pub(crate) fn conflicts(&self) -> [(bool, &'static str); 16] {
        let has_script = !self.words.is_empty() || self.text.is_some();
        let shows = |file: &Option<OsString>| file.is_some() && has_script;
        let (is_storm, answers) = (self.storm, self.answer.is_some());
        let views = [&self.replay, &self.status, &self.timeline, &self.trace];
        let views = views.into_iter().flatten().count();
        [
            (
                self.output.is_some() && self.timeline.is_none(),
                "`-o` needs `--timeline`, whose picture it names",
            ),
            (
                self.calls() && self.words.is_empty(),
                "`--answer` and `--call-home` need a command after `--`",
            ),
            (answers && self.call_home.is_some(), "`--answer` excludes `--call-home`"),
            (self.check && self.print, "`-n` checks and `-p` prints a script; use one of them"),
            (self.lsp && self.channels, "`--lsp` and `--channels` exclude each other"),
            (views > 1, "`--replay`, `--status`, `--timeline` and `--trace` exclude each other"),
            (self.replay.is_some() && self.log_file.is_some(), "`--replay` takes no `-f`; use `>`"),
            (self.lsp && has_script, "`--lsp` takes no script: an editor provides the scripts"),
            (shows(&self.replay), "`--replay` shows a recorded run and takes no script"),
            (shows(&self.status), "`--status` shows a recorded run and takes no script"),
            (shows(&self.timeline), "`--timeline` shows a recorded run and takes no script"),
            (shows(&self.trace), "`--trace` shows a recorded run and takes no script"),
            (
                self.strict && !self.check,
                "`--strict` needs `-n`, whose warnings it makes a failure",
            ),
            (!is_storm && !self.storm_in.is_empty(), "`--in` needs `--storm`"),
            (!is_storm && !self.storm_command.is_empty(), "`--command` needs `--storm`"),
            (!is_storm && self.storm_json, "`--json` needs `--storm`"),
        ]
    }

    /// True if the words after the options begin with a head.
    pub(crate) fn is_prefix(&self) -> bool {
        self.has_script() && self.words.first().is_some_and(|word| head(word).is_some())
    }
}

/// Request of a command line.
#[derive(Debug)]
pub enum Request {
    /// Work on a script.
    Work(Box<Flags>),
    /// Print a text on standard output: help or the version.
    Print(String),
}

const USAGE: &str = "ftsh [options] script.ftsh [args]
       ftsh [options] -c TEXT [args]
       ftsh try 3 times -- command
       [… |] ftsh [options]";

/// Formats a list of names with their meanings.
fn list(title: &str, entries: impl IntoIterator<Item = (impl Display, impl Display)>) -> String {
    let mut text = format!("{title}:\n");
    for (name, meaning) in entries {
        text += &format!("  {name}: {meaning}\n");
    }
    text
}

/// Parser that suggests values and accepts all; `resolve` examines them later.
#[derive(Clone)]
struct Suggested(fn() -> Vec<&'static str>);

impl TypedValueParser for Suggested {
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
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

fn slugs() -> Vec<&'static str> {
    Slug::ALL.iter().map(|slug| slug.name()).collect()
}

fn policies() -> Vec<&'static str> {
    PolicyKind::ALL.into_iter().map(PolicyKind::name).collect()
}

fn levels() -> Vec<&'static str> {
    vec!["0", "5", "10", "20", "30", "40"]
}

/// Returns the definition of the command line for parsing.
fn definition() -> Command {
    // `-l -5` has a wrong level, not a missing one, but `--answer --` has no value.
    Flags::command().mut_args(|option| {
        let is_valued = !option.is_positional() && option.get_action().takes_values();
        let may_lack = option.get_num_args().is_some_and(|number| number.min_values() == 0);
        option.allow_hyphen_values(is_valued && !may_lack)
    })
}

/// Returns the letters of options with a value.
pub(super) fn valued_letters() -> Vec<char> {
    let definition = Flags::command();
    let valued = definition.get_arguments().filter(|option| option.get_action().takes_values());
    valued.filter_map(Arg::get_short).collect()
}

/// Returns the definition of the command line for help, manual page and completions.
pub fn command() -> Command {
    definition().mut_args(|option| {
        let name = options::names(&option).into_iter().next().unwrap_or_default();
        let help = option.get_help().cloned().unwrap_or_default();
        let help = match options::setting(&name).map(|setting| setting.default) {
            None | Some("") => help,
            Some(default) => format!("{help} [{default}]").into(),
        };
        let is_hidden = !COMMON.contains(&name.as_str());
        let is_valued = option.get_action().takes_values();
        option.help(help).hide_short_help(is_hidden).hide_possible_values(is_valued)
    })
}

/// Returns the definition with the complete help.
pub fn help() -> Command {
    let is_shared = |(_, meaning): &(_, String)| !meaning.ends_with(options::FOR_ONE_SHELL);
    let (shared, mut private): (Vec<_>, Vec<_>) =
        options::environment().into_iter().partition(is_shared);
    for (_, meaning) in &mut private {
        meaning.truncate(meaning.len() - options::FOR_ONE_SHELL.len());
    }
    command().mut_args(|argument| argument.hide_short_help(false)).after_help(
        list("Environment", shared)
            + "\n"
            + &list("Environment for one shell only", private)
            + "\n"
            + &list("Exit status", STATUS),
    )
}

/// Parses the words of a command line, without the name of the program. Writes `--lock FILE` in the
/// words as `--lock=FILE`.
pub fn parse(words: &mut Vec<OsString>) -> Result<Request> {
    let request = read(words)?;
    let Request::Work(flags) = &request else { return Ok(request) };
    let Some(at) = file_of_lock(words, flags)? else { return Ok(request) };
    let file = words.remove(at);
    words[at - 1] = "--lock=".into();
    words[at - 1].push(file);
    parse(words)
}

fn read(words: &[OsString]) -> Result<Request> {
    let mut definition = definition().no_binary_name(true);
    let matches = match definition.try_get_matches_from_mut(words) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return Ok(Request::Print(command().render_help().to_string()));
        }
        Err(error) => return Err(one_line(&error)),
    };
    let flags = Flags::from_arg_matches(&matches).map_err(|error| one_line(&error))?;
    // A script of this name comes first.
    let words = match &flags.words[..] {
        [word, topics @ ..] if flags.has_script() && !Path::new(word).exists() => {
            (word.to_str(), topics)
        }
        _ => (None, &[][..]),
    };
    if let (Some("help"), topics @ [_, ..]) = words {
        let topics: Vec<_> = topics.iter().map(|word| word.to_string_lossy().into()).collect();
        let more = options::topics::all();
        return match help::unknown(&topics, &more) {
            Some(message) => Err(usage(Slug::UnknownSlug, message)),
            None => Ok(Request::Print(help::answer(&topics, &more, 80, false))),
        };
    }
    if flags.help_all || words.0 == Some("help") {
        return Ok(Request::Print(help().render_help().to_string()));
    }
    if flags.version || words == (Some("version"), &[]) {
        return Ok(Request::Print(concat!("ftsh ", env!("CARGO_PKG_VERSION"), "\n").into()));
    }
    let is_file = |option: &&Arg| !option.is_positional() && option.get_value_hint() == FILE;
    for option in definition.get_arguments().filter(is_file) {
        let values = matches.get_raw(option.get_id().as_str()).into_iter().flatten();
        check_files(option, values)?;
    }
    Ok(Request::Work(Box::new(flags)))
}

/// Refuses a word after an option as the name of a file if the word looks like another option.
fn check_files<'a>(option: &Arg, mut values: impl Iterator<Item = &'a OsStr>) -> Result<()> {
    let is_odd = |value: &&OsStr| value.len() > 1 && value.as_bytes()[0] == b'-';
    let Some(word) = values.find(is_odd) else { return Ok(()) };
    let (name, word) = (options::names(option).swap_remove(0), word.display());
    let value = options::value_name(option).unwrap_or_default();
    Err(usage(
        Slug::OptionValue,
        format_args!(
            "`{name}` lacks its {value}: `{word}` looks like an option; write \
             `./{word}` for a file of that name"
        ),
    ))
}

/// Returns the index of the file in `--lock FILE script`. Returns none for `--lock script
/// arguments`, where the word after `--lock` is the script.
fn file_of_lock(words: &[OsString], flags: &Flags) -> Result<Option<usize>> {
    let at = words.len() - flags.words.len();
    let is_after_lock = at > 0 && words[at - 1] == "--lock" && flags.lock == Some(None);
    let Some(word) = flags.words.first().filter(|_| is_after_lock) else { return Ok(None) };
    let is_script = flags.text.is_none()
        && (head(word).is_some()
            || flags.words.len() == 1
            || word == "-"
            || looks_like_script(Path::new(word)));
    if is_script {
        return Ok(None);
    }
    if !may_be_lock(Path::new(word)) {
        return Err(usage(
            Slug::LockFile,
            format_args!(
                "`--lock {0}`: is this the lock or the script? The file exists, and is \
             neither a lock nor a script; write `--lock={0}` or `--lock -- {0}`",
                word.display()
            ),
        ));
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
        ErrorKind::UnknownArgument => {
            let command = command();
            let known: Vec<String> = command.get_arguments().flat_map(options::names).collect();
            let known = known.iter().map(String::as_str).chain(HABITS.map(|(option, _)| option));
            let near = nearest(&option, known.filter(|known| known.len() > 2 || *known == option));
            let way = HABITS.iter().find(|(habit, _)| near == Some(habit)).map(|(_, way)| *way);
            let advice = match (way, near) {
                (Some(way), _) => format!("; {way}"),
                (None, Some(known)) => format!(", did you mean `{known}`?"),
                (None, None) => "; `ftsh --help` lists all options".into(),
            };
            usage(Slug::UnknownOption, format_args!("unknown option `{option}`{advice}"))
        }
        ErrorKind::InvalidValue => {
            usage(Slug::OptionValue, format_args!("`{option}` lacks its value"))
        }
        ErrorKind::TooManyValues => usage(
            Slug::OptionValue,
            format_args!("`{option}` takes no value, not `{}`", about(ContextKind::InvalidValue)),
        ),
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            usage(Slug::OptionValue, format_args!("{}", first.trim_start_matches("error: ")))
        }
    }
}
