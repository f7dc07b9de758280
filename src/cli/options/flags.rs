//! Parsed command line: options for clap, and words whose values are not examined yet.
//!
//! Help, manual page and completions come from [`command`]. `resolve` examines values together with
//! those of the environment, so both get the same messages.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Error, Result};

use crate::cli::messages::usage;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use crate::cli::lock::may_be_lock;
use crate::cli::options::{self, STATUS, Spec};
use ftsh_syntax::slug::Slug;

/// Words that begin a command line such as `ftsh try 3 times -- rsync …`.
pub const HEADS: [&str; 5] = ["try", "limit", "forany", "forall", "on"];

/// Returns the head with this name.
pub(crate) fn head(word: &OsString) -> Option<&'static str> {
    HEADS.into_iter().find(|head| word == head)
}

/// Options and words of a command line.
#[derive(Debug, Default)]
pub struct Flags {
    /// Values of each option on the command line by the option's name; empty for a switch.
    given: BTreeMap<&'static str, Vec<OsString>>,
    /// The script or its name, and the arguments.
    pub words: Vec<OsString>,
}

impl Flags {
    /// True if an option is on the command line.
    pub fn has(&self, option: &Spec) -> bool {
        self.given.contains_key(option.name())
    }

    /// Returns all values of an option, unexamined.
    pub fn values(&self, option: &Spec) -> &[OsString] {
        self.given.get(option.name()).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the last value of an option.
    pub fn value(&self, option: &Spec) -> Option<&OsString> {
        self.values(option).last()
    }

    /// True if the words after the options begin with a head.
    pub(crate) fn is_prefix(&self) -> bool {
        let has_script = !options::INSTEAD_OF_SCRIPT.iter().any(|option| self.has(option));
        has_script && self.words.first().is_some_and(|word| head(word).is_some())
    }

    /// Refuses a word after an option as the name of a file if the word looks like another option.
    fn check_files(&self) -> Result<()> {
        for option in options::TABLE.into_iter().filter(|option| option.is_file) {
            let is_odd = |value: &&OsString| value.len() > 1 && value.as_bytes()[0] == b'-';
            if let Some(word) = self.values(option).iter().find(is_odd) {
                let (name, word) = (option.name(), word.display());
                let value = option.value.unwrap_or_default();
                return Err(usage(
                    Slug::OptionValue,
                    format_args!(
                        "`{name}` lacks its {value}: `{word}` looks like an option; write \
                         `./{word}` for a file of that name"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Adds options of another source. Options already here take precedence.
    pub fn add(&mut self, others: Self) {
        for (name, others) in others.given {
            let is_repeated = options::TABLE.iter().any(|it| it.name() == name && it.is_repeated);
            let values = self.given.entry(name).or_insert_with(|| others.clone());
            if is_repeated {
                let missing: Vec<_> =
                    others.into_iter().filter(|it| !values.contains(it)).collect();
                values.splice(..0, missing);
            }
        }
    }

    /// Returns the value of `--lock`, if the option is on the command line.
    pub fn lock(&self) -> Option<Lock> {
        self.value(&options::LOCK).map(|file| match file {
            alone if alone == ALONE => Lock::Alone,
            file => Lock::File(file.clone()),
        })
    }

    /// Returns the value of an option whose value may be missing.
    pub fn optional_value(&self, option: &Spec) -> Option<&OsString> {
        self.value(option).filter(|value| *value != ALONE)
    }
}

/// Value of `--lock`.
#[derive(Debug, PartialEq, Eq)]
pub enum Lock {
    /// None: the script has a lock of its own.
    Alone,
    /// File of the lock.
    File(OsString),
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
struct SuggestedValues(Vec<&'static str>);

impl TypedValueParser for SuggestedValues {
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

/// Returns the definition of an option for clap.
fn argument(option: &'static Spec) -> Arg {
    let mut argument = Arg::new(option.name())
        .help(option.meaning())
        .help_heading(option.heading)
        .hide_short_help(!option.is_common);
    for name in option.names {
        let letter = options::short(name);
        let word = name.trim_start_matches('-');
        argument = match letter {
            Some(letter) if argument.get_short().is_none() => argument.short(letter),
            Some(letter) => argument.visible_short_alias(letter),
            None => argument.long(word),
        };
    }
    if option.name() == options::HELP.name() {
        return argument.action(ArgAction::HelpShort);
    }
    let Some(value) = option.value else { return argument.action(ArgAction::SetTrue) };
    argument = argument
        .value_name(value)
        .value_parser(SuggestedValues((option.suggestions)()))
        .hide_possible_values(true)
        // `-l -5` has a wrong level, not a missing one.
        .allow_hyphen_values(true);
    if option.is_file {
        argument = argument.value_hint(ValueHint::FilePath);
    }
    if option.is_repeated {
        argument = argument.action(ArgAction::Append);
    }
    if option.is_optional {
        argument =
            argument.num_args(0..=1).require_equals(option.is_joined).default_missing_value(ALONE);
    }
    argument
}

/// Returns the definition of the command line for parsing, help, manual page and completions.
pub fn command() -> Command {
    Command::new("ftsh")
        .about("The fault-tolerant shell: scripts around commands that fail")
        .override_usage(USAGE)
        .max_term_width(100)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args_override_self(true)
        .args(options::TABLE.map(argument))
        .arg(
            Arg::new("words")
                .value_name("script and arguments")
                .value_parser(value_parser!(OsString))
                .value_hint(ValueHint::FilePath)
                .num_args(0..)
                // Options end at the name of the script.
                .trailing_var_arg(true)
                .hide(true),
        )
}

/// Returns the definition with the complete help.
pub fn help() -> Command {
    command().mut_args(|argument| argument.hide_short_help(false)).after_help(
        list("Environment", options::environment()) + "\n" + &list("Exit status", STATUS),
    )
}

/// Value of an option without its optional value. No argument can contain a NUL.
const ALONE: &str = "\0";

/// Parses the words of a command line, without the name of the program.
pub fn parse(mut words: Vec<OsString>) -> Result<Request> {
    loop {
        let request = read(&words)?;
        let Request::Work(flags) = &request else { return Ok(request) };
        let Some(at) = file_of_lock(&words, flags)? else {
            flags.check_files()?;
            return Ok(request);
        };
        let file = words.remove(at);
        words[at - 1] = "--lock=".into();
        words[at - 1].push(file);
    }
}

fn read(words: &[OsString]) -> Result<Request> {
    let mut matches = match command().no_binary_name(true).try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return Ok(Request::Print(error.to_string()));
        }
        Err(error) => return Err(one_line(&error)),
    };
    let is_typed = |matches: &ArgMatches, option: &Spec| {
        matches.value_source(option.name()) == Some(ValueSource::CommandLine)
    };
    if is_typed(&matches, &options::HELP_ALL) {
        return Ok(Request::Print(help().render_help().to_string()));
    }
    if is_typed(&matches, &options::VERSION) {
        return Ok(Request::Print(concat!("ftsh ", env!("CARGO_PKG_VERSION"), "\n").into()));
    }
    let mut flags = Flags::default();
    for option in options::TABLE {
        if is_typed(&matches, option) {
            let values = match option.value {
                Some(_) => matches.remove_many(option.name()).into_iter().flatten().collect(),
                None => Vec::new(),
            };
            flags.given.insert(option.name(), values);
        }
    }
    flags.words = matches.remove_many("words").into_iter().flatten().collect();
    Ok(Request::Work(Box::new(flags)))
}

/// Returns the index of the file in `--lock FILE script`. Returns none for `--lock script
/// arguments`, where the word after `--lock` is the script.
fn file_of_lock(words: &[OsString], flags: &Flags) -> Result<Option<usize>> {
    let at = words.len() - flags.words.len();
    let is_after_lock = at > 0 && words[at - 1] == "--lock" && flags.lock() == Some(Lock::Alone);
    let Some(word) = flags.words.first().filter(|_| is_after_lock) else { return Ok(None) };
    let is_script = !flags.has(&options::TEXT)
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
        ErrorKind::UnknownArgument => match error.get(ContextKind::SuggestedArg) {
            Some(known) => usage(
                Slug::UnknownOption,
                format_args!("unknown option `{option}`, did you mean `{known}`?"),
            ),
            None => usage(
                Slug::UnknownOption,
                format_args!("unknown option `{option}`; `ftsh --help` lists all options"),
            ),
        },
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
