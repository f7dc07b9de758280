//! Processes of the whole system: lists, features for supervision, and killing of process trees.

mod list;
mod scanner;
mod terminal_read;

pub(crate) use self::list::{
    ProcDir, ProcessEntry, TagLookup, by_parent, has_proc, lists_children,
};
pub(crate) use self::scanner::{ProcessScanner, Scan};
pub(crate) use self::terminal_read::{TerminalActivity, terminal_activity};
