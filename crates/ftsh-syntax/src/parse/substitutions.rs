//! Substitutions of other shells, with `$` or backquotes, and their replacements.

use super::bashisms::operator;
use super::{KnownNames, braces};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{is_loop, is_name};

/// Programs often run in `$( )` without arguments, where their names look like variables.
const PROGRAMS: [&str; 13] = [
    "arch", "date", "hostname", "id", "ls", "mktemp", "nproc", "pwd", "tty", "uname", "uptime",
    "who", "whoami",
];

/// Maximum length of a command that a hint repeats.
const MAX_COMMAND_LENGTH: usize = 40;

/// Returns the [`PROGRAMS`] that are meant as programs in `$( )`.
///
/// A text with a variable of the same name would also mention the name elsewhere.
pub(super) fn programs(text: &str) -> Vec<&'static str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_other_use = |at: usize, name: &str| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        !before.ends_with(is_word) && !after.starts_with(is_word) && !before.ends_with("$(")
    };
    if !text.contains("$(") {
        return Vec::new();
    }
    let unknown = |name: &&str| !text.match_indices(*name).any(|(at, _)| is_other_use(at, name));
    PROGRAMS.into_iter().filter(unknown).collect()
}

/// Returns the error for the `` `command` `` at `span` of a script's `text`.
pub(super) fn backquotes(span: Span, text: &str) -> SyntaxError {
    let command = text[span.start..span.end].trim_matches('`').trim();
    SyntaxError::new(Slug::CommandSubstitution, span, "backquotes don't run commands")
        .hint(collected(command, span, text))
}

/// Returns the error for an unknown `$` at `span` of a script's `text`.
pub(super) fn variable(span: Span, text: &str) -> SyntaxError {
    let span = Span::new(span.start, span.end.max(closed(text, span.start)));
    let (written, after) = (&text[span.start..span.end], &text[span.end..]);
    let (slug, message, hint) = if let Some(sum) = written.strip_prefix("$((") {
        let (target, _) = target(span, text);
        let target = if target == "v" { "n" } else { target };
        let sum = words_for(sum.strip_suffix("))").unwrap_or(sum).trim())
            .filter(|sum| is_script(&format!("{target}={sum}")))
            .unwrap_or_else(|| "$a + 1".to_owned());
        (
            Slug::Arithmetic,
            "`$(( ))` doesn't calculate",
            hint!("write an assignment, with blanks around operators: `{target}={sum}`"),
        )
    } else if let Some(command) = written.strip_prefix("$(") {
        let command = command.strip_suffix(')').unwrap_or(command).trim();
        (Slug::CommandSubstitution, "`$( )` doesn't run commands", collected(command, span, text))
    } else if written.starts_with("${") && !written.ends_with('}') && after.starts_with('"') {
        (
            Slug::NestedQuotes,
            "a `${` can't hold quotes inside quotes",
            hint!("assign the default to a variable first, or use it without the inner quotes"),
        )
    } else if written.starts_with("${") && !written.ends_with('}') {
        (Slug::UnclosedBrace, "this `${` has no `}`", hint!("write `${{name}}`"))
    } else if let Some(inside) = written.strip_prefix("${") {
        let hint = match braces::replacement(inside.trim_end_matches('}')) {
            Some(braces::BraceReplacement::Variable(code)) => hint!("write `{code}`"),
            Some(braces::BraceReplacement::Value(code)) => {
                let (target, then) = target(span, text);
                if then.is_empty() {
                    hint!("write `{target}={code}`")
                } else {
                    hint!("write `${{{code}}}`")
                }
            }
            Some(braces::BraceReplacement::Other(hint)) => hint,
            None => hint!(
                "there are `${{name}}`, `${{name:-default}}`, `${{name:+alternative}}` and `${{name:?text}}`; \
                 functions cover other cases, like `v=replace($name, 'regex', \"text\")`"
            ),
        };
        (Slug::UnknownSubstitution, "unknown kind of substitution", hint)
    } else if written == "$?" {
        (
            Slug::SpecialVariable,
            "there is no `$?`: a failure ends the group",
            hint!("in `catch`, `$error_code` is the exit code and `$error` the message"),
        )
    } else if written == "$!" {
        (
            Slug::SpecialVariable,
            "there is no `$!`",
            hint!("`forall` runs commands in parallel and waits for them"),
        )
    } else {
        (
            Slug::VariableName,
            "no variable can have this name",
            hint!("for the characters themselves, write `\\{written}`"),
        )
    };
    SyntaxError::new(slug, span, message).hint(hint)
}

