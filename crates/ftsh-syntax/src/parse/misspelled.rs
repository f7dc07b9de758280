//! Misplaced and misspelled heads of structures, and heads of other languages, which show by an `end`
//! too many.

use super::literal;
use crate::ast::CommandKind;
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::nearest::nearest;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{FOREIGN_HEADS, HEADS};

/// Creates the error for a structure in place of a command, as inside of `.succeeds.`.
pub(super) fn structure_in_succeeds(span: Span, head: &str) -> SyntaxError {
    SyntaxError::new(
        Slug::StructureAsCondition,
        span,
        format!("a command is expected here, and no `{head}`"),
    )
    .hint(hint!("put the structure into a function, and call the function"))
}

/// Returns the head meant by the first word of a command.
pub(super) fn intended_head(word: &str) -> Option<&'static str> {
    if HEADS.contains(&word) {
        return None;
    }
    let foreign = FOREIGN_HEADS.iter().find(|(foreign, _)| *foreign == word).map(|it| it.1);
    // Words of two letters are near to nearly every head.
    foreign.or_else(|| nearest(word, HEADS).filter(|_| word.len() > 2))
}

/// Returns the part of a structure that a word alone on its line was meant to be.
///
/// Letters are swapped, missing or doubled. Other letters make other words: `watch`, `patch`.
pub(super) fn intended_part(word: &str) -> Option<&'static str> {
    const PARTS: [&str; 4] = ["catch", "else", "end", "finally"];
    let sorted = |text: &str| {
        let mut letters: Vec<_> = text.bytes().collect();
        letters.sort_unstable();
        letters
    };
    PARTS.into_iter().find(|part| {
        let is_near = strsim::osa_distance(part, word) == 1;
        let is_swapped = sorted(part) == sorted(word);
        let is_longer = part.len() > 3 && part.len() != word.len();
        *part != word && (is_swapped || is_near && is_longer)
    })
}

/// Maximum length of a word that can be a misspelled head.
const MAX_WORD_LENGTH: usize = 12;

/// First words of commands, in order, as candidates for misspelled heads.
///
/// Each candidate is examined once at most. Many misplaced lines therefore cost no more than a few.
#[derive(Default)]
pub(super) struct Candidates(Vec<(String, Span)>);

impl Candidates {
    /// Adds the first word of a command.
    pub(super) fn add(&mut self, command: &CommandKind) {
        if let CommandKind::Pipeline(pipeline) = command
            && let [stage] = &pipeline.stages[..]
            && let Some(word) = stage.simple().and_then(|simple| simple.words.first())
            && let Some(name) = literal::bare(word).filter(|name| name.len() <= MAX_WORD_LENGTH)
        {
            self.0.push((name.to_owned(), word.span));
        }
    }

    /// Returns the number of candidates, which is the position of the next one.
    pub(super) fn end(&self) -> usize {
        self.0.len()
    }

    /// Removes and returns the last candidate from `start` on that was meant to be a head: word,
    /// span and head.
    ///
    /// The candidate may be inside a structure whose `end` was meant for the candidate.
    pub(super) fn take_last(&mut self, start: usize) -> Option<(String, Span, &'static str)> {
        while self.0.len() > start {
            let (name, span) = self.0.pop()?;
            #[cfg(test)]
            EXAMINED.set(EXAMINED.get() + 1);
            if let Some(meant) = intended_head(&name) {
                return Some((name, span, meant));
            }
        }
        None
    }
}

#[cfg(test)]
thread_local! {
    /// Number of examined candidates.
    pub(super) static EXAMINED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
