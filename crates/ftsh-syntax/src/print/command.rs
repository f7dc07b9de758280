//! Pipelines and commands.

use super::{PrintTask, Printer};
use crate::ast::{Redirect, Simple, Stage, StageKind, Word, WordPart};
use crate::vocabulary::OPERATORS;

impl Printer {
    /// Prints stages up to the head of the first structure, and pushes the rest as tasks.
    pub(super) fn stages<'t>(&mut self, stages: &'t [Stage], tasks: &mut Vec<PrintTask<'t>>) {
        let mut stages = stages;
        while let [stage, rest @ ..] = stages {
            match &stage.kind {
                StageKind::Simple(simple) => self.simple(simple),
                StageKind::Structure(block) => {
                    if !rest.is_empty() {
                        tasks.push(PrintTask::Piped(stage.pipe_errors, rest));
                    }
                    return block.commands.iter().for_each(|it| self.structure(it, tasks));
                }
            }
            if !rest.is_empty() {
                self.pipe(stage.pipe_errors);
            }
            stages = rest;
        }
    }

    pub(super) fn pipe(&mut self, errors: bool) {
        self.text.push_str(if errors { " |& " } else { " | " });
    }

    fn simple(&mut self, simple: &Simple) {
        let (before, between, after) = arrange(simple);
        for redirect in before {
            self.redirect(redirect);
            self.text.push(' ');
        }
        for (name, word) in &simple.assignments {
            self.text.push_str(name);
            self.text.push('=');
            self.word(word);
            self.text.push(' ');
        }
        for redirect in between {
            self.redirect(redirect);
            self.text.push(' ');
        }
        for modifier in &simple.modifiers {
            self.text.push_str(&modifier.kind.to_string());
            self.text.push(' ');
        }
        for (at, word) in simple.words.iter().enumerate() {
            if at > 0 {
                self.text.push(' ');
            }
            self.word(word);
        }
        self.redirects(after);
    }
}

/// Splits the redirections of a command into three groups: before the assignments, before the
/// words, and at the end.
///
/// Redirections stand at the end, unless a command with assignments would parse differently.
/// `x='a'.add. b` begins a sum, but `> f x='a'.add. b` is a command. A parenthesis never follows an
/// assignment directly, and therefore one redirection of `x=a > f )b` stays between the two.
fn arrange(simple: &Simple) -> (&[Redirect], &[Redirect], &[Redirect]) {
    let redirects = &simple.redirects[..];
    let (Some((_, value)), Some(word)) = (simple.assignments.first(), simple.words.first()) else {
        return (&[], &[], redirects);
    };
    let is_separated = begins(word, |text| text.starts_with(['(', ')']));
    if begins(word, begins_operator) || contains_operator(value) {
        let separating = usize::from(is_separated).min(redirects.len());
        let (before, between) = redirects.split_at(redirects.len() - separating);
        (before, between, &[])
    } else if is_separated {
        (&[], redirects, &[])
    } else {
        (&[], &[], redirects)
    }
}

fn begins(word: &Word, fits: impl Fn(&str) -> bool) -> bool {
    matches!(word.parts.first(), Some(WordPart::Bare(text)) if fits(text))
}

/// Returns true if an expression can end inside the word: an operator follows a string or a joined
/// line.
fn contains_operator(word: &Word) -> bool {
    word.parts.windows(2).any(|parts| match parts {
        [WordPart::Single(_) | WordPart::Double(_) | WordPart::Bare(_), WordPart::Bare(text)] => {
            begins_operator(text)
        }
        _ => false,
    })
}

/// Returns true if the text is an operator up to its end or the first character that ends operands.
fn begins_operator(text: &str) -> bool {
    OPERATORS.contains(&text.split(['(', ')', ',']).next().unwrap_or_default())
}
