//! What a branch of a `forall` assigns is the branch's own: gone when that ends.

use std::collections::HashSet;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, Command, CommandKind, ForKind, Name};
use ftsh_syntax::hint::hint;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

pub fn look(script: &Script) -> Vec<Warning> {
    let mut look = Look { warnings: Vec::new() };
    look.block(&script.body, &mut HashSet::new());
    look.warnings
}

struct Look {
    warnings: Vec<Warning>,
}

impl Look {
    /// `outer` has the variables that were assigned before, in the order of the text.
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
            // Whose variables they are depends on who calls it.
            CommandKind::Function { body, .. } => self.block(body, &mut HashSet::new()),
            _ => walk::blocks(command).into_iter().for_each(|block| self.block(block, outer)),
        }
    }

    /// The body of a `forall`: what of it changes a variable of `outer` is lost. `own` are those that
    /// the branch has set where no other one was.
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
        format!("what this branch assigns to `{name}` is lost when it ends"),
    )
    .related(head, "each branch of this has a copy of the variables")
    .hint(hint!("have the branch print it, or write it to a file of its own"))
}
