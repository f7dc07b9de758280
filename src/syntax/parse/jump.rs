//! `break`, `continue` and their like that can't get where they lead.

use crate::syntax::ast::{Block, Command, CommandKind, ForKind, Jump};
use crate::syntax::error::SyntaxError;
use crate::syntax::span::Span;

/// What stands around a command, within its function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// `for`, `while`
    Loop,
    /// `forany`
    Any,
    /// What runs as a task of its own, and is left by nothing inside.
    Task(&'static str),
}

/// The jumps of a script that lead nowhere.
pub(super) fn astray(script: &[Command]) -> Vec<SyntaxError> {
    let mut walk = Walk { around: Vec::new(), errors: Vec::new() };
    walk.commands(script);
    walk.errors
}

struct Walk {
    around: Vec<Around>,
    errors: Vec<SyntaxError>,
}

impl Walk {
    fn commands(&mut self, commands: &[Command]) {
        for command in commands {
            self.command(command);
        }
    }

    fn inside(&mut self, around: Around, block: &Block) {
        self.around.push(around);
        self.commands(&block.commands);
        self.around.pop();
    }

    fn command(&mut self, command: &Command) {
        match &command.kind {
            CommandKind::Jump(jump) => self.jump(*jump, command.span),
            CommandKind::Comment { .. }
            | CommandKind::Pipeline(_)
            | CommandKind::Assign { .. }
            | CommandKind::Return(_)
            | CommandKind::Shift(_) => {}
            CommandKind::If { arms, otherwise } => {
                for block in arms.iter().map(|(_, body)| body).chain(otherwise) {
                    self.commands(&block.commands);
                }
            }
            CommandKind::While { body, .. } => self.inside(Around::Loop, body),
            CommandKind::For(details) => {
                let around = match &details.kind {
                    ForKind::Each => Around::Loop,
                    ForKind::Any(_) => Around::Any,
                    ForKind::All(_) => Around::Task("a branch of `forall`"),
                };
                self.inside(around, &details.body);
            }
            CommandKind::Try(details) => {
                self.commands(&details.body.commands);
                if let Some((_, catch)) = &details.catch {
                    self.commands(&catch.commands);
                }
            }
            CommandKind::Function { body, .. } => {
                let around = std::mem::take(&mut self.around);
                self.commands(&body.commands);
                self.around = around;
            }
        }
    }

    fn jump(&mut self, jump: Jump, span: Span) {
        let keyword = jump.keyword();
        let (message, hint) = match (self.around.last(), jump) {
            (Some(Around::Loop), _) | (Some(Around::Any), Jump::Break) => return,
            (Some(Around::Any), Jump::Continue) => (
                "`forany` takes no `continue`".to_owned(),
                "`failure` goes on with the next word, and `break` succeeds with this one",
            ),
            (Some(Around::Task(what)), _) => (
                format!("`{keyword}` can't leave {what}"),
                "what runs at once with others ends itself: by its end, a failure, or `exit`",
            ),
            (None, _) => (
                format!("`{keyword}` stands outside of a loop"),
                "it is about the innermost `for` or `while` of the same function; \
                 `return` leaves a function",
            ),
        };
        self.errors.push(SyntaxError::new(span, message).hint(hint));
    }
}
