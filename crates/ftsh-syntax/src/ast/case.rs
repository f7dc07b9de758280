//! `case`, with its arms.

use super::{Block, Expr, Word};
use crate::span::Span;

/// `case value … when patterns … else … end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Value compared with the patterns.
    pub value: Expr,
    /// Comments before the first arm.
    pub comments: Block,
    /// Arms in order; the first arm that matches runs.
    pub arms: Vec<CaseArm>,
    /// Body of `else`.
    pub otherwise: Option<Block>,
}

/// `when patterns`, with the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseArm {
    /// Span of the line with the patterns.
    pub span: Span,
    /// Patterns, at least one.
    pub patterns: Vec<Word>,
    /// Body, which runs if a pattern matches.
    pub body: Block,
}

impl Case {
    /// Returns a `case` without arms.
    pub(crate) fn new(value: Expr) -> Self {
        Self { value, comments: Block::default(), arms: Vec::new(), otherwise: None }
    }

    /// Returns the patterns of all arms.
    pub fn patterns(&self) -> impl Iterator<Item = &Word> {
        self.arms.iter().flat_map(|arm| &arm.patterns)
    }

    /// Returns the blocks in the order of the text.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let arms = self.arms.iter().map(|arm| &arm.body);
        std::iter::once(&self.comments).chain(arms).chain(&self.otherwise)
    }

    /// Returns the blocks in the order of the text, to change them.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        let arms = self.arms.iter_mut().map(|arm| &mut arm.body);
        std::iter::once(&mut self.comments).chain(arms).chain(&mut self.otherwise)
    }
}
