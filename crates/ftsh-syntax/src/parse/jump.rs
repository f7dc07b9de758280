//! `break`, `continue` and their like that can't get where they lead.

use std::collections::{HashMap, HashSet};

use super::literal::bare;
use crate::ast::{Block, Command, CommandKind, ForKind, Jump, Name, Pipeline, Stage};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::slug::Slug;
use crate::span::Span;

/// What stands around a command, within its function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// `for`, `while`
    Loop,
    /// `forany`
    Any,
    /// `finally`, which nothing may leave.
    Finally,
    /// What runs as a task of its own, and is left by nothing inside.
    Task(&'static str),
}

/// A stage that is a structure; `return` can't leave it either, for it would look as if it left the
/// function around.
const STAGE: Around = Around::Task("a stage of a pipeline");
/// Says how a task comes to its end.
pub(super) fn ends() -> Hint {
    hint!("what runs at once with others ends itself: by its end, a failure, or `exit`")
}

/// The jumps of a script that lead nowhere; `functions` are those that it defines.
pub(super) fn astray(script: &[Command], functions: &HashMap<Name, Span>) -> Vec<SyntaxError> {
    let functions = functions.keys().map(|name| &**name).collect();
    let mut walk = Walk { functions, around: Vec::new(), atomic: false, errors: Vec::new() };
    walk.commands(script);
    walk.errors
}

fn leaves_finally(keyword: &str, span: Span) -> SyntaxError {
    SyntaxError::new(Slug::LeavesFinally, span, format!("`{keyword}` can't leave a `finally`"))
        .hint(hint!(
            "it comes to its end, or fails; where the script goes on then was decided before it"
        ))
}

struct Walk<'f> {
    functions: HashSet<&'f str>,
    around: Vec<Around>,
    /// Whether it is in an atomic attempt.
    atomic: bool,
    errors: Vec<SyntaxError>,
}

impl Walk<'_> {
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
            CommandKind::Return(_) => self.end("return", command.span),
            CommandKind::Pipeline(pipeline) => {
                if let [stage] = &pipeline.stages[..]
                    && let Some(name @ ("exit" | "exec")) =
                        stage.simple().and_then(|simple| simple.words.first()).and_then(bare)
                    && !self.functions.contains(name)
                {
                    self.end(name, command.span);
                }
                self.exec(pipeline);
                for block in pipeline.stages.iter().filter_map(Stage::block) {
                    self.inside(STAGE, block);
                }
            }
            CommandKind::Comment { .. }
            | CommandKind::Assign { .. }
            | CommandKind::Shift(_)
            | CommandKind::Channel(_) => {}
            CommandKind::If { arms, otherwise } => {
                for block in arms.iter().map(|(_, body)| body).chain(otherwise) {
                    self.commands(&block.commands);
                }
            }
            CommandKind::While { body, .. } => self.inside(Around::Loop, body),
            CommandKind::For(details) => {
                let around = match &details.kind {
                    ForKind::Each => Around::Loop,
                    ForKind::Any(clauses) if clauses.hedge_after.is_some() => {
                        Around::Task("a word of a hedged `forany`")
                    }
                    ForKind::Any(_) => Around::Any,
                    ForKind::All(_) => Around::Task("a branch of `forall`"),
                };
                self.inside(around, &details.body);
            }
            CommandKind::Try(details) => {
                let atomic = self.atomic;
                self.atomic |= details.clauses.atomic;
                self.commands(&details.body.commands);
                self.atomic = atomic;
                if let Some((_, catch)) = &details.catch {
                    self.commands(&catch.commands);
                }
                if let Some((_, finally)) = &details.finally {
                    self.inside(Around::Finally, finally);
                }
            }
            CommandKind::Function { body, .. } => {
                let around = (std::mem::take(&mut self.around), std::mem::take(&mut self.atomic));
                self.commands(&body.commands);
                (self.around, self.atomic) = around;
            }
        }
    }

    /// What ends more than itself.
    fn end(&mut self, keyword: &str, span: Span) {
        let walls = |it: &&Around| matches!(it, Around::Finally | Around::Task(_));
        match self.around.iter().rev().find(walls) {
            Some(Around::Finally) => self.errors.push(leaves_finally(keyword, span)),
            Some(&STAGE) if keyword == "return" => {
                let error = SyntaxError::new(
                    Slug::LeavesBranch,
                    span,
                    "`return` can't leave a stage of a pipeline",
                );
                self.errors.push(error.hint(ends()));
            }
            _ => {}
        }
    }

    /// What would take the place of the shell is found where nothing of an attempt could be undone then.
    fn exec(&mut self, pipeline: &Pipeline) {
        let stages = pipeline.stages.iter().filter_map(Stage::simple);
        let mut firsts = stages.filter_map(|simple| Some((simple.span, simple.words.first()?)));
        let exec = firsts.find(|(_, word)| bare(word) == Some("exec"));
        if let Some((span, _)) = exec.filter(|_| self.atomic && !self.functions.contains("exec"))
            && !self.around.contains(&Around::Finally)
        {
            let error =
                SyntaxError::new(Slug::ExecInAtomic, span, "`exec` can't stand in an atomic `try`");
            self.errors.push(error.hint(hint!("what an attempt does takes place when it succeeds, and the shell must be there then; \
                 run the command without `exec`")));
        }
    }

    fn jump(&mut self, jump: Jump, span: Span) {
        let keyword = jump.keyword();
        let (slug, message, hint) = match (self.around.last(), jump) {
            (Some(Around::Loop), _) | (Some(Around::Any), Jump::Break) => return,
            (Some(Around::Any), Jump::Continue) => (
                Slug::ContinueInForany,
                "`forany` takes no `continue`".to_owned(),
                hint!("`failure` goes on with the next word, and `break` succeeds with this one"),
            ),
            (Some(Around::Finally), _) => return self.errors.push(leaves_finally(keyword, span)),
            (Some(Around::Task(what)), _) => {
                (Slug::LeavesBranch, format!("`{keyword}` can't leave {what}"), ends())
            }
            (None, _) => (
                Slug::StrayJump,
                format!("`{keyword}` stands outside of a loop"),
                hint!(
                    "it is about the innermost `for` or `while` of the same function; \
                     `return` leaves a function"
                ),
            ),
        };
        self.errors.push(SyntaxError::new(slug, span, message).hint(hint));
    }
}
