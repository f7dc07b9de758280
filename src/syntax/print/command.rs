//! Pipelines and commands.

use super::Printer;
use crate::syntax::ast::{Part, Pipeline, Simple, Word};

impl Printer {
    pub(super) fn pipeline(&mut self, pipeline: &Pipeline) {
        let mut stages = pipeline.stages.iter().peekable();
        while let Some(stage) = stages.next() {
            self.simple(&stage.command);
            if stages.peek().is_some() {
                self.text.push_str(if stage.pipe_errors { " |& " } else { " | " });
            }
        }
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
