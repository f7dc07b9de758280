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

pub(super) use self::help::help;
use self::line::Line;
use super::flags::Flags;
use super::options;

/// Words that begin a command line of this form.
pub const HEADS: [&str; 5] = ["try", "limit", "forany", "forall", "on"];

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

/// Returns true if the words after the options begin with a head.
pub(super) fn is_prefix(flags: &Flags) -> bool {
    let has_script = !options::INSTEAD_OF_SCRIPT.iter().any(|option| flags.has(option));
    has_script && flags.words.first().is_some_and(|word| head(word).is_some())
}

/// Returns the head with this name.
pub(super) fn head(word: &OsString) -> Option<&'static str> {
    HEADS.into_iter().find(|head| word == head)
}
