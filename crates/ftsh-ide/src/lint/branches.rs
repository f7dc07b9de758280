//! Lint of assignments in branches of a `forall`, which are lost at the end of the branch.

use std::collections::HashSet;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, Command, CommandKind, ForKind, Name};
use ftsh_syntax::hint::hint;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut check = BranchCheck { warnings: Vec::new() };
    check.block(&script.body, &mut HashSet::new());
    check.warnings
}

struct BranchCheck {
    warnings: Vec<Warning>,
}

impl BranchCheck {
    /// Checks a block. `outer` are the variables assigned before, in the order of the text.
    fn block(&mut self, block: &Block, outer: &mut HashSet<Name>) {
        for command in &block.commands {
            self.command(command, outer);
        }
    }

    fn command(&mut self, command: &Command, outer: &mut HashSet<Name>) {
        match &command.kind {
            CommandKind::For(details) if matches!(details.kind, ForKind::All(_)) => {
                let mut own = HashSet::from([details.variable.clone()]);
                self.branch(&details.body, command.span, outer, &mut own);
            }
            CommandKind::Assign { name, .. } => _ = outer.insert(name.clone()),
            CommandKind::For(details) => {
                outer.insert(details.variable.clone());
                self.block(&details.body, outer);
            }
            // The variables of a function depend on its caller.
            CommandKind::Function { body, .. } => self.block(body, &mut HashSet::new()),
            _ => walk::blocks(command).into_iter().for_each(|block| self.block(block, outer)),
        }
    }

    /// Checks the body of a `forall` for assignments to variables of `outer`.
    ///
    /// `own` are variables first set by the branch itself.
    fn branch(&mut self, body: &Block, head: Span, outer: &HashSet<Name>, own: &mut HashSet<Name>) {
        for command in &body.commands {
            match &command.kind {
                CommandKind::Assign { name, .. } => {
                    if outer.contains(name) && own.insert(name.clone()) {
                        self.warnings.push(lost(command.span, name, head));
                    }
                }
                CommandKind::For(inner) => {
                    own.insert(inner.variable.clone());
                    self.branch(&inner.body, head, outer, own);
                }
                CommandKind::Function { .. } => self.command(command, &mut HashSet::new()),
                _ => {
                    for block in walk::blocks(command) {
                        self.branch(block, head, outer, own);
                    }
                }
            }
        }
    }
}

fn lost(at: Span, name: &str, head: Span) -> Warning {
    Warning::new(
        Slug::LostAssignment,
        at,
        format!("the value of `{name}` is lost at the end of the branch"),
    )
    .related(head, "each branch of this `forall` has a copy of the variables")
    .hint(hint!("print the value, or write the value to one file per branch"))
}
