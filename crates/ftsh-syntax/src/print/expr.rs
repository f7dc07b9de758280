//! Expressions, durations and backoff clauses.

use super::Printer;
use crate::ast::{
    BackoffClause, ChannelDeclaration, Duration, Expr, ExprKind, Question, Word, WordPart,
};
use crate::backoff::Clauses;
use crate::clauses::ChannelClauses;
use crate::size::Size;

impl Printer {
    /// Prints an expression.
    ///
    /// Parentheses are nodes of the tree, hence none are added. The parser limits the depth of the
    /// recursion.
    pub(super) fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Word(word) => self.word(word),
            ExprKind::Group(inner) => {
                self.text.push('(');
                self.expr(inner);
                self.text.push(')');
            }
            ExprKind::Call { name, args } => {
                self.text.push_str(name);
                self.text.push('(');
                for (at, argument) in args.iter().enumerate() {
                    if at > 0 {
                        self.text.push_str(", ");
                    }
                    self.expr(argument);
                }
                self.text.push(')');
            }
            ExprKind::Unary { operator, is_symbol, operand } => {
                self.text.push_str(if *is_symbol { "!" } else { operator.spelling() });
                if !(*is_symbol && matches!(operand.kind, ExprKind::Group(_))) {
                    self.text.push(' ');
                }
                self.expr(operand);
            }
            ExprKind::Binary { operator, is_symbol, left, right } => {
                let symbol = operator.symbol().filter(|_| *is_symbol);
                self.infix(left, symbol.unwrap_or(operator.spelling()), right);
            }
            ExprKind::Range { from, to, step } => {
                self.infix(from, ".to.", to);
                if let Some(step) = step {
                    self.text.push_str(" .step. ");
                    self.expr(step);
                }
            }
            ExprKind::Collected(block) => self.collected(block),
            ExprKind::Asked { question: Question::Bare, pipeline } => {
                self.stages(&pipeline.stages, &mut Vec::new());
            }
            ExprKind::Asked { question, pipeline } => {
                self.text.push_str(question.spelling());
                self.text.push_str(" (");
                self.stages(&pipeline.stages, &mut Vec::new());
                self.text.push(')');
            }
        }
    }

    fn infix(&mut self, left: &Expr, operator: &str, right: &Expr) {
        self.expr(left);
        self.text.push(' ');
        self.text.push_str(operator);
        self.text.push(' ');
        self.expr(right);
    }

    pub(super) fn times(&mut self, times: &Expr) {
        self.expr(times);
        self.text.push_str(if is_one(times) { " time" } else { " times" });
    }

    pub(super) fn duration(&mut self, duration: &Duration) {
        match duration {
            Duration::Amount { amount, unit } => {
                self.expr(amount);
                self.text.push(' ');
                self.text.push_str(unit.spelling(is_one(amount)));
            }
            Duration::Whole(word) => self.word(word),
        }
    }

    pub(super) fn size(&mut self, words: &str, size: Option<&Size<Expr>>) {
        let Some(Size { amount, unit }) = size else { return };
        self.text.push_str(words);
        self.expr(amount);
        if let Some(unit) = unit {
            self.text.push(' ');
            self.text.push_str(unit.spelling());
        }
    }

    pub(super) fn length(&mut self, words: &str, length: Option<&Duration>) {
        if let Some(length) = length {
            self.text.push_str(words);
            self.duration(length);
        }
    }

    pub(super) fn backoff(&mut self, clause: &BackoffClause) {
        self.text.push_str(" backoff ");
        self.text.push_str(clause.kind.name());
        let Clauses { from, to, by, jitter } = &clause.clauses;
        self.length(" from ", from.as_ref());
        self.length(" to ", to.as_ref());
        self.clause(" by ", by.as_ref());
        if let Some(jitter) = jitter {
            self.text.push_str(" jitter ");
            self.percentage(jitter);
        }
    }

    fn percentage(&mut self, value: &Expr) {
        self.expr(value);
        self.text.push_str(if matches!(value.kind, ExprKind::Word(_)) { "%" } else { " %" });
    }

    pub(super) fn channel(&mut self, channel: &ChannelDeclaration) {
        self.text.push_str("channel ");
        self.text.push_str(&channel.name);
        let ChannelClauses { at_most, rate, budget, breaker } = &channel.rules;
        self.clause(" at most ", at_most.as_ref());
        if let Some((count, per)) = rate {
            self.text.push_str(" rate ");
            self.expr(count);
            self.text.push_str(" per ");
            self.per(per);
        }
        if let Some(budget) = budget {
            self.text.push_str(" budget ");
            self.percentage(budget);
        }
        if let Some((count, open)) = breaker {
            self.text.push_str(" breaker ");
            self.expr(count);
            self.text.push_str(if is_one(count) { " failure " } else { " failures " });
            self.duration(open);
        }
    }

    /// Prints `per second` rather than `per 1 second`.
    fn per(&mut self, time: &Duration) {
        match time {
            Duration::Amount { amount, unit } if is_one(amount) => {
                self.text.push_str(unit.spelling(true));
            }
            _ => self.duration(time),
        }
    }
}

fn is_one(amount: &Expr) -> bool {
    let ExprKind::Word(Word { parts, .. }) = &amount.kind else { return false };
    matches!(&parts[..], [WordPart::Bare(text)] if text == "1")
}
