//! Brace syntax of other shells: `${x%.gz}`, `{1..3}`.

use super::literal;
use crate::ast::Word;
use crate::hint::{Hint, hint};

/// Returns the hint about the arrays of other shells.
pub(super) fn arrays() -> Hint {
    hint!(
        "write `list a in x y`, `list add a z`, `${{a[1]}}` for the first element, and `$a` for all"
    )
}

/// Replacement for a `${…}` of another shell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BraceReplacement {
    /// Code for the same place.
    Variable(String),
    /// Right side of an assignment.
    Value(String),
    /// Other code, with an explanation.
    Other(Hint),
}

/// Returns the slice for `${name[@]:part}`, whose part is an offset from 0 and a length.
fn slice(name: &str, part: &str) -> Option<BraceReplacement> {
    let number = |text: &str| text.trim().parse::<u16>().ok().map(u32::from);
    let (from, length) = part.split_once(':').unwrap_or((part, ""));
    let from = number(from)?;
    let to = if length.is_empty() { String::new() } else { (from + number(length)?).to_string() };
    Some(BraceReplacement::Variable(format!("${{{name}[{}..{to}]}}", from + 1)))
}

/// Returns the replacement for a `${…}` with this content.
pub(super) fn replacement(inside: &str) -> Option<BraceReplacement> {
    if let Some(name) = inside.strip_prefix('#') {
        return Some(match name_and_rest(name)? {
            (name, "") => BraceReplacement::Value(format!("length(${name})")),
            (name, "[@]" | "[*]") => BraceReplacement::Variable(format!("${{count(${name})}}")),
            _ => BraceReplacement::Other(arrays()),
        });
    }
    if inside.starts_with("@:") {
        return Some(BraceReplacement::Other(hint!(
            "arguments from the second on: `list rest in \"$@\"`, and then `${{rest[2..]}}`"
        )));
    }
    if inside.starts_with('!') {
        return Some(BraceReplacement::Other(hint!(
            "a variable can't be read by a name in another variable: `printenv \"$name\" -> v` reads an \
             exported variable, and a function with an `if` for each name can `return` the value"
        )));
    }
    let (name, rest) = name_and_rest(inside)?;
    let replaced = |regex: &str, with: &str| {
        Some(BraceReplacement::Value(format!("replace(${name}, '{regex}', \"{with}\")")))
    };
    let call = |function: &str| Some(BraceReplacement::Value(format!("{function}(${name})")));
    match rest {
        "%/*" => return call("dirname"),
        "##*/" => return call("basename"),
        "^^" => return call("upper"),
        ",," => return call("lower"),
        "[*]" => return Some(BraceReplacement::Variable(format!("${{{name}[@]}}"))),
        _ => {}
    }
    if let Some(part) = rest.strip_prefix("[@]:").or(rest.strip_prefix("[*]:")) {
        return slice(name, part).or(Some(BraceReplacement::Other(arrays())));
    }
    if rest.starts_with('[') {
        return Some(BraceReplacement::Other(arrays()));
    }
    if let Some(pattern) = rest.strip_prefix("%%") {
        return replaced(&format!("{}$", regex(pattern, true)?), "");
    }
    if let Some(pattern) = rest.strip_prefix('%') {
        return replaced(&format!("{}$", regex(pattern, false)?), "");
    }
    if let Some(pattern) = rest.strip_prefix("##") {
        return replaced(&format!("^{}", regex(pattern, true)?), "");
    }
    if let Some(pattern) = rest.strip_prefix('#') {
        // In a shortest match, the first character other than `*` decides.
        let lazy = regex(pattern, true)?.replace(".*", ".*?");
        return replaced(&format!("^{lazy}"), "");
    }
    if let Some(rest) = rest.strip_prefix('/') {
        let all = rest.strip_prefix('/').unwrap_or(rest);
        let (pattern, with) = all.split_once('/').unwrap_or((all, ""));
        let (start, pattern, end) = match rest.as_bytes().first() {
            Some(b'#') => ("^", &pattern[1..], ""),
            Some(b'%') => ("", &pattern[1..], "$"),
            _ => ("", pattern, ""),
        };
        if with.contains(['$', '\\', '"', '`']) {
            return None;
        }
        let regex = format!("{start}{}{end}", regex(pattern, true)?);
        if rest.starts_with(['/', '#', '%']) {
            return replaced(&regex, with);
        }
        return Some(BraceReplacement::Other(hint!(
            "`v=replace(${name}, '{regex}', \"{with}\")` replaces every match, not only the first"
        )));
    }
    let after = |mark: &str| rest.strip_prefix(mark);
    if let Some(default) = after(":=").or_else(|| after("=")) {
        return Some(BraceReplacement::Other(hint!(
            "write `{name}=\"${{{name}:-{default}}}\"` first"
        )));
    }
    if rest.starts_with(['-', '+', '?']) {
        return Some(BraceReplacement::Other(hint!(
            "write `${{{name}:{rest}}}`, which treats an empty value like a missing one"
        )));
    }
    substring(name, after(":")?)
}

