//! Parser of sizes in bytes: `4 GB`, `512MiB`.

use super::builder::Builder;
use super::{Pair, Result, Rule, literal};
use crate::ast::{Expr, ExprKind};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::nearest::nearest;
use crate::size::{self, ByteUnit, Size};
use crate::slug::Slug;
use crate::span::Span;

/// Label of errors about units.
const UNITS: &str = "expected `kB`, `MB`, `GB`, `KiB`, `MiB` or `GiB`";

impl Builder<'_> {
    /// Builds a `duration` of the grammar that is a size above zero.
    pub(super) fn size(&mut self, pair: Pair) -> Result<Size<Expr>> {
        let span = self.span(&pair);
        let mut inner = pair.into_inner();
        let amount = inner.next().expect("a size has an amount");
        let amount = self.expr(amount)?;
        let unit = inner.find(|pair| pair.as_rule() == Rule::unit);
        let unit = unit.map(|unit| named(self.span(&unit), unit.as_str())).transpose()?;
        if unit.is_none() && !matches!(amount.kind, ExprKind::Word(_)) {
            return Err(missing_unit(span.end, "a unit is missing".to_owned()).into());
        }
        let Some(text) = literal::expr(&amount) else { return Ok(Size { amount, unit }) };
        if unit.is_none() && literal::number(&text).is_some() {
            return Err(missing_unit(span.end, format!("`{text}` needs a unit")).into());
        }
        match size::bytes(&text, unit) {
            Some(0) => {
                Err(SyntaxError::new(Slug::OutOfRange, span, "a size must be above zero").into())
            }
            Some(_) => Ok(Size { amount, unit }),
            None => Err(not_a_size(amount.span, &text).into()),
        }
    }
}

fn named(span: Span, unit: &str) -> Result<ByteUnit> {
    ByteUnit::named(unit).ok_or_else(|| {
        let error = SyntaxError::new(Slug::UnknownUnit, span, format!("unknown unit `{unit}`"))
            .label(UNITS);
        Box::new(match meant(unit) {
            Some(meant) => error.hint(hint!("did you mean `{meant}`?")),
            None => error,
        })
    })
}

/// Returns the unit that a wrong spelling probably means: another case, a letter alone, or a slip.
fn meant(unit: &str) -> Option<&'static str> {
    let is_short = |name: &&str| {
        let short = name.trim_end_matches('B');
        unit.eq_ignore_ascii_case(name) || unit.eq_ignore_ascii_case(short)
    };
    ByteUnit::names().find(is_short).or_else(|| nearest(unit, ByteUnit::names()))
}

fn missing_unit(at: usize, message: String) -> SyntaxError {
    SyntaxError::new(Slug::MissingUnit, Span::new(at, at), message).label(UNITS)
}

fn not_a_size(span: Span, text: &str) -> SyntaxError {
    let error = SyntaxError::new(Slug::NotASize, span, "expected a size, like `4 GB`");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or_default();
    let (number, unit) = text.split_at(digits);
    match meant(unit) {
        Some(unit) if !number.is_empty() => error.hint(hint!("did you mean `{number} {unit}`?")),
        _ => error,
    }
}
