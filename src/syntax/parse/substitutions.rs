//! Substitutions that other shells make where a `$` or a backquote stands, and what is written here.

use super::bashisms::operator;
use super::braces;
use crate::syntax::error::SyntaxError;
use crate::syntax::span::Span;
use crate::syntax::vocabulary::is_name;

/// Programs that are run in `$( )` without arguments, where they look like variables.
const PROGRAMS: [&str; 13] = [
    "arch", "date", "hostname", "id", "ls", "mktemp", "nproc", "pwd", "tty", "uname", "uptime",
    "who", "whoami",
];

/// Longer commands aren't said again in a hint.
const LONGEST: usize = 40;

/// Those of [`PROGRAMS`] that are meant as programs if they stand in `$( )`: the text doesn't
/// mention them otherwise, as it would have to for a variable.
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

/// The `` `command` `` at `span` of a script's `text`.
pub(super) fn backquotes(span: Span, text: &str) -> SyntaxError {
    let command = text[span.start..span.end].trim_matches('`').trim();
    SyntaxError::new(span, "backquotes don't run commands").hint(collected(command, span, text))
}

/// The `$` at `span` of a script's `text` that begins something unknown.
pub(super) fn variable(span: Span, text: &str) -> SyntaxError {
    let (written, after) = (&text[span.start..span.end], &text[span.end..]);
    let (message, hint) = if let Some(sum) = written.strip_prefix("$((") {
        let (target, _) = target(span, text);
        let target = if target == "v" { "n" } else { target };
        (
            "`$(( ))` doesn't calculate",
            format!(
                "an assignment does, with operators that are words: `{target}={}`",
                words_for(sum.trim_end_matches(')').trim())
            ),
        )
    } else if let Some(command) = written.strip_prefix("$(") {
        let command = command.trim_end_matches(')').trim();
        ("`$( )` doesn't run commands", collected(command, span, text))
    } else if written.starts_with("${") && !written.ends_with('}') && after.starts_with('"') {
        (
            "a `${` can't hold quotes inside quotes",
            "assign the default to a variable first, or use it without the inner quotes".to_owned(),
        )
    } else if written.starts_with("${") && !written.ends_with('}') {
        ("this `${` has no `}`", "write `${name}`".to_owned())
    } else if let Some(inside) = written.strip_prefix("${") {
        let hint = match braces::meant(inside.trim_end_matches('}')) {
            Some(braces::Meant::Variable(said)) => format!("write `{said}`"),
            Some(braces::Meant::Value(said)) => {
                let (target, then) = target(span, text);
                format!("write `{target}={said}`{then}")
            }
            Some(braces::Meant::Nothing(why)) => why.to_owned(),
            None => "there are `${name}`, `${name:-default}` and `${name:+alternative}`; \
                     functions do the rest, like `v=replace($name, 'regex', \"text\")`"
                .to_owned(),
        };
        ("unknown kind of substitution", hint)
    } else if written == "$?" {
        (
            "there is no `$?`: a failure can't be passed over",
            "in `catch`, `$error_code` has the exit code and `$error` the story".to_owned(),
        )
    } else if written == "$!" {
        ("there is no `$!`", "`forall` runs commands at once and waits for them".to_owned())
    } else {
        (
            "no variable can have this name",
            format!("for the characters themselves, write `\\{written}`"),
        )
    };
    SyntaxError::new(span, message).hint(hint)
}

/// How to have what a command prints.
fn collected(command: &str, span: Span, text: &str) -> String {
    let fits = !command.is_empty() && command.len() <= LONGEST && !command.contains('\n');
    let (target, then) = target(span, text);
    if let Some((name @ ("basename" | "dirname"), path)) = command.split_once(' ')
        && !path.contains([' ', '"', '\''])
    {
        return format!("write `{target}={name}({path})`{then}");
    }
    format!("write `{} -> {target}`{then}", if fits { command } else { "command" })
}

/// The variable that is to have the value of what stands at `span`, and what is to be done then:
/// in `name=$(…)` it is `name`, and nothing.
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

/// A sum in the operators of this shell, as far as that is a matter of words.
fn words_for(sum: &str) -> String {
    let spaced = ["+", "-", "*", "/", "%"]
        .iter()
        .fold(sum.to_owned(), |sum, symbol| sum.replace(symbol, &format!(" {symbol} ")));
    let words = spaced.split_whitespace().map(|word| match operator(word) {
        Some(operator) => operator.to_owned(),
        None if is_name(word) => format!("${word}"),
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}
