//! Builder of the files after `takes` and `gives`.

use std::collections::BTreeSet;

use super::builder::Builder;
use super::{Pair, Result, bashisms, literal};
use crate::ast::{Expr, ExprKind, WordPart};
use crate::branch_files::{absolute, is_in, relative};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;

impl Builder<'_> {
    /// Builds the files of a `takes` or `gives` clause, at least one.
    pub(super) fn files(&mut self, pair: Pair, clause: &str) -> Result<Vec<Expr>> {
        let span = self.span(&pair);
        let words = pair.into_inner().map(|word| self.expr(word)).collect::<Result<Vec<_>>>()?;
        if words.is_empty() {
            let message = format!("expected files after `{clause}`");
            return Err(SyntaxError::new(Slug::MissingValue, span, message)
                .hint(hint!("like `{clause} \"$x\"`; as an item, `{clause}` has quotes"))
                .into());
        }
        bashisms::list(&words, clause)?;
        for word in &words {
            let Some(text) = literal::expr(word) else { continue };
            let is_home = text.starts_with('~') && has_bare(word, &['~']);
            let name = if is_home { Err(absolute(&text)) } else { relative(text.as_bytes()) };
            if let Err(why) = name {
                return Err(SyntaxError::new(Slug::BranchFile, word.span, why).into());
            }
        }
        Ok(words)
    }
}

/// Refuses patterns among the files of `gives`, and files that more than one branch can give.
pub(super) fn check_given(words: &[Expr], list: Option<&[Expr]>) -> Result<()> {
    const WILDCARDS: [char; 3] = ['*', '?', '['];
    let is_one = matches!(list, Some([item]) if literal::expr(item).is_some() && !has_bare(item, &WILDCARDS));
    let mut given = BTreeSet::new();
    for word in words {
        let refuse = |message| SyntaxError::new(Slug::BranchFile, word.span, message);
        if has_bare(word, &WILDCARDS) {
            let message = "`gives` takes names, because a pattern finds only files that exist";
            return Err(refuse(message.into()).hint(hint!("name a directory: `gives out`")).into());
        }
        let Some(text) = literal::expr(word) else { continue };
        let Ok(name) = relative(text.as_bytes()) else { continue };
        if is_in(&given, &name) {
            return Err(refuse(format!("`{text}` is given twice")).into());
        }
        if !is_one {
            let error = refuse(format!("each branch gives `{text}`"));
            return Err(error
                .hint(hint!("write the item in the name: `forall x in … gives \"$x.out\"`"))
                .into());
        }
        given.insert(name);
    }
    Ok(())
}

/// Returns true if a word has one of the characters outside of quotes.
fn has_bare(word: &Expr, wanted: &[char]) -> bool {
    let is = |part: &WordPart| matches!(part, WordPart::Bare(bare) if bare.contains(wanted));
    matches!(&word.kind, ExprKind::Word(word) if word.parts.iter().any(is))
}
