//! The values of options and variables: from text, and back to text for nested shells.

use std::time::Duration;

use bstr::BString;
use thiserror::Error;

use ftsh_syntax::backoff::{Mistake, Policy};
use ftsh_syntax::clauses::On;
use ftsh_syntax::duration::{self, Unit};
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::vocabulary::is_name;

/// Why a text isn't the value that it should be. `Display` says what it should be.
#[derive(Debug, PartialEq, Error)]
pub enum BadValue {
    /// Something else is wanted.
    #[error("it is {0}")]
    Wanted(&'static str),
    /// This is wrong with it.
    #[error("{0}")]
    Because(String),
    /// It isn't one of these words.
    #[error("it is `{}`", .0.join("` or `"))]
    OneOf(Vec<&'static str>),
    /// A duration has a unit that there isn't.
    #[error("there is no unit `{unit}`; did you mean `{known}`?")]
    Unit {
        /// What stands there.
        unit: String,
        /// The unit most like it.
        known: &'static str,
    },
    /// No policy of delays.
    #[error("{}", .0.in_a_line())]
    Policy(Mistake),
}

/// Words and what each stands for.
pub type Words<T> = &'static [(&'static str, T)];

/// The value that `text` stands for.
pub fn word<T: Copy>(words: Words<T>, text: &str) -> Result<T, BadValue> {
    let known = words.iter().find(|(word, _)| *word == text);
    known.map(|(_, value)| *value).ok_or_else(|| BadValue::OneOf(names(words)))
}

/// The word for a value.
pub fn name<T: PartialEq>(words: Words<T>, value: &T) -> String {
    let known = words.iter().find(|(_, known)| known == value);
    known.map_or("", |(word, _)| word).to_owned()
}

/// All words, in their order.
pub fn names<T>(words: Words<T>) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}

/// A switch in the environment.
pub fn switch(text: &str) -> Result<bool, BadValue> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(BadValue::Wanted("0 or 1")),
    }
}

/// How much is logged.
pub fn level(text: &str) -> Result<u8, BadValue> {
    let level = text.parse().ok().filter(|level: &u8| *level <= 100);
    level.ok_or(BadValue::Wanted("a number from 0 to 100"))
}

/// The seed of a run.
pub fn seed(text: &str) -> Result<u64, BadValue> {
    text.parse().map_err(|_| BadValue::Wanted("a whole number from 0 to 18446744073709551615"))
}

/// A number of seconds, which may have a fraction.
pub fn seconds(text: &str) -> Result<Duration, BadValue> {
    Unit::Seconds.times(text).ok_or(BadValue::Wanted("a number of seconds, from 0"))
}

/// Seconds as a decimal number.
pub fn decimal(duration: &Duration) -> String {
    let text = format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A moment, as the time since 1970.
pub fn moment(text: &str) -> Result<Duration, BadValue> {
    Unit::Seconds.times(text).ok_or(BadValue::Wanted("a time in seconds since 1970"))
}

/// Where branches run: an engine, and a word for it after a blank.
pub fn on(text: &str) -> Result<On<BString>, BadValue> {
    let (name, options) = match text.trim().split_once(char::is_whitespace) {
        Some((name, options)) => (name, Some(options.trim())),
        None => (text.trim(), None),
    };
    let engine = EngineId::named(name)
        .filter(|engine| options.is_some() || !engine.row().argument.is_required())
        .ok_or_else(|| BadValue::Because(format!("it is {}", EngineId::usage())))?;
    match options.and_then(|options| engine.argument_error(options)) {
        Some(why) => Err(BadValue::Because(why)),
        None => Ok(On { engine, options: options.map(BString::from) }),
    }
}

/// As it is read.
pub fn on_written(on: &On<BString>) -> String {
    let options = on.options.iter().map(|options| format!(" {options}"));
    std::iter::once(on.engine.name().to_owned()).chain(options).collect()
}

/// A duration of a second or more: what is shorter ends branches whose machines are busy.
pub fn lease(text: &str) -> Result<Duration, BadValue> {
    let wanted = BadValue::Wanted("a duration of a second or more");
    duration(text).and_then(|lease| if lease.as_secs() > 0 { Ok(lease) } else { Err(wanted) })
}

/// A duration as in scripts.
pub fn duration(text: &str) -> Result<Duration, BadValue> {
    duration::parse(text).ok_or_else(|| {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
        match nearest(unit, Unit::names()) {
            Some(known) if known != unit => BadValue::Unit { unit: unit.to_owned(), known },
            _ => BadValue::Wanted("a duration, like `90s` or `5 minutes`"),
        }
    })
}

/// What the delays of a `try` grow by, at least 1.
pub fn factor(text: &str) -> Result<f64, BadValue> {
    let factor = text.parse().ok().filter(|by: &f64| by.is_finite() && *by >= 1.0);
    factor.ok_or(BadValue::Wanted("a number from 1"))
}

/// A policy of delays.
pub fn policy(text: &str) -> Result<Policy, BadValue> {
    text.parse().map_err(BadValue::Policy)
}

/// The name of a variable whose values are hidden.
pub fn variable(text: &str) -> Result<String, BadValue> {
    if is_name(text) {
        Ok(text.into())
    } else {
        Err(BadValue::Wanted("the name of a variable, whose values are hidden"))
    }
}

/// Such names with blanks between them.
pub fn variables(text: &str) -> Result<Vec<String>, BadValue> {
    text.split_whitespace().map(variable).collect()
}
