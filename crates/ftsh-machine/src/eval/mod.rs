//! Evaluation of words, expressions and the functions of the language.

pub mod arguments;
mod expand;
mod expression;
mod field;
pub mod functions;
mod operators;
mod parameter;

pub(crate) use self::expression::{compute, local, shift};
pub(crate) use self::parameter::branches_of;
