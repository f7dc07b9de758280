//! Words at the end of a list that were meant as a clause of the loop.

use super::{Result, literal};
use crate::ast::{Expr, ExprKind, Unit};
use crate::backoff::PolicyKind;
use crate::duration;
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::size::{self, ByteUnit};
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::loop_clauses;

/// Words before a number that mean a clause in other tools.
const HABITS: [(&str, &str); 4] =
    [("hedge", "hedge after"), ("jobs", "at most"), ("max", "at most"), ("parallel", "at most")];

/// Maximum number of words of a clause and its value: `hedge after 5 s`.
const LONGEST: usize = 4;

/// Maximum number of words of a clause of `try`: `backoff full from 1 second to 5 minutes`.
const LONGEST_OF_TRY: usize = 8;

/// Refuses a list with a misspelled clause at its end, behind a word of the list.
pub(super) fn check(list: &[Expr], keyword: &str) -> Result<()> {
    let words = list.iter().map(|item| match &item.kind {
        ExprKind::Word(word) => literal::bare(word),
        _ => None,
    });
    let words: Vec<_> = words.skip(list.len().saturating_sub(LONGEST)).collect();
    let first = list.len() - words.len();
    let is_behind_word = |at: &usize| first + at > 0;
    for at in (0..words.len()).filter(is_behind_word) {
        let tail = &words[at..];
        let span = Span::new(list[first + at].span.start, list[list.len() - 1].span.end);
        // A bare name is an engine; with these words the branches would run here.
        if keyword == "forall" && matches!(tail, [Some("on"), None, ..]) {
            let message = "the name of an engine is a constant without quotes";
            let error = SyntaxError::new(Slug::EngineArgument, span, message);
            return Err(Box::new(error.hint(hint!(
                "write `forall … on ssh $hosts`; as an item, `on` has quotes: `\"on\"`"
            ))));
        }
        if let Some((clause, length)) = clause(tail) {
            let written = tail[..length].iter().flatten().copied().collect::<Vec<_>>().join(" ");
            let value = tail[length..].iter().flatten().map(|word| format!(" {word}"));
            let value: String = value.collect();
            let quoted = match written.split_once(' ') {
                Some((first, rest)) => format!("\"{first}\" {rest}"),
                None => format!("\"{written}\""),
            };
            let message = format!("`{written}` is not a clause");
            let error = SyntaxError::new(Slug::UnknownClause, span, message);
            let mut owners = loop_clauses().filter(|(_, words)| words.join(" ") == clause);
            let owner = owners.clone().find(|it| it.0 == keyword).or_else(|| owners.next());
            let owner = owner.map_or(keyword, |(owner, _)| owner);
            return Err(Box::new(error.hint(hint!(
                "write `{owner} … {clause}{value}`; to list these words, quote the first: \
                 `{quoted}{value}`"
            ))));
        }
    }
    Ok(())
}

/// Refuses a list with a clause of `try` at its end, behind a word of the list. `owner` is the
/// keyword before the list.
pub(super) fn check_try(list: &[Expr], owner: &str) -> Result<()> {
    let words = list.iter().map(|item| match &item.kind {
        ExprKind::Word(word) => literal::bare(word),
        _ => None,
    });
    let words: Vec<_> = words.skip(list.len().saturating_sub(LONGEST_OF_TRY)).collect();
    let first = list.len() - words.len();
    let Some(at) = (0..words.len()).find(|at| first + at > 0 && is_of_try(&words[*at..])) else {
        return Ok(());
    };
    let span = Span::new(list[first + at].span.start, list[list.len() - 1].span.end);
    let tail: Vec<_> = words[at..].iter().flatten().copied().collect();
    let (written, rest) = (tail.join(" "), tail[1..].join(" "));
    let word = tail[0];
    let message = format!("`{owner}` takes no `{written}`");
    let error = SyntaxError::new(Slug::MisplacedClause, span, message);
    let quoted = format!("\"{word}\" {rest}");
    Err(Box::new(if owner == "list" {
        error.hint(hint!("a list has no clauses; to list these words, quote the first: `{quoted}`"))
    } else if matches!(word, "limit" | "timeout" | "for") {
        error.hint(hint!(
            "write `limit {rest}` in the body of the loop; to list these words, quote the first: \
             `{quoted}`"
        ))
    } else {
        let clauses = written.strip_prefix("try ").unwrap_or(&written);
        error.hint(hint!(
            "write `try {clauses}` in the body of the loop; to list these words, quote the first: \
             `{quoted}`"
        ))
    }))
}

