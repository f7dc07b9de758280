//! Lint of unreachable commands, and of ignored failures.

use std::collections::{HashMap, HashSet};

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    Block, Command, CommandKind, Redirect, RedirectionTarget, Simple, StageKind,
};
use ftsh_syntax::hint::hint;
use ftsh_syntax::slug::Slug;

/// Commands that leave their block.
const LEAVE: [&str; 5] = ["exit", "failure", "giveup", "defer", "exec"];

/// Commands that report a failure or clean up, without handling the failure.
const IDLE: [&str; 25] = [
    ":", "cat", "cd", "date", "echo", "export", "head", "logger", "mail", "mailx", "printf", "pwd",
    "rm", "rmdir", "sendmail", "sleep", "success", "sync", "tail", "tee", "touch", "true", "unset",
    "wall", "who",
];

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut check =
        FlowCheck { text: script.source.text(), functions: HashMap::new(), warnings: Vec::new() };
    check.collect(&script.body);
    check.block(&script.body);
    check.warnings
}

struct FlowCheck<'a> {
    text: &'a str,
    functions: HashMap<&'a str, &'a Block>,
    warnings: Vec<Warning>,
}

impl<'a> FlowCheck<'a> {
    fn collect(&mut self, block: &'a Block) {
        for command in &block.commands {
            if let CommandKind::Function { name, body, .. } = &command.kind {
                self.functions.insert(name, body);
            }
            for block in walk::blocks(command) {
                self.collect(block);
            }
        }
    }

    /// Checks a block. Returns true if the end of the block is never reached.
    fn block(&mut self, block: &'a Block) -> bool {
        let mut left: Option<&Command> = None;
        let mut reported = false;
        for command in &block.commands {
            // A function definition needs no execution.
            let runs =
                !matches!(command.kind, CommandKind::Comment { .. } | CommandKind::Function { .. });
            if let Some(leaving) = left
                && runs
                && !reported
            {
                reported = true;
                self.warnings.push(unreachable(command, leaving));
            }
            if self.leaves(command) && left.is_none() {
                left = Some(command);
            }
        }
        left.is_some()
    }

    /// Checks a command. Returns true if no command can follow.
    fn leaves(&mut self, command: &'a Command) -> bool {
        match &command.kind {
            CommandKind::Return(_) | CommandKind::Jump(_) => true,
            CommandKind::Pipeline(pipeline) => {
                self.inside(command);
                let name = walk::single(pipeline).and_then(walk::name);
                name.is_some_and(|name| {
                    LEAVE.contains(&&*name) && !self.functions.contains_key(&*name)
                })
            }
            CommandKind::If { arms, otherwise } => {
                let mut all = otherwise.is_some();
                for block in arms.iter().map(|(_, body)| body).chain(otherwise) {
                    all &= self.block(block);
                }
                all
            }
            CommandKind::Case(case) => {
                let mut all = case.otherwise.is_some();
                for block in case.arms.iter().map(|arm| &arm.body).chain(&case.otherwise) {
                    all &= self.block(block);
                }
                all
            }
            CommandKind::Try(details) => {
                if let Some((span, block)) = &details.catch
                    && self.is_idle(block, &mut HashSet::new())
                    && !is_explained(block)
                {
                    self.warnings.push(
                        Warning::new(Slug::ForgottenFailure, *span, "this `catch` ignores every failure").hint(hint!("pass the failure on with `failure`, or explain in a comment inside the `catch` why the failure doesn't matter")),
                    );
                }
                self.inside(command)
            }
            CommandKind::Comment { .. }
            | CommandKind::Assign { .. }
            | CommandKind::While { .. }
            | CommandKind::In { .. }
            | CommandKind::With { .. }
            | CommandKind::For(_)
            | CommandKind::Function { .. }
            | CommandKind::Shift(_)
            | CommandKind::List { .. }
            | CommandKind::Channel(_)
            | CommandKind::Use(_)
            | CommandKind::Args(_) => self.inside(command),
        }
    }

    /// Checks the blocks of a command that may be left early without harm.
    fn inside(&mut self, command: &'a Command) -> bool {
        for block in walk::blocks(command) {
            self.block(block);
        }
        false
    }

    /// Returns true if a block neither handles a failure nor passes the failure on.
    ///
    /// `seen` are functions checked already.
    fn is_idle(&self, block: &Block, seen: &mut HashSet<String>) -> bool {
        block.commands.iter().all(|command| match &command.kind {
            CommandKind::Pipeline(pipeline) => {
                pipeline.stages.iter().all(|stage| match &stage.kind {
                    StageKind::Simple(simple) => self.is_idle_command(simple, seen),
                    StageKind::Structure(block) => self.is_idle(block, seen),
                })
            }
            CommandKind::Return(_) | CommandKind::Jump(_) => false,
            CommandKind::Function { .. } => true,
            CommandKind::Assign { name, .. } => !self.is_read(name),
            CommandKind::Comment { .. }
            | CommandKind::If { .. }
            | CommandKind::Case(_)
            | CommandKind::While { .. }
            | CommandKind::In { .. }
            | CommandKind::With { .. }
            | CommandKind::For(_)
            | CommandKind::Try(_)
            | CommandKind::Shift(_)
            | CommandKind::List { .. }
            | CommandKind::Channel(_)
            | CommandKind::Use(_)
            | CommandKind::Args(_) => {
                walk::blocks(command).into_iter().all(|block| self.is_idle(block, seen))
            }
        })
    }

    fn is_idle_command(&self, simple: &Simple, seen: &mut HashSet<String>) -> bool {
        let keeps = |it: &Redirect| matches!(it.target, RedirectionTarget::Variable(_));
        !simple.redirects.iter().any(keeps)
            && walk::name(simple).is_some_and(|name| match self.functions.get(&*name) {
                Some(body) => !seen.insert(name.into_owned()) || self.is_idle(body, seen),
                None => IDLE.contains(&&*name),
            })
    }
}

impl FlowCheck<'_> {
    /// Returns true if the script reads a variable, whose value a `catch` may have set.
    fn is_read(&self, name: &str) -> bool {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.text.match_indices(name).any(|(at, _)| {
            let (before, after) = (&self.text[..at], &self.text[at + name.len()..]);
            let begins = ["$", "${", "$(", "-<", "-< "].iter().any(|it| before.ends_with(it));
            begins && !after.starts_with(is_word)
        })
    }
}

fn unreachable(command: &Command, leaving: &Command) -> Warning {
    Warning::new(Slug::Unreachable, command.span, "this is never reached")
        .related(leaving.span, "commands after this are not reached")
}

/// Returns true if the block contains a comment.
fn is_explained(block: &Block) -> bool {
    block.commands.iter().any(|command| {
        matches!(command.kind, CommandKind::Comment { .. })
            || walk::blocks(command).into_iter().any(is_explained)
    })
}
