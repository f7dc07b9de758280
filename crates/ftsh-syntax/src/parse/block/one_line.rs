//! Structures around one command, on one line: `try 3 times -- command`.

use super::super::line::EndLine;
use super::super::structure::Structure;
use super::{Blocks, LineLayout};
use crate::ast::{
    Block, Command, CommandKind, ForKind, Mode, Parameter, Pipeline, Redirect, Stage, StageKind,
};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::parse::literal;
use crate::slug::Slug;
use crate::span::Span;
use crate::walk;

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
            if let Some((wrong, name)) =
                redirects.iter().find_map(|it| Some((it.span, inner(it, &frame.structure)?)))
            {
                let keyword = frame.structure.keyword();
                let message = format!(
                    "the redirection is that of the whole `{keyword}`, outside of `${name}`"
                );
                self.errors.push(
                    SyntaxError::new(Slug::Unexpected, wrong, message)
                        .hint(hint!("write the `{keyword}` on lines of its own, up to an `end`")),
                );
            }
            self.end(EndLine { redirects, after: None }, layout);
            if let Some(command) = self.commands().last_mut() {
                command.one_line = true;
            }
        }
    }
}

/// Returns the first variable in the target of a redirection that has its value only inside of a
/// structure.
fn inner(redirect: &Redirect, structure: &Structure) -> Option<String> {
    let is_inner = |name: &str| match structure {
        Structure::For(head) => {
            *name == *head.variable || matches!(head.kind, ForKind::All(_)) && name == "slot"
        }
        Structure::Try(head) => {
            !head.is_limit && matches!(name, "attempt" | "elapsed" | "remaining")
        }
        _ => false,
    };
    // A command with only the redirection, so that the walk also reaches a `$(…)`.
    let nothing = CommandKind::Comment { text: String::new(), trailing: false };
    let command =
        Command { redirects: vec![redirect.clone()], ..Command::plain(redirect.span, nothing) };
    let mut found = None;
    walk::each(&Block { commands: vec![command] }, &mut |command| {
        for word in walk::words(command) {
            walk::variables(&word.parts, &mut |variable, _| match &variable.parameter {
                Parameter::Named(name) if is_inner(name) => found = Some(name.to_string()),
                _ => {}
            });
        }
    });
    found
}

/// Returns the error for a `--` that no single command follows, or without a structure before it.
pub(super) fn no_command(span: Span) -> SyntaxError {
    let message = "`--` belongs between the head of a structure and one command";
    let error = SyntaxError::new(Slug::Unexpected, span, message);
    error.hint(possible())
}

/// Returns the hint for a `--` that is not one of a structure.
pub(super) fn possible() -> Hint {
    hint!("`try 3 times -- curl $url` needs no `end`; other structures have lines of their own")
}

/// Returns true if a `--` is among the words of the command in the head of another structure.
pub(super) fn has_dashes(structure: &Structure) -> bool {
    let head = match structure {
        Structure::While(condition) | Structure::If { condition: Some(condition), .. } => {
            Command::plain(condition.span, CommandKind::Return(Some(condition.clone())))
        }
        Structure::With(companion) => companion.commands[0].clone(),
        _ => return false,
    };
    walk::words(&head).into_iter().any(|word| literal::bare(word) == Some("--"))
}

/// Returns the error for a structure on one line behind a `|`.
pub(super) fn stage(span: Span) -> SyntaxError {
    let message = "a structure on one line is not a stage of a pipeline";
    let error = SyntaxError::new(Slug::PipelineStage, span, message);
    error.hint(hint!("write the body on lines of its own, up to `end`"))
}
