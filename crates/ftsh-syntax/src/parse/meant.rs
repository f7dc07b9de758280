//! Commands that were meant to be something else: a form of the language, a call, an assignment.

use std::collections::{HashMap, HashSet};

use super::{Result, bashisms, literal};
use crate::ast::{Simple, Word, WordPart};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{HEADS, KEYWORDS, function, is_name};

/// Builtins that are often called with parentheses.
const CALLED: [&str; 8] = ["cd", "echo", "exit", "failure", "giveup", "read", "sleep", "source"];

/// Functions of other languages that print.
const PRINTERS: [&str; 3] = ["print", "println", "puts"];

/// Refuses a command of the script `text` that was meant to be something else.
pub(super) fn check(simple: &Simple, functions: &HashSet<&str>, text: &str) -> Result<()> {
    let Some(word) = simple.words.first() else { return Ok(()) };
    let Some(WordPart::Bare(begin)) = word.parts.first() else { return Ok(()) };
    let refuse = |slug: Slug, message: String, hint: Hint| {
        Err(Box::new(SyntaxError::new(slug, word.span, message).hint(hint)))
    };
    if let Some((called, _)) = begin.split_once('(')
        && is_name(called)
        && let Some(hint) = call(called, functions, &text[word.span.start..simple.span.end])
    {
        let message = format!("a command has no parentheses: `{called}(` calls nothing here");
        return refuse(Slug::CallAsCommand, message, hint);
    }
    let Some(name) = literal::bare(word).filter(|name| !functions.contains(name)) else {
        return Ok(());
    };
    let second = simple.words.get(1).and_then(literal::bare);
    let is_assigned = |word| bashisms::assigned_list(word, simple.words.get(2)).is_some();
    if let Some(hint) = form(name, second).filter(|_| !second.is_some_and(is_assigned)) {
        let message = format!("this is not a form of `{name}`");
        return refuse(Slug::MisplacedKeyword, message, hint);
    }
    if name == "set"
        && let Some(variable) = simple.words.get(1).and_then(literal::bare)
        && (is_name(variable) || simple.words.len() > 2 && !takes_option(variable))
    {
        let flags = if is_name(variable) { "" } else { variable };
        let words = &simple.words[if flags.is_empty() { 1 } else { 2 }..];
        let variable = words[0].span;
        let variable = &text[variable.start..variable.end];
        let hint = match words {
            [first, ..] if flags == "--" => hint!(
                "write `list words in {}`: the script keeps its own arguments",
                &text[first.span.start..simple.span.end]
            ),
            _ if !is_name(variable) => {
                hint!("write `name=value`, and `export name=value` for programs")
            }
            [_, value] if flags.contains('x') => {
                hint!("write `export {variable}={}`", &text[value.span.start..value.span.end])
            }
            [_, value] => hint!("write `{variable}={}`", &text[value.span.start..value.span.end]),
            _ => hint!("write `{variable}=value`"),
        };
        return refuse(Slug::OtherShell, "there is no `set` in ftsh".to_owned(), hint);
    }
    if let Some(keyword) = name.strip_suffix(':')
        && (KEYWORDS.contains(&keyword) || HEADS.contains(&keyword) || keyword == "finally")
    {
        let message = "there is no `:` after a keyword".to_owned();
        return refuse(Slug::OtherShell, message, bashisms::block());
    }
    if name == "$" && simple.words.len() > 1 {
        let rest = text[word.span.end..simple.span.end].trim_start();
        let message = "a `$` alone is the prompt of another shell".to_owned();
        return refuse(Slug::OtherShell, message, hint!("write `{rest}`"));
    }
    Ok(())
}

/// Returns true for flags of bash with the name of an option behind them, as in `-euo pipefail`.
fn takes_option(flags: &str) -> bool {
    !flags.starts_with("--") && flags.contains('o')
}

/// Returns the hint for a word of the language in no form of it.
fn form(name: &str, second: Option<&str>) -> Option<Hint> {
    Some(match name {
        "limit" => hint!(
            "`limit 5 minutes` must be alone on its line, and limits the commands up to its `end`; \
             a program of this name has quotes: `\"limit\" x`"
        ),
        "in" => hint!("one directory comes after `in`: `in \"my files\"`"),
        "list" if second == Some("append") => hint!("write `list add name \"a word\"`"),
        "list" => hint!(
            "write `list name in a b` or `list add name c`; a program of this name has quotes: \
             `\"list\" x`"
        ),
        "channel" => hint!(
            "a declaration stands on a line of its own: `channel mirror at most 4`; a program of \
             this name has quotes: `\"channel\" x`"
        ),
        "accept" => hint!(
            "the statuses are one word before a command: `accept 24,3 rsync …`; a program of this \
             name has quotes: `\"accept\" x`"
        ),
        "keep" => hint!(
            "`keep` stands before a command: `keep ssh-agent`; a program of this name has quotes: \
             `\"keep\" x`"
        ),
        "args" => hint!(
            "the first line declares the arguments, like `args -v --out=FILE name...`; a program \
             of this name has quotes: `\"args\" x`"
        ),
        "use" => hint!(
            "the beginning of a script names a file, like `use lib.ftsh`; a program of this name \
             has quotes: `\"use\" x`"
        ),
        _ => return None,
    })
}

