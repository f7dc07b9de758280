//! Operators and their precedence.

use super::Rule;
use crate::ast::{BinaryOperator as B, FileTest as F, UnaryOperator as U};

/// Precedence of operators, from the loosest to the tightest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    Range,
    Or,
    And,
    /// `!`, which negates a whole comparison.
    Negation,
    Comparison,
    Sum,
    Product,
    Prefix,
    Power,
}

impl Precedence {
    /// Returns true if `a op b op c` has no meaning without parentheses.
    pub(super) fn is_non_associative(self) -> bool {
        matches!(self, Self::Range | Self::Comparison)
    }
}

/// Returns the operator before an operand for a rule of the grammar.
pub(super) fn prefix(rule: Rule) -> Option<(U, Precedence)> {
    let operator = match rule {
        Rule::negation | Rule::denial => return Some((U::Not, Precedence::Negation)),
        Rule::not => U::Not,
        Rule::exists => U::Test(F::Exists),
        Rule::isr => U::Test(F::Readable),
        Rule::isw => U::Test(F::Writable),
        Rule::isx => U::Test(F::Executable),
        Rule::isfile => U::Test(F::File),
        Rule::isdir => U::Test(F::Directory),
        Rule::islink => U::Test(F::Link),
        Rule::ispipe => U::Test(F::Pipe),
        Rule::issock => U::Test(F::Socket),
        Rule::isblock => U::Test(F::Block),
        Rule::ischar => U::Test(F::Character),
        _ => return None,
    };
    Some((operator, Precedence::Prefix))
}

/// Returns the operator between operands for a rule of the grammar.
pub(super) fn infix(rule: Rule) -> Option<(B, Precedence)> {
    use Precedence as T;
    Some(match rule {
        Rule::or | Rule::either => (B::Or, T::Or),
        Rule::and | Rule::both => (B::And, T::And),
        Rule::eq | Rule::same => (B::Eq, T::Comparison),
        Rule::ne | Rule::different => (B::Ne, T::Comparison),
        Rule::eql => (B::Eql, T::Comparison),
        Rule::neql => (B::Neql, T::Comparison),
        Rule::lt | Rule::below => (B::Lt, T::Comparison),
        Rule::le | Rule::at_most => (B::Le, T::Comparison),
        Rule::gt | Rule::above => (B::Gt, T::Comparison),
        Rule::ge | Rule::at_least => (B::Ge, T::Comparison),
        Rule::contains => (B::Contains, T::Comparison),
        Rule::matches => (B::Matches, T::Comparison),
        Rule::add | Rule::plus | Rule::sum_plus => (B::Add, T::Sum),
        Rule::sub | Rule::minus | Rule::sum_minus => (B::Sub, T::Sum),
        Rule::mul | Rule::times | Rule::sum_times => (B::Mul, T::Product),
        Rule::div | Rule::over | Rule::sum_over => (B::Div, T::Product),
        Rule::modulo | Rule::remainder | Rule::sum_remainder => (B::Mod, T::Product),
        Rule::pow => (B::Pow, T::Power),
        _ => return None,
    })
}
