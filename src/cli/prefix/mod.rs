//! A word before a command: `ftsh try 3 times -- rsync …` as the structure on one line that the words are.
//!
//! The parser of scripts reads the heads, so that each clause of the language works here as well. Words
//! of lists and of the command have quotes where the language would read more than themselves. The line
//! is the script that runs, that a journal keeps and that a branch on another machine gets: these need
//! a text.

mod head;
mod help;
mod line;
mod mistake;
mod words;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use anyhow::Result;

use self::head::{Head, ON};
use self::line::{Line, asks_for_help};
use self::words::{Marks, WordPlace, word};
use crate::cli::options::flags::{Flags, HEADS};
use ftsh_machine::builtins;
use ftsh_syntax::parse;

/// Program that runs a program, whatever builtin has its name.
const ENV: &str = "env ";

/// Variable with the number of a branch.
const SLOT: &str = "slot";

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
        let text = |program, argument| script(&heads, line.command, program, argument);
        let plain = text("", WordPlace::Argument);
        let name = line.command[0].to_str().filter(|name| builtins::named(name).is_some());
        let program = if name.is_some() { ENV } else { "" };
        // A program on another machine may have the name.
        let name = name.filter(|_| heads.iter().all(|head| head.keyword != "on"));
        let builtin =
            name.map(|name| (name.to_owned(), format!("'{}'", plain.replace('\'', r"'\''"))));
        // Scripts refuse some words without quotes.
        let usual = text(program, WordPlace::Argument);
        let is_script = parse(head, &usual).is_ok();
        let text = if is_script { usual } else { text(program, WordPlace::Quoted) };
        Ok(Self { head, text, builtin })
    }

    /// Returns a message if the command is a builtin's name and no program along `PATH` has it.
    pub(super) fn missing_program(&self, has: impl Fn(&str) -> bool) -> Option<String> {
        let (name, script) = self.builtin.as_ref().filter(|(name, _)| !has(name))?;
        Some(format!(
            "{name}: not found along PATH; a script runs the builtin `{name}`: `ftsh -c {script}`"
        ))
    }
}

/// Returns the text of the script that runs a command inside heads.
fn script(heads: &[Head], command: &[OsString], program: &str, place: WordPlace) -> String {
    let mut marks = Marks::default();
    let mut text = String::new();
    let mut exported = String::new();
    let mut export = |name: &str| exported += &format!("{name}=\"${{{name}}}\" ");
    let branch = word(command[0].as_bytes(), &marks, WordPlace::List);
    for (at, head) in heads.iter().enumerate() {
        text += &match head.keyword {
            "on" => head.text.replacen(ON, &branch, 1),
            _ => head.text.clone(),
        };
        text += if reads_again(heads, at) { " same input -- " } else { " -- " };
        if let Some(list) = head.list.as_ref().filter(|_| head.keyword != "on") {
            marks.enter(&list.variable, list.is_named);
            if list.is_named {
                export(&list.variable);
            }
        }
    }
    let has_slot = |word: &OsString| {
        let read = [&b"$slot"[..], b"${slot"].map(|it| (it, it.len()));
        read.iter().any(|(it, length)| word.as_bytes().windows(*length).any(|at| at == *it))
    };
    let is_named = |head: &Head| head.list.as_ref().is_some_and(|list| list.variable == SLOT);
    if heads.iter().any(|head| head.keyword == "forall") && !heads.iter().any(is_named) {
        marks.add(SLOT);
        if command.iter().any(has_slot) {
            export(SLOT);
        }
    }
    text += &exported;
    text += program;
    let name =
        if program.is_empty() && place == WordPlace::Argument { WordPlace::Name } else { place };
    let words = command.iter().enumerate();
    let words =
        words.map(|(at, it)| word(it.as_bytes(), &marks, if at == 0 { name } else { place }));
    text += &words.collect::<Vec<_>>().join(" ");
    let has_mark = command.iter().any(|word| marks.are_in(word.as_bytes()));
    if let Some(innermost) = marks.innermost().filter(|_| !has_mark) {
        text += &format!(" \"${{{innermost}}}\"");
    }
    // Branches read nothing in any case.
    if heads.iter().any(|head| head.keyword == "forany" && !head.reads_words()) {
        text += " < /dev/null";
    }
    text
}

/// Returns true if attempts that follow the first are to read the same input: the command or a loop
/// inside reads the standard input of the script.
fn reads_again(heads: &[Head], at: usize) -> bool {
    let reads = heads[at..].iter().find(|head| head.list.is_some()).is_none_or(Head::reads_words);
    heads[at].is_repeated && reads && heads[..at].iter().all(|head| head.list.is_none())
}

/// Returns the text that a command line asks for, if it asks for help about a head.
pub(super) fn help(flags: &Flags) -> Option<String> {
    let head = flags.is_prefix().then(|| asks_for_help(&flags.words)).flatten()?;
    help::text(head)
}
