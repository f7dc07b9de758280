//! Parser of lengths of time: `5 minutes`, `1h30m`.

use super::builder::Builder;
use super::{Pair, Result, Rule, bashisms, literal};
use crate::ast::{Duration, Expr, ExprKind, Unit};
use crate::clauses;
use crate::duration::{parse, parse_joined};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::nearest::nearest;
use crate::slug::Slug;
use crate::span::Span;

/// Content of a `duration` of the grammar, which may be a number of times.
pub(super) enum TimeOrTimes {
    Time(Duration),
    Times(Expr),
}

impl Duration {
    /// Returns the length, if the script holds the length literally.
    pub fn literal(&self) -> Option<std::time::Duration> {
        match self {
            Self::Amount { amount, unit } => unit.times(&literal::expr(amount)?),
            Self::Whole(word) => parse(&literal::word(word)?),
        }
    }

    /// Returns true if the script holds a literal length of 0.
    pub fn is_zero(&self) -> bool {
        self.literal().is_some_and(|length| length.is_zero())
    }

    /// Returns the span without the unit.
    pub fn span(&self) -> Span {
        match self {
            Self::Amount { amount, .. } => amount.span,
            Self::Whole(word) => word.span,
        }
    }
}

impl Builder<'_> {
    /// Builds a `duration` that is a length of time above zero.
    pub(super) fn duration(&mut self, pair: Pair) -> Result<Duration> {
        let span = self.span(&pair);
        match self.limit(pair).map_err(without_times)? {
            TimeOrTimes::Time(duration) => Ok(duration),
            TimeOrTimes::Times(_) => Err(Box::new(expected_duration(span))),
        }
    }

    /// Builds a `duration` that is a length of time, or zero.
    pub(super) fn interval(&mut self, pair: Pair) -> Result<Duration> {
        let span = self.span(&pair);
        match self.amount(pair).map_err(without_times)? {
            TimeOrTimes::Time(duration) => Ok(duration),
            TimeOrTimes::Times(_) => Err(Box::new(expected_duration(span))),
        }
    }

    /// Builds a `duration` that is a length of time or a number of times.
    pub(super) fn limit(&mut self, pair: Pair) -> Result<TimeOrTimes> {
        let span = self.span(&pair);
        match self.amount(pair)? {
            TimeOrTimes::Time(duration) if duration.is_zero() => Err(Box::new(not_positive(span))),
            limit => Ok(limit),
        }
    }

    /// Builds a `duration` above zero or a `usual`, with the place of `or D` after `usual`.
    /// `clause` is the clause before.
    pub(super) fn usual_time(
        &mut self,
        pair: Pair,
        clause: &str,
    ) -> Result<(Duration, Option<Span>)> {
        if pair.as_rule() != Rule::usual {
            return Ok((self.duration(pair)?, None));
        }
        let span = self.span(&pair);
        let word = pair.as_str().find("or").unwrap_or_default();
        let limit = pair.into_inner().last();
        let of_limit = limit.as_ref().map(|limit| self.span(limit));
        match limit.map(|limit| self.limit(limit)).transpose()? {
            Some(TimeOrTimes::Time(limit)) => {
                Ok((limit, Some(Span::new(span.start + word, span.end))))
            }
            Some(TimeOrTimes::Times(_)) | None => {
                let message = format!("`{clause} usual` needs `or` and a length of time");
                let error = SyntaxError::new(Slug::MissingValue, of_limit.unwrap_or(span), message);
                Err(Box::new(error.hint(if clause == "each" {
                    hint!(
                        "`each usual or 20 minutes` is 20 minutes until 10 durations are known, \
                         and never more; another `or` gives a second limit of the `try`"
                    )
                } else {
                    hint!(
                        "`hedge after usual or 5 seconds` waits for 5 seconds until 10 durations \
                         are known, and never longer"
                    )
                })))
            }
        }
    }

    fn amount(&mut self, pair: Pair) -> Result<TimeOrTimes> {
        let span = self.span(&pair);
        let mut inner = pair.into_inner();
        let amount = inner.next().expect("a duration has an amount");
        let amount = self.expr(amount)?;
        let Some(unit) = inner.find(|pair| pair.as_rule() == Rule::unit) else {
            return whole(amount);
        };
        if matches!(unit.as_str(), "time" | "times") {
            check_count(&amount)?;
            return Ok(TimeOrTimes::Times(amount));
        }
        if let Some(text) = literal::expr(&amount) {
            // A duration has no sign.
            match literal::number(&text).filter(|_| !text.starts_with('+')) {
                None if parse_joined(&text).is_some() => {
                    if Unit::named(unit.as_str()).is_some() {
                        return whole(amount);
                    }
                    return Err(not_a_duration(self.span(&unit), unit.as_str()).into());
                }
                None if Unit::named(unit.as_str()).is_some() => {
                    let error = SyntaxError::new(
                        Slug::NotANumber,
                        amount.span,
                        format!("`{text}` is not a number"),
                    );
                    return Err(error.label("expected a duration, like `5 minutes`").into());
                }
                None => return Err(not_a_duration(amount.span, &text).into()),
                Some(number) if number < 0.0 => return Err(not_positive(span).into()),
                Some(_) => {}
            }
        }
        let unit_span = self.span(&unit);
        let Some(unit) = Unit::named(unit.as_str()) else {
            return Err(unknown_unit(unit_span, unit.as_str()).into());
        };
        Ok(TimeOrTimes::Time(Duration::Amount { amount, unit }))
    }
}

