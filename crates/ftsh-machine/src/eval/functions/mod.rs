//! Functions of the language: a row for each, and their calls.
//!
//! A function's name, parameters and help are its signature in [`vocabulary`], since the parser
//! refuses calls with the wrong number of arguments. Everything else about a function is its row
//! here.

mod format;
mod function;
mod json;
mod lists;
mod numbers;
mod outside;
mod paths;
mod texts;
mod versions;

use ftsh_syntax::vocabulary;

pub(crate) use self::function::call;
pub use self::function::{Example, Function};

/// Rows in the order of the vocabulary.
const GROUPS: [&[Function]; 9] = [
    lists::SPLITTING,
    json::FUNCTIONS,
    texts::FUNCTIONS,
    lists::JOINING,
    format::FUNCTIONS,
    numbers::FUNCTIONS,
    versions::FUNCTIONS,
    paths::FUNCTIONS,
    outside::FUNCTIONS,
];

/// Returns all functions, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Function> {
    GROUPS.into_iter().flatten()
}

/// Returns the function of the language with this name.
pub fn named(name: &str) -> Option<&'static Function> {
    all().find(|function| function.signature.name == name)
}

const _: () = {
    let (mut rows, mut at) = (0, 0);
    while at < GROUPS.len() {
        rows += GROUPS[at].len();
        at += 1;
    }
    let signatures = vocabulary::FUNCTIONS.len();
    assert!(
        rows == signatures,
        "a signature of `ftsh_syntax::vocabulary` has no row in `eval/functions/`"
    );
};