/// Returns true for a clause of `try` with its value, or a `try` or `limit` itself.
///
/// Words without a number remain words of the list: `limit each`.
fn is_of_try(words: &[Option<&str>]) -> bool {
    let Some(words) = words.iter().copied().collect::<Option<Vec<_>>>() else { return false };
    let is_number = |word: &str| literal::number(word).is_some_and(|number| number >= 0.0);
    let is_time = |value: &[&str]| match value {
        [one] => !is_number(one) && duration::parse(one).is_some(),
        [amount, unit] => is_number(amount) && Unit::named(unit).is_some(),
        _ => false,
    };
    let is_size = |value: &[&str]| match value {
        [one] => !is_number(one) && size::parse(one).is_some(),
        [amount, unit] => is_number(amount) && ByteUnit::named(unit).is_some(),
        _ => false,
    };
    match words[..] {
        ["each" | "every" | "stalled" | "limit" | "timeout", ref value @ ..] => {
            is_time(value) || matches!(value, [one] if is_number(one))
        }
        ["for", ref value @ ..] => is_time(value),
        ["memory", ref value @ ..] => is_size(value) || matches!(value, [one] if is_number(one)),
        ["no", "leftovers"] => true,
        ["try", times, "time" | "times"] => is_number(times),
        ["backoff", policy] => PolicyKind::named(policy).is_some(),
        ["backoff", policy, "from" | "to" | "by" | "jitter", ..] => {
            PolicyKind::named(policy).is_some()
        }
        _ => false,
    }
}

/// Returns the clause that is meant by the words, and the number of the misspelled words.
fn clause(words: &[Option<&str>]) -> Option<(String, usize)> {
    let first = (*words.first()?)?;
    let is_number = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
    };
    let second = words.get(1).copied().flatten();
    let is_time = words.len() == 2
        || words.len() == 3
            && words[2].is_some_and(|it| it.bytes().all(|b| b.is_ascii_alphabetic()));
    if let Some((_, meant)) = HABITS.iter().find(|(habit, _)| *habit == first)
        && second.is_some_and(is_number)
        && is_time
    {
        return Some(((*meant).to_owned(), 1));
    }
    let glued = first.replace(['-', '_'], "");
    let pair = second.map(|second| format!("{first} {second}")).unwrap_or_default();
    for [one, two] in loop_clauses().map(|it| it.1).filter(|clause| clause[0] != "on") {
        let is_glued = glued.strip_prefix(one) == Some(two);
        // Only a phrase of nearly the same length has one difference.
        let length = one.len() + 1 + two.len();
        if !is_glued && length.abs_diff(pair.len()) > 1 {
            continue;
        }
        let phrase = format!("{one} {two}");
        let values = value(&phrase);
        if is_glued && values.contains(&(words.len() - 1)) {
            return Some((phrase, 1));
        }
        if second.is_some()
            && strsim::osa_distance(&phrase, &pair) == 1
            && values.contains(&(words.len() - 2))
        {
            return Some((phrase, 2));
        }
    }
    None
}

/// Returns how many words the value of a clause may have.
fn value(clause: &str) -> std::ops::RangeInclusive<usize> {
    match clause {
        "in order" | "keep going" | "finish running" | "output grouped" | "output tagged" => 0..=0,
        _ => 1..=2,
    }
}