/// Returns the end of the parentheses of a `$(` at `start`, if they are closed on the line, and
/// otherwise `start`.
fn closed(text: &str, start: usize) -> usize {
    let Some(inside) = text[start..].strip_prefix('$').filter(|it| it.starts_with('(')) else {
        return start;
    };
    let mut depth = 0;
    for (at, c) in inside.char_indices().take_while(|(_, c)| *c != '\n') {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return start + 1 + at + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    start
}

/// Returns the hint for the output of `command`.
fn collected(command: &str, span: Span, text: &str) -> Hint {
    let (target, then) = target(span, text);
    if let Some((name @ ("basename" | "dirname"), path)) = command.split_once(' ')
        && !path.contains([' ', '"', '\''])
    {
        return hint!("write `{target}={name}({path})`{then}");
    }
    let read = command.strip_prefix('<').map(|file| format!("cat {}", file.trim_start()));
    let command = read.as_deref().unwrap_or(command);
    let is_short =
        !command.is_empty() && command.len() <= MAX_COMMAND_LENGTH && !command.contains('\n');
    let fits = is_short && is_script(&format!("{command} -> {target}"));
    let command = if fits { command } else { "command" };
    match loop_head(&text[..span.start]) {
        Some(head) => hint!("write `{command} -> v`, then `{head} lines($v)`"),
        None => hint!("write `{command} -> {target}`{then}"),
    }
}

/// Returns the head of a loop if a text ends where its list begins.
fn loop_head(before: &str) -> Option<&str> {
    let head = before.rsplit(['\n', ';']).next()?.trim();
    let mut words = head.split_whitespace();
    let is_head = words.next().is_some_and(is_loop) && words.next().is_some_and(is_name);
    (is_head && words.next() == Some("in") && words.next().is_none()).then_some(head)
}

/// Returns true if a proposal parses.
fn is_script(text: &str) -> bool {
    let known = KnownNames { is_open: true, ..KnownNames::default() };
    super::parse_with("hint", text, known).is_ok()
}

/// Returns the variable to assign, and the instruction after the assignment.
///
/// In `name=$(…)` the variable is `name`, and no instruction follows.
fn target(span: Span, text: &str) -> (&str, &'static str) {
    let (before, after) = (&text[..span.start], &text[span.end..]);
    let before = before.strip_suffix('"').unwrap_or(before);
    let after = after.strip_prefix('"').unwrap_or(after);
    let line = before.rsplit(['\n', ';']).next().unwrap_or_default().trim_start();
    match line.strip_suffix('=') {
        Some(name) if is_name(name) && is_end(after) => (name, ""),
        _ => ("v", ", then use `$v`"),
    }
}

fn is_end(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t', '\r']);
    text.is_empty() || text.starts_with(['\n', ';', '#'])
}

/// Translates a sum of numbers and variables to operators of this shell.
fn words_for(sum: &str) -> Option<String> {
    // The longer symbol comes first: `**` is not `*`.
    let symbols = ["**", "+", "-", "*", "/", "%", "(", ")"];
    let mut words = Vec::new();
    let mut rest = sum.trim_start();
    while !rest.is_empty() {
        let symbol = symbols.iter().find(|symbol| rest.starts_with(**symbol));
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '{' | '}')));
        let length = symbol.map_or(end.unwrap_or(rest.len()), |symbol| symbol.len());
        let (word, after) = rest.split_at(length);
        let name = word.strip_prefix('$').unwrap_or(word);
        let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        words.push(match word {
            "(" | ")" | "+" | "-" | "*" | "/" | "%" => word.to_owned(),
            _ if is_name(name) => format!("${name}"),
            _ if word.parse::<u64>().is_ok() => word.to_owned(),
            _ => operator(word)?.to_owned(),
        });
        rest = after.trim_start();
    }
    Some(words.join(" ").replace("( ", "(").replace(" )", ")"))
}
