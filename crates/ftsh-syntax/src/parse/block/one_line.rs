//! Structures around one command, on one line: `try 3 times -- command`.

use super::super::line::EndLine;
use super::super::structure::Structure;
use super::{Blocks, LineLayout};
use crate::ast::{
    CommandKind, Mode, Name, Parameter, Pipeline, Quoted, Redirect, Stage, StageKind, VariableUse,
    WordPart,
};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;

impl Blocks {
    /// Returns true after the `--` of a structure on one line.
    pub(super) fn awaits_command(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.one_line)
    }

    /// Forgets the structures on a line without their command.
    pub(super) fn drop_lines(&mut self) {
        while self.awaits_command() {
            self.frames.pop();
        }
    }

    /// Ends the structures on a line at their command. The redirections of a single command's
    /// output are those of the structure.
    pub(super) fn end_lines(&mut self, layout: LineLayout) {
        while self.awaits_command() {
            let Some(frame) = self.frames.last_mut() else { return };
            let looped = match &frame.structure {
                Structure::For(head) => Some(Name::clone(&head.variable)),
                _ => None,
            };
            let mut redirects = Vec::new();
            if let Some(command) = frame.parts.body.commands.last_mut() {
                let own = match &mut command.kind {
                    CommandKind::Pipeline(Pipeline { stages }) => match &mut stages[..] {
                        [Stage { kind: StageKind::Simple(simple), .. }] => &mut simple.redirects,
                        _ => &mut command.redirects,
                    },
                    _ => &mut command.redirects,
                };
                // Each attempt and each pass of a loop reads a file from the beginning.
                let repeats = !matches!(frame.structure, Structure::In(_));
                let stays = |it: &Redirect| repeats && it.mode == Mode::Read;
                (*own, redirects) = std::mem::take(own).into_iter().partition(stays);
            }
            let uses = |it: &&Redirect| looped.as_ref().is_some_and(|name| reads(it, name));
            if let (Some(wrong), Some(name)) = (redirects.iter().find(uses), &looped) {
                let message =
                    format!("the redirection is that of the whole loop, outside of `${name}`");
                let error = SyntaxError::new(Slug::Unexpected, wrong.span, message);
                self.errors
                    .push(error.hint(hint!("write the loop on lines of its own, up to an `end`")));
            }
            self.end(EndLine { redirects, after: None }, layout);
            if let Some(command) = self.commands().last_mut() {
                command.one_line = true;
            }
        }
    }
}

/// Returns true if the target of a redirection reads a variable.
fn reads(redirect: &Redirect, name: &str) -> bool {
    let is_it = |variable: &VariableUse| matches!(&variable.parameter, Parameter::Named(named) if **named == *name);
    redirect.word().is_some_and(|word| {
        word.parts.iter().any(|part| match part {
            WordPart::Variable(variable) => is_it(variable),
            WordPart::Double(parts) => parts
                .iter()
                .any(|part| matches!(part, Quoted::Variable(variable) if is_it(variable))),
            _ => false,
        })
    })
}

/// Returns the error for a `--` that no single command follows, or without a structure before it.
pub(super) fn no_command(span: Span) -> SyntaxError {
    let message = "`--` belongs between the head of a structure and one command";
    let error = SyntaxError::new(Slug::Unexpected, span, message);
    error.hint(hint!(
        "`try 3 times -- curl $url` needs no `end`; other structures have lines of their own"
    ))
}

/// Returns the error for a structure on one line behind a `|`.
pub(super) fn stage(span: Span) -> SyntaxError {
    let message = "a structure on one line is not a stage of a pipeline";
    let error = SyntaxError::new(Slug::PipelineStage, span, message);
    error.hint(hint!("write the body on lines of its own, up to `end`"))
}
