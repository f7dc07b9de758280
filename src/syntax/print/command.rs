//! Pipelines and commands.

use super::Printer;
use crate::syntax::ast::Pipeline;

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

    fn simple(&mut self, simple: &crate::syntax::ast::Simple) {
        for (name, word) in &simple.assignments {
            self.text.push_str(name);
            self.text.push('=');
            self.word(word);
            self.text.push(' ');
        }
        for (at, word) in simple.words.iter().enumerate() {
            if at > 0 {
                self.text.push(' ');
            }
            self.word(word);
        }
        self.redirects(&simple.redirects);
    }
}
