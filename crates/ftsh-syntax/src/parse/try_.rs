//! Builder of the head of a `try`, with limits and clauses in any order.

use super::builder::Builder;
use super::duration::TimeOrTimes;
use super::{Pair, Result, Rule, literal};
use crate::ast::{Expr, Try};
use crate::clauses::TryRow;
use crate::duration::parse_joined;
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::signal::{self, Signal};
use crate::slug::Slug;
use crate::span::Span;

impl Builder<'_> {
    pub(super) fn try_head(&mut self, pair: Pair) -> Result<Try> {
        let mut head = Try::default();
        let mut given: Vec<(&'static str, Span)> = Vec::new();
        for pair in pair.into_inner() {
            let span = self.span(&pair);
            let clause = self.clause(&mut head, pair)?;
            if let Some((_, first)) = given.iter().find(|(before, _)| *before == clause) {
                let error = SyntaxError::new(
                    Slug::DuplicateClause,
                    span,
                    format!("{clause} is given twice"),
                )
                .related(*first, "first given here");
                let is_delay = clause == "the time limit"
                    && given.last().is_some_and(|(before, _)| *before == "`backoff`");
                return Err(Box::new(if is_delay {
                    error.hint(hint!(
                        "a policy's delays begin with `from`: `backoff fixed from 100 ms`"
                    ))
                } else if let Some(joined) = self.joined(*first, span) {
                    error.hint(hint!("write one length of time: `{joined}`"))
                } else {
                    error
                }));
            }
            given.push((clause, span));
        }
        let place = |name: &str| given.iter().find(|(clause, _)| *clause == name).map(|it| it.1);
        if let (Some(every), Some(backoff)) = (place("`every`"), place("`backoff`")) {
            let (first, second) =
                if every.start < backoff.start { (every, backoff) } else { (backoff, every) };
            return Err(Box::new(
                SyntaxError::new(
                    Slug::ConflictingClauses,
                    second,
                    "`every` and `backoff` can't be combined",
                )
                .related(first, "the other one is here")
                .hint(hint!(
                    "`every` sets the time between the starts of attempts, `backoff` the delay between attempts"
                )),
            ));
        }
        Ok(head)
    }

    /// Returns the length of time `1h30m` for the limit `for 1 hour` with `30 minutes` behind it.
    fn joined(&self, first: Span, second: Span) -> Option<String> {
        let is_next = self.text.get(first.end..second.start)?.trim().is_empty();
        let mut joined = String::new();
        for span in [first, second] {
            let text = self.text.get(span.start..span.end)?.trim();
            let text = text.strip_prefix("for ").unwrap_or(text);
            let (amount, unit) = text.split_once(' ')?;
            joined.push_str(amount);
            joined.push_str(unit.trim().get(..1)?);
        }
        (is_next && parse_joined(&joined).is_some()).then_some(joined)
    }

    /// Builds the head of a `limit`: a `try` of one attempt within a time limit, which may watch
    /// its processes as well.
    pub(super) fn limit_head(&mut self, pair: Pair) -> Result<Try> {
        let mut inner = pair.into_inner();
        let duration = inner.next().expect("`limit` is followed by a duration");
        let mut head = Try::once(self.span(&duration).end);
        head.clauses.time = Some(self.duration(duration)?);
        let mut given = Vec::new();
        for pair in inner {
            let span = self.span(&pair);
            let clause = self.clause(&mut head, pair)?;
            if given.contains(&clause) {
                let message = format!("{clause} is given twice");
                return Err(SyntaxError::new(Slug::DuplicateClause, span, message).into());
            }
            given.push(clause);
        }
        Ok(head)
    }

    /// Builds the name of a signal, and checks a literal name.
    fn signal(&mut self, pair: Pair) -> Result<Expr> {
        let span = self.span(&pair);
        let Some(name) = pair.into_inner().next() else {
            let error = SyntaxError::new(
                Slug::MissingValue,
                span,
                "expected the name of a signal after `signal`",
            );
            return Err(error.hint(hint!("like `signal INT`")).into());
        };
        let name = self.expr(name)?;
        match literal::expr(&name) {
            Some(text) if Signal::named(&text).is_none() => {
                let error =
                    SyntaxError::new(Slug::UnknownSignal, name.span, signal::unknown(&text));
                Err(error.hint(signal::unknown_hint(&text)).into())
            }
            _ => Ok(name),
        }
    }

    /// Adds one clause to the head, and returns its name.
    fn clause(&mut self, head: &mut Try, pair: Pair) -> Result<&'static str> {
        let structure = if head.is_limit { "limit" } else { "try" };
        let row = match pair.as_rule() {
            // A limit such as `5 times` may begin without a word.
            Rule::limit => TryRow::For,
            _ => TryRow::of(structure, pair.as_str()).expect("a clause has a row"),
        };
        let clauses = &mut head.clauses;
        Ok(match row {
            TryRow::For | TryRow::Or => match self.limit(value(pair))? {
                TimeOrTimes::Time(duration) => {
                    clauses.time = Some(duration);
                    "the time limit"
                }
                TimeOrTimes::Times(times) => {
                    clauses.times = Some(times);
                    "the number of times"
                }
            },
            TryRow::Every => {
                clauses.every = Some(self.interval(value(pair))?);
                "`every`"
            }
            TryRow::Each => {
                let (each, usual) = self.usual_time(value(pair), "each")?;
                (clauses.each, head.usual) = (Some(each), usual);
                "`each`"
            }
            TryRow::Stalled | TryRow::LimitStalled => {
                clauses.stalled = Some(self.duration(value(pair))?);
                "`stalled`"
            }
            TryRow::Memory | TryRow::LimitMemory => {
                clauses.memory = Some(self.size(value(pair))?);
                "`memory`"
            }
            TryRow::While => {
                head.condition = Some(self.expr(value(pair))?);
                "`while`"
            }
            TryRow::AtomicIn => {
                head.atomic_in = self.atomic_in(pair)?;
                clauses.atomic = true;
                "`atomic`"
            }
            TryRow::Atomic => {
                clauses.atomic = true;
                "`atomic`"
            }
            TryRow::SameInput => {
                clauses.same_input = true;
                "`same input`"
            }
            TryRow::NoLeftovers | TryRow::LimitNoLeftovers => {
                clauses.no_leftovers = true;
                "`no leftovers`"
            }
            TryRow::Signal | TryRow::LimitSignal => {
                clauses.signal = Some(self.signal(pair)?);
                "`signal`"
            }
            TryRow::Backoff => {
                clauses.backoff = Some(self.backoff(pair)?);
                "`backoff`"
            }
            TryRow::Through => {
                head.through = Some(self.through(pair)?);
                "`through`"
            }
        })
    }
}

/// Returns the value at the end of a clause.
fn value(clause: Pair) -> Pair {
    clause.into_inner().last().expect("a clause ends with its value")
}
