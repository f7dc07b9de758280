//! Lengths of time: `5 minutes`, `1h30m`.

use super::builder::Builder;
use super::{Pair, Result, Rule, bashisms, literal};
use crate::ast::{Duration, Expr, ExprKind, Unit};
use crate::clauses;
use crate::duration::parse_joined;
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::nearest::nearest;
use crate::slug::Slug;
use crate::span::Span;

/// A `duration` of the grammar, which may turn out to be a number of times.
pub(super) enum Limit {
    Time(Duration),
    Times(Expr),
}

impl Duration {
    /// Its length, if the script says it literally.
    pub fn literal(&self) -> Option<std::time::Duration> {
        match self {
            Self::Amount { amount, unit } => unit.times(&literal::expr(amount)?),
            Self::Joined(word) => parse_joined(&literal::word(word)?),
        }
    }

    /// Whether the script says literally that it is no time at all.
    pub fn is_zero(&self) -> bool {
        self.literal().is_some_and(|length| length.is_zero())
    }

    /// Where it stands, without its unit.
    pub fn span(&self) -> Span {
        match self {
            Self::Amount { amount, .. } => amount.span,
            Self::Joined(word) => word.span,
        }
    }
}

impl Builder<'_> {
    /// A `duration` that must be one.
    pub(super) fn duration(&mut self, pair: Pair) -> Result<Duration> {
        let span = self.span(&pair);
        match self.limit(pair)? {
            Limit::Time(duration) => Ok(duration),
            Limit::Times(_) => Err(Box::new(expected_duration(span))),
        }
    }

    /// A `duration` that must be one, or zero.
    pub(super) fn interval(&mut self, pair: Pair) -> Result<Duration> {
        let span = self.span(&pair);
        match self.amount(pair)? {
            Limit::Time(duration) => Ok(duration),
            Limit::Times(_) => Err(Box::new(expected_duration(span))),
        }
    }

    /// A `duration` that may be a number of times.
    pub(super) fn limit(&mut self, pair: Pair) -> Result<Limit> {
        let span = self.span(&pair);
        match self.amount(pair)? {
            Limit::Time(duration) if duration.is_zero() => Err(Box::new(not_positive(span))),
            limit => Ok(limit),
        }
    }

    fn amount(&mut self, pair: Pair) -> Result<Limit> {
        let span = self.span(&pair);
        let mut inner = pair.into_inner();
        let amount = inner.next().expect("a duration has an amount");
        let amount = self.expr(amount)?;
        let Some(unit) = inner.find(|pair| pair.as_rule() == Rule::unit) else {
            return joined(amount);
        };
        if matches!(unit.as_str(), "time" | "times") {
            check_count(&amount)?;
            return Ok(Limit::Times(amount));
        }
        if let Some(text) = literal::expr(&amount) {
            match literal::number(&text) {
                None if parse_joined(&text).is_some() => return joined(amount),
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
        Ok(Limit::Time(Duration::Amount { amount, unit }))
    }
}

/// A duration without a unit after it: a word whose value has its own.
fn joined(amount: Expr) -> Result<Limit> {
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
        None => Ok(Limit::Time(Duration::Joined(word))),
        Some(text) => match parse_joined(&text) {
            Some(_) => Ok(Limit::Time(Duration::Joined(word))),
            None => Err(Box::new(not_a_duration(word.span, &text))),
        },
    }
}

fn not_a_duration(span: Span, text: &str) -> SyntaxError {
    if text.len() > 2
        && let Some(meant) = nearest(text, clauses::words("try"))
    {
        return SyntaxError::new(Slug::UnknownClause, span, format!("unknown clause `{text}`"))
            .hint(hint!("did you mean `{meant}`?"));
    }
    if literal::number(text).is_some() {
        let error = SyntaxError::new(
            Slug::MissingUnit,
            span,
            format!("`{text}` of what? A unit is missing"),
        );
        return error.label("expected `times`, `seconds`, `minutes`, `hours` or `days` after it");
    }
    let error = expected_duration(span);
    let hint = match text {
        "and" => Some(hint!("limits are joined by `or`: the first one reached ends the `try`")),
        "with" | "using" => Some(hint!("clauses simply follow each other: `backoff full`")),
        "delay" | "wait" | "sleep" | "pause" | "interval" => Some(hint!(
            "attempts start apart with `every 5 seconds`; `backoff fixed from 5 seconds` waits between them"
        )),
        "timeout" | "within" => {
            Some(hint!("`for 5 minutes` limits the `try`, `each 1 minute` an attempt"))
        }
        "atomically" | "transaction" | "transactional" => {
            Some(hint!("`atomic` makes each attempt all or nothing: `try 3 times atomic`"))
        }
        "max" | "at" | "upto" => Some(hint!("`try 5 times` makes at most 5 attempts")),
        "do" | "then" | "{" => Some(bashisms::block()),
        _ => None,
    };
    if let Some(hint) = hint {
        return error.hint(hint);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or_default();
    let (number, unit) = text.split_at(digits);
    let all = Unit::names().chain(["time", "times"]);
    match nearest(unit, all) {
        _ if number.is_empty() => {
            error.hint(hint!("a command goes on the next line, or after a `;`"))
        }
        _ if unit.contains(|c: char| !c.is_ascii_alphabetic()) => error,
        Some(unit) => error.hint(hint!("did you mean `{number} {unit}`?")),
        None => error,
    }
}

fn expected_duration(span: Span) -> SyntaxError {
    SyntaxError::new(Slug::NotADuration, span, "expected a duration, like `5 minutes`")
}

fn unknown_unit(span: Span, unit: &str) -> SyntaxError {
    let error = SyntaxError::new(Slug::UnknownUnit, span, format!("unknown unit `{unit}`"))
        .label("expected `times`, `seconds`, `minutes`, `hours` or `days`");
    match nearest(unit, Unit::names().chain(["time", "times"])) {
        Some(meant) => error.hint(hint!("did you mean `{meant}`?")),
        None => error,
    }
}

fn not_positive(span: Span) -> SyntaxError {
    SyntaxError::new(Slug::ZeroDuration, span, "a duration must be longer than zero")
}

/// Refuses a literal number of times, or of branches, that is none.
pub(super) fn check_count(count: &Expr) -> Result<()> {
    let Some(text) = literal::expr(count) else { return Ok(()) };
    let (slug, message) = match text.parse::<i64>() {
        Ok(1..) => return Ok(()),
        Ok(_) => (Slug::OutOfRange, format!("`{text}` is too few: the least is 1")),
        Err(_) => (Slug::NotANumber, format!("expected a whole number, not `{text}`")),
    };
    let error = SyntaxError::new(slug, count.span, message);
    Err(Box::new(if text.bytes().all(|byte| byte.is_ascii_alphabetic()) && !text.is_empty() {
        error.hint(hint!("write it in digits, or `${text}` if it is a variable"))
    } else {
        error
    }))
}
