//! Checks of `break`, `continue`, `return` and `exec` that cannot reach their target.

use std::collections::{HashMap, HashSet};

use super::literal::bare;
use crate::ast::{Block, Command, CommandKind, ForKind, Jump, ModifierKind, Name, Pipeline, Stage};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::slug::Slug;
use crate::span::Span;

/// Structure enclosing a command, within its function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Enclosing {
    /// `for`, `while`
    Loop,
    /// `forany`
    Any,
    /// `finally`, which no jump may leave.
    Finally,
    /// Code that runs as a task of its own, which no jump may leave.
    Task(&'static str),
}

/// Command of a `with`.
const COMPANION: Enclosing = Enclosing::Task("the command of a `with`");

/// Stage that is a structure. `return` cannot leave the stage either, although it could seem to
/// leave the function.
const STAGE: &str = "a stage of a pipeline";
/// Lines of a `$(…)`, which `return` cannot leave either.
const ENCLOSED: &str = "a `$(…)`";

/// Returns the hint about the end of a task.
pub(super) fn ends() -> Hint {
    hint!("code that runs in parallel ends after its last command, by a failure, or by `exit`")
}

/// Returns the errors of misplaced jumps in a script that defines `functions`.
///
/// The lines of a `$(…)` are a task of their own.
pub(super) fn misplaced(
    script: &[Command],
    functions: &HashMap<Name, Span>,
    is_enclosed: bool,
) -> Vec<SyntaxError> {
    let functions = functions.keys().map(|name| &**name).collect();
    let mut check = JumpCheck {
        functions,
        enclosing: if is_enclosed { vec![Enclosing::Task(ENCLOSED)] } else { Vec::new() },
        atomic: false,
        in_view: false,
        beside: false,
        errors: Vec::new(),
    };
    check.commands(script);
    check.errors
}

fn leaves_finally(keyword: &str, span: Span) -> SyntaxError {
    SyntaxError::new(Slug::LeavesFinally, span, format!("`{keyword}` can't leave a `finally`"))
        .hint(hint!(
            "a `finally` runs to its end, or fails; the script then continues as decided before"
        ))
}

struct JumpCheck<'f> {
    functions: HashSet<&'f str>,
    enclosing: Vec<Enclosing>,
    /// True inside an atomic attempt.
    atomic: bool,
    /// True inside an attempt of `atomic in`.
    in_view: bool,
    /// True in a `with`.
    beside: bool,
    errors: Vec<SyntaxError>,
}

