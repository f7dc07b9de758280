//! Lowers loops and structures with arms.

use std::sync::Arc;

use super::{
    jumps::{Exits, ends_early},
    script::{Lower, TakenBack},
};
use crate::durations::learned::LimitKey;
use crate::program::{Instruction, Loop};
use ftsh_syntax::ast::{
    Block, Case, Expr, For, ForKind, Mode, Redirect, RedirectionTarget, Word, WordPart, calls,
};
use ftsh_syntax::span::Span;

impl<'a> Lower<'a> {
    /// Lowers a loop over words.
    pub(super) fn for_loop(&mut self, details: &'a For, usual: Option<LimitKey>) {
        let taken_back = self.taken_back.take();
        self.words(&details.list);
        let by = details.input.as_ref().and_then(|input| input.by.as_ref());
        if let Some(by) = by {
            self.expr(by);
        }
        let kind = details.kind.map(self, Self::duration, Self::expr);
        let head = self.reserve();
        let next = matches!(kind, ForKind::Each).then(|| self.reserve());
        let (begin, line) = (self.here(), self.line);
        let (takes, gives) = (details.takes.len(), details.gives.len());
        if takes + gives > 0 {
            self.words(&details.takes);
            self.words(&details.gives);
            self.emit(Instruction::Files { takes, gives });
        }
        let body = self.here();
        // A branch is a task of its own, and begins without frames.
        let frames = usize::from(!kind.has_branches());
        self.loops.enter(frames);
        if taken_back == Some(TakenBack::Cut) {
            self.emit(Instruction::TakeBack);
        }
        let is_held = taken_back == Some(TakenBack::Held);
        if is_held {
            self.emit(Instruction::Hold);
            self.loops.depth += 1;
        }
        if details.input.is_some() && frames > 0 {
            self.reading_nothing(details);
        } else {
            self.loop_body(details);
        }
        self.line = line;
        if is_held {
            self.loops.depth -= 1;
            self.emit(Instruction::EndAtomic);
        }
        let tail = self.reserve();
        let exits = match kind {
            ForKind::Each => Exits { to_break: (1, self.here()), to_continue: (0, head + 1) },
            ForKind::Any(_) | ForKind::All(_) => {
                Exits { to_break: (0, tail), to_continue: (0, tail) }
            }
        };
        self.loops.leave(frames, &exits, &mut self.code);
        let dispatch = self.here();
        if matches!(kind, ForKind::All(_)) {
            self.emit(Instruction::Dispatch);
        }
        let code = Arc::new(Loop {
            variable: Arc::clone(&details.variable),
            items: details.list.len() + usize::from(by.is_some()),
            is_input: details.input.is_some(),
            ends_early: ends_early(&self.code[body..], self.here()),
            usual,
            begin,
            body,
            end: self.here(),
        });
        if let Some(next) = next {
            self.code[next] = Instruction::NextFor(Arc::clone(&code));
        }
        let (first, last) = match kind {
            ForKind::Each => (Instruction::For(code), Instruction::Jump(head + 1)),
            ForKind::Any(clauses) => {
                let last = match clauses.hedge_after {
                    Some(_) => Instruction::EndTask,
                    None => Instruction::EndForAny,
                };
                (Instruction::ForAny { code, clauses }, last)
            }
            ForKind::All(clauses) => {
                (Instruction::ForAll { code, clauses, dispatch }, Instruction::EndTask)
            }
        };
        self.code[head] = first;
        self.code[tail] = last;
    }

    /// Emits the body of a loop whose standard input is empty.
    fn reading_nothing(&mut self, details: &'a For) {
        let (span, parts) = (Span::default(), vec![WordPart::Bare("/dev/null".to_owned())].into());
        let (mode, target) = (Mode::Read, RedirectionTarget::File(Word { span, parts }));
        let nothing = Redirect { span, descriptor: 0, mode, with_errors: false, target };
        self.emit(Instruction::Redirect([nothing].into()));
        self.loops.depth += 1;
        self.loop_body(details);
        self.loops.depth -= 1;
        self.emit(Instruction::EndRedirect);
    }

    fn loop_body(&mut self, details: &'a For) {
        if details.atomic_in.is_empty() {
            self.block(&details.body);
        } else {
            self.atomic_body(&details.atomic_in, &details.body);
        }
    }
}

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
            let (patterns, otherwise) = (arm.patterns.clone().into(), self.here());
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
