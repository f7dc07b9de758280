//! What to say where the grammar found something else than it expected.

use pest::error::{ErrorVariant, InputLocation};

use super::Rule;
use super::builder::too_nested;
use super::habit;
use super::nearest::nearest;
use crate::syntax::error::SyntaxError;
use crate::syntax::span::Span;

/// Explains a failed parse of the text from `base` on, whose command begins at `start`.
pub(super) fn explain(
    text: &str,
    base: usize,
    start: usize,
    error: &pest::error::Error<Rule>,
) -> Box<SyntaxError> {
    let (InputLocation::Pos(at) | InputLocation::Span((at, _))) = error.location;
    let at = (base + at).max(start);
    let found = Found::at(text, at);
    let rules = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => &positives[..],
        // A limit was reached; the only one that input can reach is the stack's.
        ErrorVariant::CustomError { .. } => return too_nested(found.span),
    };
    let statement = &text[start..];
    let keyword = statement.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let expected = expected(rules, keyword);
    let error = if found.text.is_empty() {
        SyntaxError::new(found.span, format!("expected {expected}")).label("the command ends here")
    } else {
        SyntaxError::new(found.span, format!("unexpected `{}`", found.text))
            .label(format!("expected {expected}"))
    };
    Box::new(match advice(keyword, statement, found.text) {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

/// What stands where something else was expected.
struct Found<'t> {
    text: &'t str,
    span: Span,
}

impl<'t> Found<'t> {
    /// A word, or a symbol; nothing at the end of a command.
    fn at(text: &'t str, at: usize) -> Self {
        const SYMBOLS: [char; 7] = ['|', '&', '<', '>', '(', ')', ','];
        let rest = &text[at..];
        let rest = &rest[..rest.find(['\n', ';']).unwrap_or(rest.len())];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
        let (at, rest) = (at + blanks, &rest[blanks..]);
        let symbol = rest.chars().next().filter(|c| SYMBOLS.contains(c));
        let length = match symbol {
            Some('<' | '>') if rest[1..].starts_with('=') => 2,
            Some(symbol @ ('|' | '&' | '<' | '>')) if rest[1..].starts_with(symbol) => 2,
            Some(_) => 1,
            None if rest.starts_with('#') => 0,
            None => rest
                .char_indices()
                .skip(1)
                .find(|(_, c)| c.is_whitespace() || SYMBOLS.contains(c) || matches!(c, '"' | '\''))
                .map_or(rest.len(), |(length, _)| length),
        };
        Self { text: &rest[..length], span: Span::new(at, at + length.max(1).min(rest.len())) }
    }
}

/// The rules that would have matched, in the words of the language.
fn expected(rules: &[Rule], keyword: &str) -> &'static str {
    let has = |rule| rules.contains(&rule);
    let value = has(Rule::expression) || has(Rule::value) || has(Rule::group) || has(Rule::operand);
    if has(Rule::policy) {
        "the name of a backoff policy, like `full`"
    } else if has(Rule::limit) && keyword == "try" && !has(Rule::duration) {
        "a limit or a clause, like `5 times`, `10 minutes` or `every 30 seconds`"
    } else if has(Rule::duration) {
        "a duration, like `5 minutes`"
    } else if has(Rule::open) {
        "`(` and a command"
    } else if has(Rule::close) {
        "`)`"
    } else if has(Rule::function_name) && keyword == "function" {
        "a name for the function"
    } else if has(Rule::name) && keyword.starts_with("for") {
        "the name of the loop's variable"
    } else if has(Rule::in_word) {
        "`in` and a list"
    } else if value {
        "a value"
    } else if !has(Rule::terminator) && (has(Rule::word) || has(Rule::inner_word)) {
        "a word"
    } else if matches!(keyword, "if" | "while" | "else" | "return" | "shift") && !has(Rule::keyword)
    {
        "an operator, or the end of the command"
    } else {
        "the end of the command"
    }
}

/// How to say in this shell what someone seems to mean in another.
fn advice(keyword: &str, statement: &str, found: &str) -> Option<String> {
    let line = statement.lines().next().unwrap_or_default();
    let rest = line.get(keyword.len()..).unwrap_or_default().trim_start();
    let first = rest.split([' ', '\t', ';']).next().unwrap_or_default();
    let asks = matches!(keyword, "if" | "while") || line.starts_with("else if");
    if asks && matches!(first, "[" | "[[" | "test") {
        return Some(
            "`if` takes an expression: `$a .eq. $b`, `$n .lt. 5`, `.isfile. $f`".to_owned(),
        );
    }
    let expression = asks || matches!(keyword, "return" | "shift") || assigns(line);
    if expression && let Some(meant) = habit::operator(found) {
        return Some(format!("here that is `{meant}`"));
    }
    if habit::is_operator(found)
        && let Some(meant) = nearest(found, habit::OPERATORS).filter(|meant| *meant != found)
    {
        return Some(format!("did you mean `{meant}`?"));
    }
    let advice = match (keyword, found) {
        (_, "||") => {
            "`||` isn't needed: a group stops at the first failure; `try … catch … end` reacts to one"
        }
        (_, "&&") => "`&&` isn't needed: each command runs only if the one before succeeded",
        (_, "&") => "`forall` runs commands at once, and waits for all of them",
        ("if" | "while", _) if is_command(first) => {
            return Some(format!(
                "`{keyword}` takes an expression; to ask a command, `{keyword} .succeeds. ({})`",
                rest.split([';', '#']).next().unwrap_or_default().trim()
            ));
        }
        ("end", "|") => "send the output to a variable: `end -> v`, then `sort -< v`",
        ("function", "(") | ("function", "{") => {
            "a function is its name alone, its arguments are `$1`, `$2`, …: `function name`"
        }
        ("for" | "forany" | "forall", _) if rest.starts_with("((") => {
            "count with a range: `for n in 1 .to. 10`"
        }
        ("else" | "catch" | "end", found) if !found.is_empty() => {
            "put the command on the next line, or after a `;`"
        }
        ("try", "and") => "limits are joined by `or`: the first one reached ends the `try`",
        _ => return None,
    };
    Some(advice.to_owned())
}

/// Whether a line looks like `name=…`.
fn assigns(line: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Whether a word looks like a program's name.
fn is_command(word: &str) -> bool {
    word == "!"
        || word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '.')
            && !habit::is_operator(word)
}
