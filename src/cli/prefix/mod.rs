//! A word before a command: `ftsh try 3 times -- rsync …` as the script that the command line stands for.
//!
//! The parser of scripts reads the heads, so that each clause of the language works here as well. The
//! words of the command become values in the tree. The printed tree is the script that runs, that a
//! journal keeps and that `-p` prints.

mod head;
mod help;
mod line;
mod mistake;
mod script;
mod words;

use std::ffi::OsString;

use anyhow::Result;

use self::line::{Line, asks_for_help};
use crate::cli::options::flags::{Flags, HEADS};

/// A command line that begins with a head.
#[derive(Debug)]
pub(super) struct Prefix {
    /// First head, the name of the script.
    pub head: &'static str,
    /// Text of the script.
    pub text: String,
    /// Builtin with the name of the program, and a script that runs the builtin.
    pub builtin: Option<(String, String)>,
}

impl Prefix {
    /// Reads the words after the options.
    ///
    /// # Errors
    ///
    /// Fails if a head is wrong or the command is missing: one line that marks the word.
    pub(super) fn read(words: &[OsString]) -> Result<Self> {
        let line = Line::split(words)?;
        let heads = line.heads()?;
        let head = heads.first().map_or(HEADS[0], |head| head.keyword);
        let builtin = script::builtin(&heads, line.command);
        Ok(Self { head, text: script::text(&heads, line.command)?, builtin })
    }

    /// Returns a message if the command is a builtin's name and no program along `PATH` has it.
    pub(super) fn missing_program(&self, has: impl Fn(&str) -> bool) -> Option<String> {
        let (name, script) = self.builtin.as_ref().filter(|(name, _)| !has(name))?;
        Some(format!(
            "{name}: not found along PATH; a script runs the builtin `{name}`: `ftsh -c {script}`"
        ))
    }
}

/// Returns the text that a command line asks for, if it asks for help about a head.
pub(super) fn help(flags: &Flags) -> Option<String> {
    let head = flags.is_prefix().then(|| asks_for_help(&flags.words)).flatten()?;
    help::text(head)
}
