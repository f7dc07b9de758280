//! Evaluation of words, expressions and the functions of the language.

pub(crate) mod amount;
pub mod arguments;
pub(crate) mod expand;
pub(crate) mod expression;
pub mod functions;
pub(crate) mod operators;
pub(crate) mod parameter;
pub(crate) mod replacing;
pub(crate) mod word_call;