/// Builds a duration without a unit after the amount, from a word whose value has units.
fn whole(amount: Expr) -> Result<TimeOrTimes> {
    let ExprKind::Word(word) = amount.kind else {
        let error = SyntaxError::new(
            Slug::MissingUnit,
            Span::new(amount.span.end, amount.span.end),
            "a unit is missing",
        );
        return Err(Box::new(
            error.label("expected `times`, `seconds`, `minutes`, `hours` or `days`"),
        ));
    };
    match literal::word(&word) {
        None => Ok(TimeOrTimes::Time(Duration::Whole(word))),
        Some(text) => match parse(&text).filter(|_| literal::number(&text).is_none()) {
            Some(_) => Ok(TimeOrTimes::Time(Duration::Whole(word))),
            None => Err(Box::new(not_a_duration(word.span, &text))),
        },
    }
}

fn not_a_duration(span: Span, text: &str) -> SyntaxError {
    if text.len() > 2
        && let Some(meant) = nearest(text, clauses::words("try"))
    {
        let no = if meant == "leftovers" { "no " } else { "" };
        return SyntaxError::new(Slug::UnknownClause, span, format!("unknown clause `{text}`"))
            .hint(hint!("did you mean `{no}{meant}`?"));
    }
    if literal::number(text).is_some() {
        let error = SyntaxError::new(Slug::MissingUnit, span, format!("`{text}` needs a unit"));
        return error
            .label("expected `times`, `seconds`, `minutes`, `hours` or `days` after the number");
    }
    let error = expected_duration(span);
    let hint = match text {
        "==" | "!=" => Some(hint!("conditions are joined by `||`: `while $a == 1 || $b == 2`")),
        "and" => Some(hint!("limits are joined by `or`: the first limit reached ends the `try`")),
        "with" | "using" => Some(hint!("clauses follow each other: `backoff full`")),
        "delay" | "wait" | "sleep" | "pause" | "interval" => Some(hint!(
            "`every 5 seconds` spaces the starts of attempts; `backoff fixed from 5 seconds` waits between attempts"
        )),
        "timeout" | "within" => Some(hint!(
            "`{text}` is not a clause: `each 1 minute` limits an attempt, and `for 5 minutes` the `try`"
        )),
        "atomically" | "transaction" | "transactional" => {
            Some(hint!("`atomic` makes each attempt all or nothing: `try 3 times atomic`"))
        }
        "no" => Some(hint!("`no leftovers` ends what a successful group left running")),
        "--" => Some(hint!("one command follows `--` on the line: `try 3 times -- make`")),
        "max" | "at" | "upto" => Some(hint!("`try 5 times` makes at most 5 attempts")),
        "do" | "then" | "{" => Some(bashisms::block()),
        _ => None,
    };
    if let Some(hint) = hint {
        return error.hint(hint);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or_default();
    let (number, unit) = text.split_at(digits);
    if matches!(unit, "x" | "times") {
        return error.hint(hint!("a number of attempts is `{number} times`"));
    }
    let all = Unit::names().chain(["time", "times"]);
    match nearest(unit, all) {
        _ if number.is_empty() => {
            error.hint(hint!("put the command on the next line, or after a `;`"))
        }
        _ if unit.contains(|c: char| !c.is_ascii_alphabetic()) => error,
        Some(unit) => error.hint(hint!("did you mean `{number} {unit}`?")),
        None => error,
    }
}

/// Removes `times` from the units that an error names, for a clause that takes no number of times.
fn without_times(mut error: Box<SyntaxError>) -> Box<SyntaxError> {
    error.label = error.label.map(|label| label.replace("`times`, ", ""));
    error
}

fn expected_duration(span: Span) -> SyntaxError {
    SyntaxError::new(Slug::NotADuration, span, "expected a duration, like `5 minutes`")
}

fn unknown_unit(span: Span, unit: &str) -> SyntaxError {
    let error = SyntaxError::new(Slug::UnknownUnit, span, format!("unknown unit `{unit}`"))
        .label("expected `times`, `seconds`, `minutes`, `hours` or `days`");
    let short = [("mins", "minutes"), ("secs", "seconds"), ("hr", "hours"), ("hrs", "hours")];
    let long = short.iter().find(|(short, _)| *short == unit).map(|it| it.1);
    match long.or_else(|| nearest(unit, Unit::names().chain(["time", "times"]))) {
        Some(meant) => error.hint(hint!("did you mean `{meant}`?")),
        None => error,
    }
}

fn not_positive(span: Span) -> SyntaxError {
    SyntaxError::new(Slug::ZeroDuration, span, "a duration must be longer than zero")
}

/// Refuses a literal number of times, or of branches, that is no whole number above zero.
pub(super) fn check_count(count: &Expr) -> Result<()> {
    let Some(text) = literal::expr(count) else { return Ok(()) };
    let (slug, message) = match text.parse::<i64>() {
        Ok(1..) => return Ok(()),
        Ok(_) => (Slug::OutOfRange, format!("`{text}` is too small: the minimum is 1")),
        Err(_) => (Slug::NotANumber, format!("expected a whole number, not `{text}`")),
    };
    let error = SyntaxError::new(slug, count.span, message);
    Err(Box::new(if text.bytes().all(|byte| byte.is_ascii_alphabetic()) && !text.is_empty() {
        error.hint(hint!("write the number in digits, or `${text}` for a variable"))
    } else {
        error
    }))
}
