//! Operators and their precedence.

use super::Rule;
use crate::ast::{BinaryOperator as B, FileTest as F, UnaryOperator as U};

/// Precedence of operators, from the loosest to the tightest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    Range,
    Or,
    And,
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
pub(super) fn prefix(rule: Rule) -> Option<U> {
    Some(match rule {
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
    })
}

/// Returns the operator between operands for a rule of the grammar.
pub(super) fn infix(rule: Rule) -> Option<(B, Precedence)> {
    use Precedence as T;
    Some(match rule {
        Rule::or => (B::Or, T::Or),
        Rule::and => (B::And, T::And),
        Rule::eq => (B::Eq, T::Comparison),
        Rule::ne => (B::Ne, T::Comparison),
        Rule::eql => (B::Eql, T::Comparison),
        Rule::neql => (B::Neql, T::Comparison),
        Rule::lt => (B::Lt, T::Comparison),
        Rule::le => (B::Le, T::Comparison),
        Rule::gt => (B::Gt, T::Comparison),
        Rule::ge => (B::Ge, T::Comparison),
        Rule::contains => (B::Contains, T::Comparison),
        Rule::matches => (B::Matches, T::Comparison),
        Rule::add => (B::Add, T::Sum),
        Rule::sub => (B::Sub, T::Sum),
        Rule::mul => (B::Mul, T::Product),
        Rule::div => (B::Div, T::Product),
        Rule::modulo => (B::Mod, T::Product),
        Rule::pow => (B::Pow, T::Power),
        _ => return None,
    })
}