/// Returns the replacement for `${name:offset:length}`.
fn substring(name: &str, range: &str) -> Option<BraceReplacement> {
    let (offset, length) = match range.split_once(':') {
        Some((offset, length)) => (offset, Some(length.trim().parse::<u32>().ok()?)),
        None => (range, None),
    };
    let offset: i64 = offset.trim().parse().ok()?;
    let from = if offset < 0 { offset } else { offset + 1 };
    let length = length.map_or(String::new(), |length| format!(", {length}"));
    Some(BraceReplacement::Value(format!("substr(${name}, {from}{length})")))
}

/// Translates a simple pattern of file names to a regular expression.
///
/// A `*` matches as much as possible if it is `greedy`. Otherwise a `*` matches as little as
/// possible, which only a character before the `*` can bound.
fn regex(pattern: &str, greedy: bool) -> Option<String> {
    if pattern.is_empty() || pattern.contains(['\'', '"', '$', '\\', '`', '[', '{']) {
        return None;
    }
    if !greedy
        && let Some(before) = pattern.strip_suffix('*')
        && before.chars().count() == 1
        && !before.contains(['*', '?', '^'])
    {
        return Some(format!("{}[^{before}]*", regex::escape(before)));
    }
    if !greedy && pattern.contains('*') {
        return None;
    }
    let pieces = pattern.chars().map(|c| match c {
        '*' => ".*".to_owned(),
        '?' => ".".to_owned(),
        c => regex::escape(c.encode_utf8(&mut [0; 4])),
    });
    Some(pieces.collect())
}

