//! `backoff NAME [from D] [to D] [by F] [jitter P%]`.

use super::builder::Builder;
use super::{Pair, Result, literal};
use crate::ast::{BackoffClause, Duration, Expr, ExprKind, WordPart};
use crate::backoff::{Clause, Clauses, PolicyError, PolicyKind};
use crate::clauses::BackoffRow;
use crate::error::SyntaxError;
use crate::slug::Slug;
use crate::span::Span;

impl Builder<'_> {
    pub(super) fn backoff(&mut self, pair: Pair) -> Result<BackoffClause> {
        let span = self.span(&pair);
        let mut inner = pair.into_inner();
        let policy = inner.next().expect("`backoff` is followed by a name");
        let kind = PolicyKind::named(policy.as_str()).ok_or_else(|| {
            let name = policy.as_str().to_owned();
            refused(self.span(&policy), &PolicyError::UnknownPolicy(name))
        })?;
        let mut clause = BackoffClause { span, kind, clauses: Clauses::default() };
        let clauses = &mut clause.clauses;
        for pair in inner {
            let span = self.span(&pair);
            let row = BackoffRow::of("try", pair.as_str()).expect("a clause has a row");
            let setting = match row {
                BackoffRow::From => Clause::From,
                BackoffRow::To => Clause::To,
                BackoffRow::By => Clause::By,
                BackoffRow::Jitter => Clause::Jitter,
            };
            if !kind.takes(setting) {
                return Err(refused(span, &PolicyError::NotTaken { kind, clause: setting }).into());
            }
            let twice = match setting {
                Clause::From => clauses.from.replace(self.setting(pair)?).is_some(),
                Clause::To => clauses.to.replace(self.setting(pair)?).is_some(),
                Clause::By => clauses.by.replace(self.factor(pair)?).is_some(),
                Clause::Jitter => clauses.jitter.replace(self.jitter(pair)?).is_some(),
            };
            if twice {
                return Err(refused(span, &PolicyError::Twice(setting)).into());
            }
        }
        check_order(&clause.clauses)?;
        Ok(clause)
    }

    fn setting(&mut self, pair: Pair) -> Result<Duration> {
        self.duration(pair.into_inner().next().expect("`from` and `to` hold a duration"))
    }

    fn factor(&mut self, pair: Pair) -> Result<Expr> {
        let factor = self.expr(pair.into_inner().next().expect("`by` holds an expression"))?;
        let (slug, message) = match literal::expr(&factor) {
            None => return Ok(factor),
            Some(text) => match literal::number(&text) {
                Some(number) if number >= 1.0 => return Ok(factor),
                Some(number) => (Slug::OutOfRange, PolicyError::Factor(number).to_string()),
                None => (Slug::NotANumber, format!("`{text}` is not a number")),
            },
        };
        Err(Box::new(
            SyntaxError::new(slug, factor.span, message).label("expected a factor, like `2`"),
        ))
    }

    fn jitter(&mut self, pair: Pair) -> Result<Expr> {
        let span = self.span(&pair);
        let mut inner = pair.into_inner();
        let percentage = inner.next().expect("`jitter` holds an expression");
        let mut percentage = self.expr(percentage)?;
        let refuse = |slug, span, message: String| {
            Err(Box::new(
                SyntaxError::new(slug, span, message).label("expected a percentage, like `10%`"),
            ))
        };
        if inner.next().is_none() && !strip_percent(&mut percentage) {
            return refuse(
                Slug::MissingPercent,
                span,
                "a `%` is missing after `jitter`".to_owned(),
            );
        }
        match literal::expr(&percentage) {
            None => Ok(percentage),
            Some(text) => match literal::number(&text) {
                Some(number) if (0.0..=100.0).contains(&number) => Ok(percentage),
                Some(number) => {
                    let message = PolicyError::Jitter(number / 100.0).to_string();
                    refuse(Slug::OutOfRange, percentage.span, message)
                }
                None => {
                    refuse(Slug::NotANumber, percentage.span, format!("`{text}` is not a number"))
                }
            },
        }
    }
}

/// Removes the `%` from the end of a word such as `10%` or `$p%`. Returns false if there is none.
pub(super) fn strip_percent(percentage: &mut Expr) -> bool {
    let ExprKind::Word(word) = &mut percentage.kind else { return false };
    let Some(WordPart::Bare(text)) = word.parts.last_mut() else { return false };
    if !text.ends_with('%') {
        return false;
    }
    text.pop();
    if text.is_empty() {
        word.parts.pop();
    }
    !word.parts.is_empty()
}

/// Refuses `from` above `to`. A missing value needs no check, because its default is adjusted.
fn check_order(clauses: &Clauses<Duration, Expr>) -> Result<()> {
    let (Some(from), Some(to)) = (&clauses.from, &clauses.to) else { return Ok(()) };
    match (from.literal(), to.literal()) {
        (Some(shortest), Some(longest)) if shortest > longest => {
            let error = SyntaxError::new(
                Slug::ConflictingClauses,
                from.span(),
                "`from` is longer than `to`",
            );
            Err(Box::new(error.related(to.span(), "`to` is here")))
        }
        _ => Ok(()),
    }
}

fn refused(span: Span, error: &PolicyError) -> SyntaxError {
    let refused = SyntaxError::new(error.slug(), span, error.to_string());
    match error.hint() {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}
