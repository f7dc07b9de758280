//! Grammar of a line of ftsh, and the parser that pest derives from the grammar.
#![allow(missing_docs, reason = "the derived code has no documentation")]

/// Parser of lines, with a rule for each construct.
#[derive(pest_derive::Parser)]
#[grammar = "grammar/ftsh.pest"]
pub struct Grammar;

/// Text of the grammar, for tests that compare it with the lists of words.
pub const TEXT: &str = include_str!("../grammar/ftsh.pest");
