//! Values of options and variables: from text, and back to text for nested shells.

use std::time::Duration;

use bstr::BString;
use thiserror::Error;

use crate::log::Format;
use crate::telemetry::Url;
use ftsh_process::PassedDeadline;
use ftsh_syntax::backoff::{Policy, PolicyError};
use ftsh_syntax::clauses::On;
use ftsh_syntax::duration::{self, Unit};
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::vocabulary::is_name;

/// Error of a value that cannot be parsed. `Display` describes the expected values.
#[derive(Debug, PartialEq, Error)]
pub(crate) enum BadValue {
    /// Another kind of value is expected.
    #[error("expected {0}")]
    Wanted(&'static str),
    /// Reason why the value is wrong.
    #[error("{0}")]
    Because(String),
    /// The value is none of these words.
    #[error("expected `{}`", .0.join("` or `"))]
    OneOf(Vec<&'static str>),
    /// A duration has an unknown unit.
    #[error("unknown unit `{unit}`; did you mean `{known}`?")]
    Unit {
        /// The unknown unit.
        unit: String,
        /// The most similar unit.
        known: &'static str,
    },
    /// A policy cannot be parsed.
    #[error("{}", .0.one_line())]
    Policy(PolicyError),
}

/// Words with their values.
pub(crate) type Words<T> = &'static [(&'static str, T)];

/// Values of `--unset`: true if variables that are not set are empty.
pub(super) const UNSET: Words<bool> = &[("empty", true), ("fail", false)];

/// Values of `-k`: true if SIGKILL is repeated until no process is left.
pub(super) const KILL_MODE: Words<bool> = &[("strong", true), ("weak", false)];

/// Values of `--log-format`.
pub(super) const FORMATS: Words<Format> = &[("text", Format::Text), ("json", Format::Json)];

/// End of a run when another one holds the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WhenBusy {
    /// The run is refused.
    #[default]
    Fail,
    /// The run ends with success.
    Skip,
    /// The other run is ended first.
    Replace,
}

/// Runs whose output is shown at their end only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CronMode {
    /// None: output passes at once.
    #[default]
    Off,
    /// Failed runs.
    Failure,
    /// Failed runs, and those whose commands wrote to standard error.
    Errors,
}

impl CronMode {
    /// Values of `--cron` and its variable.
    pub(crate) const WORDS: Words<Self> =
        &[("0", Self::Off), ("1", Self::Failure), ("stderr", Self::Errors)];

    /// Returns true if the output is captured.
    pub(crate) fn is_on(self) -> bool {
        self != Self::Off
    }
}

impl WhenBusy {
    /// Values of `--lock-busy`.
    pub(crate) const WORDS: Words<Self> =
        &[("fail", Self::Fail), ("skip", Self::Skip), ("replace", Self::Replace)];
}

/// Returns the value of a word.
fn word<T: Copy>(words: Words<T>, text: &str) -> Result<T, BadValue> {
    let known = words.iter().find(|(word, _)| *word == text);
    known.map(|(_, value)| *value).ok_or_else(|| BadValue::OneOf(names(words)))
}

/// Parses a value of `--unset`. Returns true if variables that are not set are empty.
pub(crate) fn unset(text: &str) -> Result<bool, BadValue> {
    word(UNSET, text)
}

/// Parses a value of `-k`. Returns true if SIGKILL is repeated until no process is left.
pub(crate) fn kill_mode(text: &str) -> Result<bool, BadValue> {
    word(KILL_MODE, text)
}

/// Parses a format of the log.
pub(crate) fn format(text: &str) -> Result<Format, BadValue> {
    word(FORMATS, text)
}

/// Parses a value of `--cron`.
pub(crate) fn cron(text: &str) -> Result<CronMode, BadValue> {
    word(CronMode::WORDS, text)
}

/// Parses a value of `--lock-busy`.
pub(crate) fn when_busy(text: &str) -> Result<WhenBusy, BadValue> {
    word(WhenBusy::WORDS, text)
}

/// Returns all words in order.
pub(crate) fn names<T>(words: Words<T>) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}

/// Parses the address of a monitor.
pub(crate) fn url(text: &str) -> Result<Url, BadValue> {
    Url::parse(text).ok_or(BadValue::Wanted(Url::FORM))
}

/// Parses a number of failures.
pub(crate) fn failures(text: &str) -> Result<u64, BadValue> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or(BadValue::Wanted("a whole number from 1"))
}

