//! Lowers structures with arms.

use super::Lower;
use crate::program::code::Instruction;
use ftsh_syntax::ast::{Block, Case, Expr, Word, WordPart, calls};
use ftsh_syntax::parse::literal;
use ftsh_syntax::vocabulary::RESPELLED_KIND;

impl<'a> Lower<'a> {
    /// Lowers an `if`.
    pub(super) fn conditional(&mut self, arms: &'a [(Expr, Block)], otherwise: Option<&'a Block>) {
        let mut exits = Vec::new();
        for (condition, body) in arms {
            self.at(condition.span);
            self.expr(condition);
            let test = self.reserve();
            self.block(body);
            exits.push(self.reserve());
            self.code[test] = Instruction::Unless(self.here());
        }
        if let Some(otherwise) = otherwise {
            self.block(otherwise);
        }
        for exit in exits {
            self.code[exit] = Instruction::Jump(self.here());
        }
    }

    /// Lowers a `case`. The value stays on the stack until a pattern matches.
    pub(super) fn case(&mut self, case: &'a Case) {
        self.expr(&case.value);
        let mut exits = Vec::new();
        for arm in &case.arms {
            self.at(arm.span);
            self.pending_calls.extend(arm.patterns.iter().flat_map(|it| calls(&it.parts)));
            let test = self.reserve();
            self.block(&arm.body);
            exits.push(self.reserve());
            let mut patterns = arm.patterns.clone();
            if literal::is_error_kind(&case.value) {
                let (spelling, kind) = RESPELLED_KIND;
                let is_respelled =
                    |it: &&mut Word| literal::word(it).is_some_and(|it| it == spelling);
                for pattern in patterns.iter_mut().filter(is_respelled) {
                    pattern.parts.clear();
                    pattern.parts.push(WordPart::Bare(kind.to_owned()));
                }
            }
            let (patterns, otherwise) = (patterns.into(), self.here());
            self.code[test] = Instruction::When { patterns, otherwise };
        }
        self.emit(Instruction::Unmatched);
        if let Some(otherwise) = &case.otherwise {
            self.block(otherwise);
        }
        for exit in exits {
            self.code[exit] = Instruction::Jump(self.here());
        }
    }
}
