//! Evaluation of words, expressions and the functions of the language.

pub mod arguments;
mod expand;
mod expression;
mod field;
pub mod functions;
mod operators;
mod parameter;
mod redirects;

pub(crate) use self::expand::Expander;
pub(crate) use self::expression::{compute, local, unset_variable};
pub(crate) use self::parameter::branches_of;
pub(crate) use self::redirects::{named_descriptor, resolve_redirects, variable_name};
