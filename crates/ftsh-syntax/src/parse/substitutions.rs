//! Substitutions of other shells, with `$` or backquotes, and their replacements.

use super::{KnownNames, braces};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::is_name;

/// Returns the error for the `` `command` `` at `span` of a script's `text`.
pub(super) fn backquotes(span: Span, text: &str) -> SyntaxError {
    let command = text[span.start..span.end].trim_matches('`').trim();
    let line = text[..span.start].rsplit(['\n', ';']).next().unwrap_or_default().trim();
    let asks =
        line.rsplit(' ').next().is_some_and(|it| matches!(it, "if" | "while" | "!" | "&&" | "||"));
    SyntaxError::new(Slug::CommandSubstitution, span, "backquotes don't run commands").hint(
        if asks && is_end(&text[span.end..]) {
            hint!("write `{line} {command}`")
        } else if command.is_empty()
            || command.contains('\n')
            || !is_script(&format!("a=$({command})"))
        {
            hint!("write `$(command)`")
        } else {
            hint!("write `$({command})`")
        },
    )
}

/// Returns the error for an unknown `$` at `span` of a script's `text`.
pub(super) fn variable(span: Span, text: &str) -> SyntaxError {
    let span = Span::new(span.start, span.end.max(closed(text, span.start)));
    let (written, after) = (&text[span.start..span.end], &text[span.end..]);
    let (slug, message, hint) = if written.starts_with("$((") {
        (
            Slug::Arithmetic,
            "this is not a calculation of `$((…))`",
            hint!(
                "calculate with numbers, names, calls and parentheses, `$((2 * n + 1))`; a power is `x=2 .pow. $n`"
            ),
        )
    } else if let Some(command) = written.strip_prefix("$(") {
        let inside = command.strip_suffix(')').map(str::trim);
        let file = inside.and_then(|inside| inside.strip_prefix('<')).map(str::trim);
        match (inside, file) {
            (_, Some(file)) if !file.is_empty() && !file.contains(' ') => {
                (Slug::CommandSubstitution, "`$(…)` holds commands", hint!("write `$(cat {file})`"))
            }
            (Some(inside), _) if inside.trim_matches([';', ' ', '\n']).is_empty() => (
                Slug::CommandSubstitution,
                "there is no command in `$()`",
                hint!("write `$(command)`, or `\"\"` for an empty text"),
            ),
            _ => (
                Slug::CommandSubstitution,
                "this `$(` has no `)`",
                hint!("write `$(command)`; a `)` that closes nothing needs quotes"),
            ),
        }
    } else if let Some((call, _)) = written.strip_prefix("${").and_then(|it| it.split_once('('))
        && is_name(call)
        && !written.ends_with('}')
        && after.starts_with('"')
    {
        (
            Slug::UnknownSubstitution,
            "this is not a call",
            hint!("commas separate the arguments of a call: `${{{call}($a, \"b c\")}}`"),
        )
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
            _ if calculation(inside).is_some() => {
                hint!("write `$(({}))`", calculation(inside).unwrap_or_default())
            }
            _ if inside.starts_with('$') => hint!(
                "one `$` is enough: `{}`; a variable can't be read by a name in another variable",
                inside.trim_end_matches('}')
            ),
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

/// Returns the calculation in `${n * 2}`.
fn calculation(inside: &str) -> Option<&str> {
    let sum = inside.strip_suffix('}')?.trim();
    let is_sum = [" + ", " - ", " * ", " / ", " % "].iter().any(|symbol| sum.contains(symbol));
    (is_sum && is_script(&format!("x=$(({sum}))"))).then_some(sum)
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

/// Returns true if a proposal parses.
pub(super) fn is_script(text: &str) -> bool {
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