impl JumpCheck<'_> {
    fn commands(&mut self, commands: &[Command]) {
        for command in commands {
            self.command(command);
        }
    }

    fn inside(&mut self, enclosing: Enclosing, block: &Block) {
        self.enclosing.push(enclosing);
        self.commands(&block.commands);
        self.enclosing.pop();
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
                self.keep(pipeline);
                for block in pipeline.stages.iter().filter_map(Stage::block) {
                    self.inside(Enclosing::Task(STAGE), block);
                }
            }
            CommandKind::Comment { .. }
            | CommandKind::Assign { .. }
            | CommandKind::Shift(_)
            | CommandKind::List { .. }
            | CommandKind::Channel(_)
            | CommandKind::Use(_)
            | CommandKind::Args(_) => {}
            CommandKind::If { arms, otherwise } => {
                for block in arms.iter().map(|(_, body)| body).chain(otherwise) {
                    self.commands(&block.commands);
                }
            }
            CommandKind::Case(case) => {
                case.blocks().for_each(|block| self.commands(&block.commands));
            }
            CommandKind::While { body, .. } => self.inside(Enclosing::Loop, body),
            CommandKind::For(details) => {
                let enclosing = match &details.kind {
                    ForKind::Each => Enclosing::Loop,
                    ForKind::Any(clauses) if clauses.hedge_after.is_some() => {
                        Enclosing::Task("a word of a hedged `forany`")
                    }
                    ForKind::Any(_) => Enclosing::Any,
                    ForKind::All(_) => Enclosing::Task("a branch of `forall`"),
                };
                let around =
                    self.attempt(!details.atomic_in.is_empty(), !details.atomic_in.is_empty());
                self.inside(enclosing, &details.body);
                (self.atomic, self.in_view) = around;
            }
            CommandKind::Try(details) => {
                let around = self.attempt(details.clauses.atomic, !details.atomic_in.is_empty());
                self.commands(&details.body.commands);
                (self.atomic, self.in_view) = around;
                if let Some((_, catch)) = &details.catch {
                    self.commands(&catch.commands);
                }
                if let Some((_, finally)) = &details.finally {
                    self.inside(Enclosing::Finally, finally);
                }
            }
            CommandKind::In { body, .. } => self.commands(&body.commands),
            CommandKind::With { companion, body } => {
                self.inside(COMPANION, companion);
                let around = std::mem::replace(&mut self.beside, true);
                self.commands(&body.commands);
                self.beside = around;
            }
            CommandKind::Function { body, .. } => {
                let enclosing = std::mem::take(&mut self.enclosing);
                let around = std::mem::take(&mut self.atomic);
                let in_view = std::mem::take(&mut self.in_view);
                let beside = std::mem::take(&mut self.beside);
                self.commands(&body.commands);
                (self.enclosing, self.atomic, self.in_view) = (enclosing, around, in_view);
                self.beside = beside;
            }
        }
    }

    /// Enters an attempt, and returns the state around it.
    fn attempt(&mut self, atomic: bool, in_view: bool) -> (bool, bool) {
        let around = (self.atomic, self.in_view);
        (self.atomic, self.in_view) = (around.0 || atomic, around.1 || in_view);
        around
    }

    /// Checks a statement that ends more than the current block.
    fn end(&mut self, keyword: &str, span: Span) {
        let is_boundary = |it: &&Enclosing| matches!(it, Enclosing::Finally | Enclosing::Task(_));
        match self.enclosing.iter().rev().find(is_boundary) {
            Some(Enclosing::Finally) => self.errors.push(leaves_finally(keyword, span)),
            Some(Enclosing::Task(what))
                if keyword == "return" && [STAGE, ENCLOSED].contains(what) =>
            {
                let message = format!("`return` can't leave {what}");
                let error = SyntaxError::new(Slug::LeavesBranch, span, message);
                self.errors.push(error.hint(ends()));
            }
            _ => {}
        }
    }

    /// Checks for `exec` in an atomic attempt, whose effects could not be undone after a
    /// replacement of the shell, and in a `with`, whose command could not be ended.
    fn exec(&mut self, pipeline: &Pipeline) {
        let stages = pipeline.stages.iter().filter_map(Stage::simple);
        let mut firsts = stages.filter_map(|simple| Some((simple.span, simple.words.first()?)));
        let exec = firsts.find(|(_, word)| bare(word) == Some("exec"));
        let Some((span, _)) = exec.filter(|_| !self.functions.contains("exec")) else { return };
        if self.beside {
            let message = "`exec` is not possible in a `with`";
            let error = SyntaxError::new(Slug::ExecInAtomic, span, message);
            self.errors.push(error.hint(hint!(
                "run the command without `exec`: the shell must end the command of the `with`"
            )));
        } else if self.atomic && !self.enclosing.contains(&Enclosing::Finally) {
            let error = SyntaxError::new(
                Slug::ExecInAtomic,
                span,
                "`exec` is not possible in an atomic `try`",
            );
            self.errors.push(error.hint(hint!("the shell must commit the attempt after its success; run the command without `exec`")));
        }
    }

    /// Checks for `keep` in an attempt of `atomic in`, whose processes end before the commit.
    fn keep(&mut self, pipeline: &Pipeline) {
        let stages = pipeline.stages.iter().filter_map(Stage::simple);
        let mut modifiers = stages.flat_map(|simple| &simple.modifiers);
        let Some(keep) = modifiers.find(|it| matches!(it.kind, ModifierKind::Keep)) else {
            return;
        };
        if self.enclosing.last() == Some(&COMPANION) {
            let message = "`keep` is not possible in the command of a `with`";
            let error = SyntaxError::new(Slug::KeepInView, keep.span, message);
            self.errors.push(
                error.hint(hint!("the command ends with the group; start what is to stay before")),
            );
        } else if self.in_view {
            let message = "`keep` is not possible in an attempt of `atomic in`";
            let error = SyntaxError::new(Slug::KeepInView, keep.span, message);
            self.errors.push(error.hint(hint!(
                "its processes end before its files take place; start the program after the attempt"
            )));
        }
    }

    fn jump(&mut self, jump: Jump, span: Span) {
        let keyword = jump.keyword();
        let (slug, message, hint) = match (self.enclosing.last(), jump) {
            (Some(Enclosing::Loop), _) | (Some(Enclosing::Any), Jump::Break) => return,
            (Some(Enclosing::Any), Jump::Continue) => (
                Slug::ContinueInForany,
                "`forany` takes no `continue`".to_owned(),
                hint!(
                    "`failure` continues with the next word, and `break` ends the `forany` with success"
                ),
            ),
            (Some(Enclosing::Finally), _) => {
                return self.errors.push(leaves_finally(keyword, span));
            }
            (Some(Enclosing::Task(what)), _) => {
                (Slug::LeavesBranch, format!("`{keyword}` can't leave {what}"), ends())
            }
            (None, _) => (
                Slug::StrayJump,
                format!("`{keyword}` is outside of a loop"),
                hint!(
                    "`{keyword}` is for the innermost `for` or `while` of the same function; \
                     `return` leaves a function"
                ),
            ),
        };
        self.errors.push(SyntaxError::new(slug, span, message).hint(hint));
    }
}
