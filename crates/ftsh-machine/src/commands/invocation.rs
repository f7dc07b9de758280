//! Expanded commands, and their invocation.

use std::sync::Arc;

use bstr::BString;

use crate::effect::{Action, Environment};
use crate::values::variables::SavedVariable;
use ftsh_syntax::ast::Name;

/// Command with expanded words.
#[derive(Clone, Debug)]
pub(crate) struct Expanded {
    /// Words; at least one.
    pub words: Vec<BString>,
    /// Variables for this command only.
    pub assignments: Vec<(Name, BString)>,
    /// Exported variables, if the command may be a program.
    pub environment: Option<Arc<Environment>>,
    /// Kind of the command.
    pub kind: CommandTarget,
    /// Words as typed, for messages.
    pub text: String,
}

/// Kind of a command, by its first word.
#[derive(Clone, Debug)]
pub(crate) enum CommandTarget {
    /// A function.
    Function(Name),
    /// A builtin with this name.
    Builtin(&'static str),
    /// A program.
    Program,
}

/// Call of a function.
pub(crate) struct FunctionCall {
    /// Name of the function.
    pub name: Name,
    /// Name of the function, followed by the arguments.
    pub args: Vec<BString>,
    /// True if the caller needs a value.
    pub wants_value: bool,
    /// Previous values of the variables set for this call only.
    pub restore: Vec<SavedVariable>,
    /// Command as written, for the log; `None` in an expression, where the value is logged.
    pub command: Option<String>,
}

/// Driver's part of a command.
pub(crate) struct CommandStart {
    /// Action of the driver.
    pub action: Action,
    /// Variables set by `read`.
    pub reads: Vec<Name>,
    /// True if the task ends with the command (`exec`).
    pub last: bool,
}

impl CommandStart {
    /// Creates a command that only performs an action.
    pub(crate) fn new(action: Action) -> Self {
        Self { action, reads: Vec::new(), last: false }
    }
}
