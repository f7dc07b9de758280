//! Conditions of `test`, `[` and `[[`, and their translations.

use super::{bashisms, substitutions};
use crate::hint::{Hint, hint};

/// Translates a condition to operators: `-f x ]` becomes `.isfile. x`.
pub(super) fn translated(condition: &str) -> Option<String> {
    let mut words = words(condition);
    let negated = words.first() == Some(&"!");
    if negated {
        words.remove(0);
    }
    let expression = match words[..] {
        ["-z", value] => format!("{value} == \"\""),
        ["-n", value] => format!("{value} != \"\""),
        [flag, file] => format!("{} {file}", file_test(flag)?),
        [left, "=~", regex] if !regex.contains(['\'', '"']) && !regex.starts_with('$') => {
            format!("{left} .matches. '{regex}'")
        }
        // A quoted text is no regular expression there.
        [_, "=~", quoted] if !quoted.starts_with('$') => return None,
        [left, symbol, right] => {
            let operator = bashisms::operator(symbol)?;
            let compares = bashisms::is_comparison(operator) || operator.ends_with('.');
            if !compares || matches!(operator, "&&" | "||" | ".pow." | ".to.") {
                return None;
            }
            format!("{left} {operator} {right}")
        }
        _ => return None,
    };
    let expression = if negated { negation(&expression) } else { expression };
    substitutions::is_script(&format!("if {expression}\nend")).then_some(expression)
}

/// Returns the words before the closing bracket, or before a `;`.
fn words(condition: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    let (mut quote, mut start) = (None, None);
    for (at, c) in condition.char_indices().chain([(condition.len(), ';')]) {
        if quote.is_none() && matches!(c, ' ' | '\t' | ';') || at == condition.len() {
            match start.take().map(|start| &condition[start..at]) {
                Some("]" | "]]") => break,
                word => words.extend(word),
            }
            if c == ';' {
                break;
            }
        } else {
            start.get_or_insert(at);
            quote = match quote {
                Some(open) => Some(open).filter(|open| *open != c),
                None => Some(c).filter(|c| matches!(c, '\'' | '"')),
            };
        }
    }
    words
}

/// Returns the opposite of a condition.
pub(super) fn negation(condition: &str) -> String {
    if condition.starts_with('.') { format!("! {condition}") } else { format!("!({condition})") }
}

/// Returns the hint to write a condition instead of one that follows `before`.
pub(super) fn instead(condition: &str, before: &str) -> Hint {
    match before.rsplit([' ', '\t', '\n', ';', '(']).find(|it| !it.is_empty()) {
        Some(keyword @ ("if" | "while")) => hint!("write `{keyword} {condition}`"),
        Some("!") => hint!("write `{}`", negation(condition)),
        _ => hint!("write `{condition}`"),
    }
}

fn file_test(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "-e" | "-a" => ".exists.",
        "-f" => ".isfile.",
        "-d" => ".isdir.",
        "-r" => ".isr.",
        "-w" => ".isw.",
        "-x" => ".isx.",
        "-L" | "-h" => ".islink.",
        "-p" => ".ispipe.",
        "-S" => ".issock.",
        "-b" => ".isblock.",
        "-c" => ".ischar.",
        _ => return None,
    })
}

/// Returns the hint about a comparison with a pattern, as in `[[ $s == a* ]]`.
pub(super) fn matched(condition: &str) -> Option<Hint> {
    let condition = condition.split("]]").next()?;
    let (symbol, (value, pattern)) = [" == ", " = ", " != "]
        .iter()
        .find_map(|symbol| Some((symbol, condition.split_once(symbol)?)))?;
    let (value, pattern) = (value.trim(), pattern.trim());
    if !pattern.contains(['*', '?']) || pattern.contains(['"', '\'', '&', '|', ' ']) {
        return None;
    }
    Some(match *symbol {
        " != " => hint!(
            "a pattern comes after `when`: `case {value}`, `when {pattern}`, and the commands for \
             other values after `else`"
        ),
        _ => hint!("a pattern comes after `when`: `case {value}`, and then `when {pattern}`"),
    })
}
