//! A command whose words are known, and what it runs.

use std::sync::Arc;

use bstr::BString;

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
    /// A builtin with this name.
    Builtin(&'static str),
    /// A program.
    Program,
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
