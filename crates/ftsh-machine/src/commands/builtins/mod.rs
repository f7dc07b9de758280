//! Builtins: commands that the shell executes itself, a row for each.

mod builtin;
mod directories;
mod endings;
mod programs;
mod streams;
mod variables;

pub(crate) use self::builtin::Arguments;
pub use self::builtin::{Builtin, Example};
pub(crate) use self::directories::begin_in;

/// Rows in the order of the documentation.
const GROUPS: [&[Builtin]; 5] = [
    directories::BUILTINS,
    streams::BUILTINS,
    variables::BUILTINS,
    programs::BUILTINS,
    endings::BUILTINS,
];

/// Returns all builtins, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Builtin> + Clone {
    GROUPS.into_iter().flatten()
}

/// Returns the names of all builtins, in the order of the documentation.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    all().map(|builtin| builtin.name)
}

/// Returns the builtin with this name.
pub fn named(name: impl AsRef<[u8]>) -> Option<&'static Builtin> {
    all().find(|builtin| builtin.name.as_bytes() == name.as_ref())
}
