//! A command whose words are known, and what it runs.

use std::sync::Arc;

use bstr::{BString, ByteSlice};

use crate::effect::{Action, Environment};
use crate::values::variables::Kept;
use ftsh_syntax::ast::Name;

/// A command whose words are expanded.
#[derive(Clone, Debug)]
pub struct Expanded {
    /// The words; at least one.
    pub words: Vec<BString>,
    /// Variables for this command only.
    pub assignments: Vec<(Name, BString)>,
    /// The exported variables, if it may be a program.
    pub environment: Option<Arc<Environment>>,
    /// What it is.
    pub kind: Kind,
    /// As one would type them, for messages.
    pub text: String,
}

/// What a command's first word names.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A function.
    Function(Name),
    /// A builtin.
    Builtin(Builtin),
    /// A program.
    Program,
}

impl Kind {
    /// Whether it runs commands of the script, which write where it does.
    pub fn calls(&self) -> bool {
        matches!(self, Self::Function(_) | Self::Builtin(Builtin::Source))
    }
}

/// A call about to happen.
pub struct Call {
    /// The function.
    pub name: Name,
    /// Its name, and its arguments.
    pub args: Vec<BString>,
    /// Whether the caller wants a value.
    pub wants_value: bool,
    /// Variables set for this call only, as they were.
    pub restore: Vec<Kept>,
    /// The command as written, for the log; none in an expression, whose value is told.
    pub command: Option<String>,
}

/// The builtins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    Cd,
    Defer,
    Echo,
    Exec,
    Exit,
    Export,
    Failure,
    Giveup,
    Local,
    Pwd,
    Read,
    Sleep,
    Source,
    Success,
    Umask,
    Unset,
}

impl Builtin {
    /// The builtin of this name.
    pub fn named(name: &BString) -> Option<Self> {
        Some(match name.as_bytes() {
            b"cd" => Self::Cd,
            b"defer" => Self::Defer,
            b"echo" => Self::Echo,
            b"exec" => Self::Exec,
            b"exit" => Self::Exit,
            b"export" => Self::Export,
            b"failure" => Self::Failure,
            b"giveup" => Self::Giveup,
            b"local" => Self::Local,
            b"pwd" => Self::Pwd,
            b"read" => Self::Read,
            b"sleep" => Self::Sleep,
            b"source" => Self::Source,
            b"success" => Self::Success,
            b"umask" => Self::Umask,
            b"unset" => Self::Unset,
            _ => return None,
        })
    }
}

/// What the driver does for a command.
pub struct Start {
    /// What it does.
    pub action: Action,
    /// The variables that `read` sets.
    pub reads: Vec<Name>,
    /// Whether the task ends with it (`exec`).
    pub last: bool,
}

impl Start {
    /// A command that does this and nothing else.
    pub fn new(action: Action) -> Self {
        Self { action, reads: Vec::new(), last: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftsh_syntax::vocabulary::BUILTINS;

    #[test]
    fn every_builtin_of_the_language_is_one() {
        let named: Vec<Builtin> =
            BUILTINS.iter().filter_map(|name| Builtin::named(&BString::from(*name))).collect();
        assert_eq!(named.len(), BUILTINS.len());
    }
}
