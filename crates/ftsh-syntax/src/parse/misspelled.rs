//! Heads of structures that are none, because they are misspelled or another language's: their
//! `end` is what shows.

use super::literal;
use crate::ast::CommandKind;
use crate::nearest::nearest;
use crate::span::Span;
use crate::vocabulary::{FOREIGN_HEADS, HEADS};

/// The head that a command's first word was meant to be.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    if HEADS.contains(&word) {
        return None;
    }
    let foreign = FOREIGN_HEADS.iter().find(|(foreign, _)| *foreign == word).map(|it| it.1);
    // Of two letters nearly every word is near.
    foreign.or_else(|| nearest(word, HEADS).filter(|_| word.len() > 2))
}

/// Longer words than this are like no head.
const LONGEST: usize = 12;

/// The first words of commands, in their order: some may have been meant to be heads. Each is looked
/// at once, when a line is out of place, so that many such lines take no longer than few.
#[derive(Default)]
pub(super) struct Candidates(Vec<(String, Span)>);

impl Candidates {
    /// Takes note of a command.
    pub(super) fn add(&mut self, command: &CommandKind) {
        if let CommandKind::Pipeline(pipeline) = command
            && let [stage] = &pipeline.stages[..]
            && let Some(word) = stage.simple().and_then(|simple| simple.words.first())
            && let Some(name) = literal::bare(word).filter(|name| name.len() <= LONGEST)
        {
            self.0.push((name.to_owned(), word.span));
        }
    }

    /// Where the commands begin that are still to come.
    pub(super) fn end(&self) -> usize {
        self.0.len()
    }

    /// The last of the commands from `start` on that was meant to be a head, once: its word, where it
    /// stands, and what was meant. It may be inside a structure that took its `end` for its own.
    pub(super) fn take_last(&mut self, start: usize) -> Option<(String, Span, &'static str)> {
        while self.0.len() > start {
            let (name, span) = self.0.pop()?;
            #[cfg(test)]
            LOOKS.set(LOOKS.get() + 1);
            if let Some(meant) = meant(&name) {
                return Some((name, span, meant));
            }
        }
        None
    }
}

#[cfg(test)]
thread_local! {
    /// How many candidates were looked at.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
