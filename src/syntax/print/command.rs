//! Pipelines and commands.

use super::{Printer, Task};
use crate::syntax::ast::{Part, Simple, Stage, StageKind, Word};

impl Printer {
    /// Prints stages up to the head of the first structure among them, and notes what follows.
    pub(super) fn stages<'t>(&mut self, stages: &'t [Stage], tasks: &mut Vec<Task<'t>>) {
        let mut stages = stages;
        while let [stage, rest @ ..] = stages {
            match &stage.kind {
                StageKind::Simple(simple) => self.simple(simple),
                StageKind::Structure(block) => {
                    if !rest.is_empty() {
                        tasks.push(Task::Piped(stage.pipe_errors, rest));
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
        for (name, word) in &simple.assignments {
            self.text.push_str(name);
            self.text.push('=');
            self.word(word);
            self.text.push(' ');
        }
        // `a=1 > f .add. 2` is a command, strange as it is; `a=1 .add. 2 > f` would be a sum.
        let redirects_first =
            !simple.assignments.is_empty() && simple.words.iter().any(looks_like_sum);
        if redirects_first {
            for redirect in &simple.redirects {
                self.redirect(redirect);
                self.text.push(' ');
            }
        }
        for (at, word) in simple.words.iter().enumerate() {
            if at > 0 {
                self.text.push(' ');
            }
            self.word(word);
        }
        if !redirects_first {
            self.redirects(&simple.redirects);
        }
    }
}

/// Whether a word begins like an operator or a parenthesis.
fn looks_like_sum(word: &Word) -> bool {
    matches!(word.parts.first(), Some(Part::Bare(text)) if text.starts_with(['.', '(', ')']))
}
