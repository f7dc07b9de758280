//! Builder of the directories of `atomic in`.

use super::builder::Builder;
use super::{Pair, Result, bashisms, literal};
use crate::ast::{Expr, Unit};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;

impl Builder<'_> {
    /// Builds the directories of an `atomic in` clause, at least one.
    pub(super) fn atomic_in(&mut self, pair: Pair) -> Result<Vec<Expr>> {
        let span = self.span(&pair);
        let words = pair.into_inner().map(|word| self.expr(word)).collect::<Result<Vec<_>>>()?;
        if words.is_empty() {
            let message = "expected directories after `atomic in`";
            return Err(SyntaxError::new(Slug::MissingValue, span, message)
                .hint(hint!("like `atomic in .`; a directory called like a clause needs quotes"))
                .into());
        }
        for pair in words.windows(2) {
            let [amount, unit] = pair else { continue };
            let text = literal::expr(unit).unwrap_or_default();
            let is_unit = matches!(&*text, "time" | "times") || Unit::named(&text).is_some();
            if is_unit && literal::expr(amount).is_some_and(|it| literal::number(&it).is_some()) {
                let message = "a limit comes before `atomic in`, whose words are directories";
                return Err(SyntaxError::new(Slug::MisplacedClause, amount.span, message)
                    .hint(hint!("like `try 3 times atomic in .`"))
                    .into());
            }
        }
        bashisms::list(&words, "atomic in")?;
        Ok(words)
    }
}