fn name_and_rest(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Returns the `{1..3}` or `{1..$n}` in a word as a range, and true if the word stands for
/// the numbers of the range as they are written.
pub fn range(word: &Word) -> Option<(String, bool)> {
    range_in(&literal::written(word)?)
}

fn range_in(word: &str) -> Option<(String, bool)> {
    let (before, rest) = word.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    let mut ends = inside.split("..");
    let (from, to, step) = (ends.next()?, ends.next()?, ends.next());
    let number = |text: &str| text.parse::<i64>().ok();
    let is_variable = |text: &str| {
        text.strip_prefix('$').and_then(name_and_rest).is_some_and(|it| it.1.is_empty())
    };
    let is_end = |text: &str| number(text).is_some() || is_variable(text);
    if !is_end(from) || !is_end(to) || ends.next().is_some() {
        return None;
    }
    let step = match step {
        Some(step) => number(step)?.abs(),
        None => 1,
    };
    let falls = number(from).zip(number(to)).is_some_and(|(from, to)| from > to);
    // The numbers of a range have no zeros in front.
    let plain = |text: &str| number(text).map_or(text.to_owned(), |number| number.to_string());
    let is_plain = plain(from) == from && plain(to) == to;
    let (from, to) = (plain(from), plain(to));
    let range = match if falls { -step } else { step } {
        1 => format!("{from} .to. {to}"),
        step => format!("{from} .to. {to} .step. {step}"),
    };
    Some((range, is_plain && before.is_empty() && after.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(inside: &str) -> String {
        match replacement(inside) {
            Some(BraceReplacement::Variable(code) | BraceReplacement::Value(code)) => code,
            Some(BraceReplacement::Other(hint)) => hint.to_string(),
            None => "?".to_owned(),
        }
    }

    #[test]
    fn substitutions_become_functions() {
        for (inside, here) in [
            ("x%.gz", r#"replace($x, '\.gz$', "")"#),
            ("x%%.*", r#"replace($x, '\..*$', "")"#),
            ("x%.*", r#"replace($x, '\.[^.]*$', "")"#),
            ("x%-*", r#"replace($x, '\-[^-]*$', "")"#),
            ("x%/*", "dirname($x)"),
            ("x##*/", "basename($x)"),
            ("x##*.", r#"replace($x, '^.*\.', "")"#),
            ("x#*:", r#"replace($x, '^.*?:', "")"#),
            ("x#v", r#"replace($x, '^v', "")"#),
            ("x//a?c/b", r#"replace($x, 'a.c', "b")"#),
            ("x/ab/c", r#"`v=replace($x, 'ab', "c")` replaces every match, not only the first"#),
            ("x/#ab/c", r#"replace($x, '^ab', "c")"#),
            ("x/%.ab/c", r#"replace($x, '\.ab$', "c")"#),
            ("x//#ab/c", r#"replace($x, '\#ab', "c")"#),
            ("x//ab", r#"replace($x, 'ab', "")"#),
            ("#x", "length($x)"),
            ("x^^", "upper($x)"),
            ("x,,", "lower($x)"),
            ("x:0:3", "substr($x, 1, 3)"),
            ("x:2:3", "substr($x, 3, 3)"),
            ("x:2", "substr($x, 3)"),
            ("x: -2", "substr($x, -2)"),
            ("x-y", "write `${x:-y}`, which treats an empty value like a missing one"),
            ("x?no x", "write `${x:?no x}`, which treats an empty value like a missing one"),
            ("a[]", &arrays().to_string()),
            ("a[*]", "${a[@]}"),
            ("#a[@]", "${count($a)}"),
            ("a[@]:1", "${a[2..]}"),
            ("a[@]:1:3", "${a[2..4]}"),
            ("a[*]: -2", &arrays().to_string()),
            ("x%*b*", "?"),
            ("x%_a*", "?"),
            ("x^", "?"),
            ("x,", "?"),
            ("x%$y", "?"),
            ("x@Q", "?"),
            ("", "?"),
        ] {
            assert_eq!(replaced(inside), here, "{inside}");
        }
        assert!(replaced("x:=y").contains(r#"`x="${x:-y}"`"#));
        assert!(replaced("!x").contains("by a name in another"));
    }

    #[test]
    fn ranges_are_recognized() {
        assert_eq!(range_in("{1..3}"), Some(("1 .to. 3".into(), true)));
        assert_eq!(range_in("host{01..3}.x"), Some(("1 .to. 3".into(), false)));
        assert_eq!(range_in("{01..03}"), Some(("1 .to. 3".into(), false)));
        assert_eq!(range_in("{-1..0}"), Some(("-1 .to. 0".into(), true)));
        assert_eq!(range_in("{9..1}"), Some(("9 .to. 1 .step. -1".into(), true)));
        assert_eq!(range_in("{0..$n}"), Some(("0 .to. $n".into(), true)));
        assert_eq!(range_in("{1..9..4}"), Some(("1 .to. 9 .step. 4".into(), true)));
        for other in
            ["{}", "{a,b}", "{1..}", "{1..2..3..4}", "{a..z}", "}1..3{", "1..3", "HEAD@{1}"]
        {
            assert_eq!(range_in(other), None, "{other}");
        }
    }
}