/// Parses the value of a switch in the environment.
pub(crate) fn switch(text: &str) -> Result<bool, BadValue> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(BadValue::Wanted("0 or 1")),
    }
}

/// Refuses a value of `FTSH_LOCK` that would turn a switch on or off, except for `0`, which stands for
/// no lock. The text itself need not be UTF-8.
pub(crate) fn lock(text: &str) -> Result<bool, BadValue> {
    match text {
        "0" => Ok(false),
        "1" | "yes" | "true" | "on" | "no" | "false" | "off" => {
            let why = format!(
                "expected the file of the lock, like `/run/lock/sync`; `./{text}` is a file of \
                 that name"
            );
            Err(BadValue::Because(why))
        }
        _ => Ok(true),
    }
}

/// Parses a level of the log.
pub(crate) fn level(text: &str) -> Result<u8, BadValue> {
    let level = text.parse().ok().filter(|level: &u8| *level <= 100);
    level.ok_or(BadValue::Wanted("0, 5, 10, 20, 30 or 40"))
}

/// Parses the seed of a run.
pub(crate) fn seed(text: &str) -> Result<u64, BadValue> {
    text.parse().map_err(|_| BadValue::Wanted("a whole number from 0 to 18446744073709551615"))
}

/// Parses a number of seconds, possibly with a fraction.
pub(crate) fn seconds(text: &str) -> Result<Duration, BadValue> {
    Unit::Seconds.times(text).ok_or(BadValue::Wanted("a number of seconds, from 0"))
}

/// Formats a duration as a decimal number of seconds.
pub(crate) fn decimal(duration: Duration) -> String {
    let text = format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Parses a deadline in the environment.
pub(crate) fn deadline(text: &str) -> Result<PassedDeadline, BadValue> {
    PassedDeadline::parse(text).ok_or(BadValue::Wanted("a time in seconds since 1970"))
}

/// Parses an engine and its argument after a blank.
pub(crate) fn on(text: &str) -> Result<On<BString>, BadValue> {
    let (name, options) = match text.trim().split_once(char::is_whitespace) {
        Some((name, options)) => (name, Some(options.trim())),
        None => (text.trim(), None),
    };
    let engine = EngineId::named(name)
        .filter(|engine| options.is_some() || !engine.row().argument.is_required())
        .ok_or_else(|| BadValue::Because(format!("expected {}", EngineId::usage())))?;
    match options.and_then(|options| engine.argument_error(options)) {
        Some(why) => Err(BadValue::Because(why)),
        None => Ok(On { engine, options: options.map(BString::from) }),
    }
}

/// Parses a duration of at least a second. A shorter lease would end branches on busy machines.
pub(crate) fn lease(text: &str) -> Result<Duration, BadValue> {
    let wanted = BadValue::Wanted("a duration of a second or more");
    duration(text).and_then(|lease| if lease.as_secs() > 0 { Ok(lease) } else { Err(wanted) })
}

/// Parses a duration as in scripts.
pub(crate) fn duration(text: &str) -> Result<Duration, BadValue> {
    duration::parse(text).ok_or_else(|| {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
        match nearest(unit, Unit::names()) {
            Some(known) if known != unit => BadValue::Unit { unit: unit.to_owned(), known },
            _ => BadValue::Wanted("a duration, like `90s` or `5 minutes`"),
        }
    })
}

/// Parses the growth factor of delays, at least 1.
pub(crate) fn factor(text: &str) -> Result<f64, BadValue> {
    let factor = text.parse().ok().filter(|by: &f64| by.is_finite() && *by >= 1.0);
    factor.ok_or(BadValue::Wanted("a number from 1"))
}

/// Parses a policy of delays.
pub(crate) fn policy(text: &str) -> Result<Policy, BadValue> {
    text.parse().map_err(BadValue::Policy)
}

/// Parses the name of a variable whose values are hidden.
pub(crate) fn variable(text: &str) -> Result<String, BadValue> {
    if is_name(text) {
        Ok(text.into())
    } else {
        Err(BadValue::Wanted("the name of a variable, whose values are hidden"))
    }
}

/// Parses names separated by blanks.
pub(crate) fn variables(text: &str) -> Result<Vec<String>, BadValue> {
    text.split_whitespace().map(variable).collect()
}
