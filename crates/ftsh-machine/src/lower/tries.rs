//! Lowers `try`, `limit`, and the attempts of loops.

use std::sync::Arc;

use super::script::{ERROR_OUTPUT, Lower, TakenBack};
use crate::durations::learned::LimitKey;
use crate::program::{BackoffCode, FinallyCode, Instruction, TryCode};
use ftsh_syntax::ast::{BackoffClause, Block, Expr, Try};
use ftsh_syntax::clauses::TryClauses;
use ftsh_syntax::size::Size;

impl<'a> Lower<'a> {
    /// Lowers a `try` or a `limit`.
    pub(super) fn try_block(
        &mut self,
        details: &'a Try,
        redirected: bool,
        usual: Option<LimitKey>,
    ) {
        let Some((span, finally)) = &details.finally else {
            return self.attempts(details, redirected, usual);
        };
        let guard = self.reserve();
        self.loops.depth += 1;
        self.attempts(details, redirected, usual);
        self.loops.depth -= 1;
        self.emit(Instruction::RunFinally);
        self.at(*span);
        let (line, at) = (self.line, self.here());
        self.inside(1, finally);
        self.line = line;
        self.emit(Instruction::EndFinally);
        let code = Arc::new(FinallyCode { line, at, end: self.here() });
        self.code[guard] = Instruction::BeginFinally(code);
    }

    /// Lowers a `try`, except for its `finally`.
    fn attempts(&mut self, details: &'a Try, redirected: bool, usual: Option<LimitKey>) {
        let line = self.line;
        let taken_back = match details.around {
            Some(_) => None, // that of the loop inside
            None => self.taken_back.take(),
        };
        let start = self.reserve();
        self.words(&details.atomic_in);
        let policy = |lower: &mut Self, backoff: &'a BackoffClause| BackoffCode {
            kind: backoff.kind,
            clauses: backoff.clauses.map(lower, Self::duration, Self::expr),
        };
        let size = |lower: &mut Self, size: &'a Size<Expr>| {
            lower.expr(&size.amount);
            Size { amount: (), unit: size.unit }
        };
        let clauses =
            details.clauses.map(self, Self::duration, Self::expr, size, policy, Self::expr);
        let head = self.reserve();
        let condition = details.condition.as_ref().map(|condition| {
            let address = self.here();
            self.expr(condition);
            self.emit(Instruction::TryAgain);
            address
        });
        let body = self.here();
        if taken_back == Some(TakenBack::Cut) {
            self.emit(Instruction::TakeBack);
        }
        let mut begins = if details.clauses.atomic {
            vec![Instruction::Atomic { attempt: true }]
        } else {
            let tee = self.may_read_errors(details).then_some(Instruction::Tee);
            let input = details.clauses.same_input.then_some(Instruction::SameInput);
            let hold = (taken_back == Some(TakenBack::Held)).then_some(Instruction::Hold);
            hold.into_iter().chain(tee).chain(input).collect()
        };
        begins.extend(details.clauses.no_leftovers.then_some(Instruction::NoLeftovers));
        self.transactions(begins, &details.body);
        self.line = line;
        self.emit(Instruction::EndTry);
        let catch = details.catch.as_ref().map(|(span, block)| {
            let address = self.here();
            self.at(*span);
            let catch_line = self.line;
            let holds = details.clauses.atomic && redirected;
            let begins = holds.then_some(Instruction::Atomic { attempt: false });
            self.transactions(begins.into_iter().collect(), block);
            self.emit(Instruction::EndCatch);
            (address, catch_line)
        });
        let through = details.through.as_ref().map(|(_, channel)| Arc::clone(channel));
        let is_limit = details.is_limit;
        let end = self.here();
        let directories = details.atomic_in.len();
        let code = TryCode {
            line,
            is_limit,
            clauses,
            condition,
            directories,
            through,
            usual,
            body,
            catch,
            end,
        };
        let code = Arc::new(code);
        self.code[start] = Instruction::TryHead(Arc::clone(&code));
        self.code[head] = Instruction::Try(code);
    }

    /// Lowers the body of a loop with `atomic in`: a single attempt, which is no `try` for `$attempt`,
    /// `giveup` and `defer`.
    pub(super) fn atomic_body(&mut self, directories: &'a [Expr], block: &'a Block) {
        let line = self.line;
        let start = self.reserve();
        self.words(directories);
        let head = self.reserve();
        let body = self.here();
        self.transactions(vec![Instruction::Atomic { attempt: true }], block);
        self.line = line;
        self.emit(Instruction::EndTry);
        let code = Arc::new(TryCode {
            line,
            is_limit: true,
            clauses: TryClauses { atomic: true, ..TryClauses::default() },
            condition: None,
            directories: directories.len(),
            through: None,
            usual: None,
            body,
            catch: None,
            end: self.here(),
        });
        self.code[start] = Instruction::TryHead(Arc::clone(&code));
        self.code[head] = Instruction::Try(code);
    }

    /// Emits the block of an attempt or of a `catch`, inside the transactions that these instructions
    /// begin, outermost first.
    fn transactions(&mut self, begins: Vec<Instruction>, block: &'a Block) {
        let (line, count) = (self.line, begins.len());
        for begin in begins {
            self.emit(begin);
        }
        self.inside(1 + count, block);
        self.line = line;
        for _ in 0..count {
            self.emit(Instruction::EndAtomic);
        }
    }

    /// Returns true if the code after a failed attempt may read the attempt's standard error.
    fn may_read_errors(&self, details: &Try) -> bool {
        let spans = [&details.catch, &details.finally].map(|it| it.as_ref().map(|(span, _)| *span));
        let condition = details.condition.as_ref().map(|it| it.span);
        let after =
            spans.into_iter().flatten().map(|span| self.text(span.start, self.until)).next();
        let condition = condition.map(|span| self.text(span.start, span.end));
        let mut texts = after.into_iter().chain(condition).peekable();
        texts.peek().is_some() && (self.calls_read || texts.any(|text| text.contains(ERROR_OUTPUT)))
    }
}
