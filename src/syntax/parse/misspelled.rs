//! Heads of structures that are none, because they are misspelled or another language's: their
//! `end` is what shows.

use super::literal;
use crate::nearest::nearest;
use crate::syntax::ast::{Block, Command, CommandKind};
use crate::syntax::span::Span;
use crate::syntax::vocabulary::{FOREIGN_HEADS, HEADS};

/// The head that a command's first word was meant to be.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    if HEADS.contains(&word) {
        return None;
    }
    let foreign = FOREIGN_HEADS.iter().find(|(foreign, _)| *foreign == word).map(|it| it.1);
    // Of two letters nearly every word is near.
    foreign.or_else(|| nearest(word, HEADS).filter(|_| word.len() > 2))
}

/// The last of the commands that was meant to be a head, and was not blamed before: its word,
/// where it stands, and what was meant.
pub(super) fn last_head<'c>(
    commands: &'c [Command],
    blamed: &[Span],
) -> Option<(&'c str, Span, &'static str)> {
    commands.iter().rev().find_map(|command| {
        let bodies: Vec<&Block> = match &command.kind {
            CommandKind::Pipeline(pipeline) => {
                let [stage] = &pipeline.stages[..] else { return None };
                let word = stage.command.words.first()?;
                let name = literal::bare(word)?;
                let meant = meant(name).filter(|_| !blamed.contains(&word.span))?;
                return Some((name, word.span, meant));
            }
            // Inside a structure that took the `end` of such a head for its own.
            CommandKind::If { arms, otherwise } => {
                arms.iter().map(|(_, body)| body).chain(otherwise).collect()
            }
            CommandKind::While { body, .. } | CommandKind::Function { body, .. } => vec![body],
            CommandKind::For(head) => vec![&head.body],
            CommandKind::Try(head) => {
                std::iter::once(&head.body).chain(head.catch.as_ref().map(|it| &it.1)).collect()
            }
            _ => Vec::new(),
        };
        bodies.into_iter().rev().find_map(|body| last_head(&body.commands, blamed))
    })
}