/// Returns the hint for a command that is `written` like a call.
fn call(called: &str, functions: &HashSet<&str>, written: &str) -> Option<Hint> {
    let inside = written.strip_prefix(called)?.strip_prefix('(')?.strip_suffix(')')?;
    let words = inside.split(',').map(str::trim).collect::<Vec<_>>().join(" ");
    if functions.contains(called) || CALLED.contains(&called) {
        return Some(hint!("write `{}`", format!("{called} {words}").trim_end()));
    }
    if PRINTERS.contains(&called) {
        return Some(hint!("write `echo {words}`"));
    }
    function(called)?;
    Some(hint!("the value of a call is assigned, `v={called}({inside})`, or written in a word"))
}

/// Names of variables in a script: how often the text reads them, and how often it sets them.
#[derive(Default)]
pub(super) struct NameCounts<'s> {
    reads: HashMap<&'s str, usize>,
    sets: HashMap<&'s str, usize>,
}

impl<'s> NameCounts<'s> {
    /// Finds the names in a text. What only looks like a name counts as well.
    pub(super) fn of(text: &'s str) -> Self {
        let mut names = Self::default();
        for line in text.lines() {
            let mut is_quoted = false;
            for (at, piece) in line.split('$').enumerate() {
                if at > 0 && !is_quoted {
                    *names.reads.entry(name_at(piece.trim_start_matches('{'))).or_default() += 1;
                }
                // Text in single quotes is for another program.
                is_quoted ^= piece.matches('\'').count() % 2 == 1;
            }
            let (mut next, mut all) = (false, false);
            for word in line.split([' ', '\t', ';', '|', '(']) {
                let assigned = word.split_once('=').map(|(name, _)| name);
                let target = word.strip_prefix("->").map(|it| it.trim_start_matches(['>', '&']));
                let found = assigned.or(target.filter(|it| !it.is_empty()));
                if let Some(name) = found.or((next || all).then(|| name_at(word))) {
                    *names.sets.entry(name).or_default() += 1;
                }
                next = target == Some("")
                    || matches!(word, "for" | "forany" | "forall" | "list" | "add" | "local");
                all |= matches!(word, "read" | "args" | "export" | "unset");
            }
        }
        names
    }

    fn is_read_and_set_once(&self, name: &str) -> bool {
        self.reads.contains_key(name) && self.sets.get(name).is_none_or(|sets| *sets < 2)
    }
}

/// Refuses `x=a b` in the script `text`, if the script reads `$x` and sets it nowhere else.
pub(super) fn check_assignments<'n>(
    simple: &Simple,
    functions: &HashSet<&str>,
    text: &str,
    names: impl Fn() -> &'n NameCounts<'n>,
) -> Result<()> {
    let Some(last) = simple.words.last() else { return Ok(()) };
    for (name, value) in &simple.assignments {
        let Some(begin) = literal::bare(value) else { continue };
        let start = value.span.start - name.len() - 1;
        if begin == "!" {
            let negated = text[value.span.end..simple.span.end].trim_start();
            let span = Span::new(start, simple.span.end);
            let message = "`!` has parentheses in an assignment";
            let error = SyntaxError::new(Slug::MisplacedSymbol, span, message);
            return Err(Box::new(error.hint(hint!("write `{name}=(! {negated})`"))));
        }
        let command = &text[value.span.end..simple.span.end];
        let span = Span::new(start, simple.span.end);
        if let Some(element) = begin.strip_prefix('[').filter(|_| ends_list(last)) {
            let words = format!("{element}{command}").replace([',', ']'], " ");
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            let error = SyntaxError::new(Slug::Array, span, "a list has no brackets");
            return Err(Box::new(error.hint(hint!("write `list {name} in {words}`"))));
        }
        let is_text = |word| {
            literal::bare(word)
                .is_some_and(|it| !it.contains(['-', '/', '.']) && !functions.contains(it))
        };
        if begin.is_empty()
            || !simple.words.iter().all(is_text)
            || !names().is_read_and_set_once(name)
        {
            continue;
        }
        let message = format!("`{name}` would be set for the command `{}` only", command.trim());
        let error = SyntaxError::new(Slug::AssignmentBlank, span, message);
        let hint = hint!(
            "a value with spaces has quotes: `{name}=\"{begin}{command}\"`; a variable for one \
             command only: `env {name}={begin}{command}`"
        );
        return Err(Box::new(error.hint(hint)));
    }
    Ok(())
}

/// Returns true for a last word like `2]`.
fn ends_list(word: &Word) -> bool {
    matches!(word.parts.last(), Some(WordPart::Bare(text)) if text.ends_with(']'))
}

/// Returns the name at the beginning of a text; empty if there is none.
fn name_at(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}
