//! Messages for text that the grammar does not match.

use pest::error::{ErrorVariant, InputLocation};

use super::Rule;
use super::braces::arrays;
use super::builder::too_nested;
use super::misspelled::structure_in_succeeds;
use super::{bashisms, brackets};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::nearest::nearest;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{HEADS, KEYWORDS, OPERATORS, QUESTIONS, SYMBOLS, is_name, loop_clauses};

/// Explains a failed parse of the text from `base` on, whose command begins at `start`.
pub(super) fn explain(
    text: &str,
    base: usize,
    start: usize,
    error: &pest::error::Error<Rule>,
) -> SyntaxError {
    let (InputLocation::Pos(at) | InputLocation::Span((at, _))) = error.location;
    let at = (base + at).max(start);
    let found = Unexpected::at(text, at);
    let rules = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => &positives[..],
        // A limit was reached. Input can reach the limit of the stack only.
        ErrorVariant::CustomError { .. } => return too_nested(found.span),
    };
    if let Some(error) = find_structure_in_succeeds(&text[..at], start) {
        return error;
    }
    let start = last_head(text, start, at);
    let statement = &text[start..];
    let keyword = first_word(statement);
    let before = text[start..at].trim_end();
    let expected = if before.is_empty() { "a command" } else { expected(rules, keyword, before) };
    if keyword == "function"
        && let Some(name) = statement.split_whitespace().nth(1)
        && KEYWORDS.contains(&name)
    {
        let at = start + statement.find(name).unwrap_or_default().max(keyword.len());
        let at = text[at..].find(name).map_or(at, |offset| at + offset);
        let message = format!("`{name}` can't be the name of a function");
        let error = SyntaxError::new(Slug::FunctionHead, Span::new(at, at + name.len()), message);
        return error.label("the word begins or ends a structure, or a jump");
    }
    if let Some(error) = unknown_operator(before, start) {
        return error;
    }
    let is_command_missing = found.text.is_empty() && expected == "a command";
    let advice =
        if is_command_missing { None } else { advice(keyword, statement, before, found.text) };
    let last_stage = before.rsplit_once('|').map(|(_, stage)| stage.trim_start());
    let slug = match &advice {
        _ if is_command_missing && last_stage.is_some_and(assigns) => Slug::PipelineStage,
        _ if is_command_missing => Slug::MissingCommand,
        Some((slug, _)) => *slug,
        None if found.text.is_empty() && keyword == "try" => Slug::MissingValue,
        None => Slug::Unexpected,
    };
    let error = if found.text.is_empty() {
        SyntaxError::new(slug, found.span, format!("expected {expected}"))
            .label("the command ends here")
    } else {
        SyntaxError::new(slug, found.span, format!("unexpected `{}`", found.text))
            .label(format!("expected {expected}"))
    };
    if found.text.is_empty() && before.ends_with(['&', '|']) {
        let goes_on = before.ends_with("&&") || before.ends_with("||");
        let hint = || hint!("a condition continues on the next line after a `\\`");
        return if goes_on { error.hint(hint()) } else { error };
    }
    if is_command_missing {
        if last_stage.is_some_and(assigns) {
            return error.hint(no_assignment());
        }
        if before.starts_with("IFS=") {
            return error.hint(hint!(
                "words are separated by spaces alone: `for field in split($line, \",\")` splits a text"
            ));
        }
        if assigns(before) && before.contains(',') && !before.contains([' ', '\t', '"', '\'']) {
            let (name, text) = before.split_once('=').unwrap_or_default();
            return error.hint(hint!("a text with commas has quotes: `{name}=\"{text}\"`"));
        }
        let symbol = before.split([' ', '\t']).rev().nth(1).unwrap_or_default();
        let is_value = before.rsplit([' ', '\t']).next().is_some_and(|it| {
            it.starts_with('$') || !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit())
        });
        if is_value && assigns(before) && bashisms::is_comparison(symbol) {
            let name = before.split('=').next().unwrap_or_default();
            return error.hint(bashisms::compared(name, symbol));
        }
        if let Some((name, command)) = before.split_once("=$(").filter(|_| assigns(before))
            && let Some((command, redirect)) = command.rsplit_once(')')
        {
            let redirect = redirect.trim();
            return error.hint(hint!("write `{name}=$({command} {redirect})`"));
        }
        return error.hint(if before.contains(['<', '>']) {
            hint!("to make an empty file, `echo -n > file`")
        } else {
            hint!("write one assignment per line, or `;` between assignments")
        });
    }
    match advice {
        Some((_, hint)) => error.hint(hint),
        None => error,
    }
}

/// Returns the error for a misspelled operator in front of the place where the grammar stops.
///
/// A word in the shape of an unknown operator is a plain word for the grammar.
fn unknown_operator(before: &str, start: usize) -> Option<SyntaxError> {
    let word = before.rsplit([' ', '\t', '(']).next()?;
    if !bashisms::is_operator(word) || OPERATORS.contains(&word) {
        return None;
    }
    let meant = nearest(word, OPERATORS)?;
    let end = start + before.len();
    let error = SyntaxError::new(
        Slug::UnknownOperator,
        Span::new(end - word.len(), end),
        format!("unknown operator `{word}`"),
    );
    Some(error.hint(hint!("did you mean `{meant}`?")))
}

/// Returns the error for a structure inside of `.succeeds. ( … )`. The grammar stops at the first
/// `;`.
fn find_structure_in_succeeds(text: &str, start: usize) -> Option<SyntaxError> {
    let (_, asked) = QUESTIONS.iter().find_map(|it| text[start..].split_once(it))?;
    let asked = asked.trim_start().strip_prefix('(')?;
    let mut from = text.len() - asked.len();
    for stage in asked.split('|').take_while(|stage| !stage.contains(')')) {
        let words = stage.trim_start_matches(['&', ' ', '\t']);
        let word = words.split([' ', '\t', ';']).next().unwrap_or_default();
        if HEADS.contains(&word) {
            let at = from + stage.len() - words.len();
            return Some(structure_in_succeeds(Span::new(at, at + word.len()), word));
        }
        from += stage.len() + 1;
    }
    None
}

/// Returns the hint for an assignment among stages.
fn no_assignment() -> Hint {
    hint!(
        "an assignment can't be a stage of a pipeline; \
         `command -> name` assigns the output of a command"
    )
}

/// Unexpected text.
struct Unexpected<'t> {
    text: &'t str,
    span: Span,
}

impl<'t> Unexpected<'t> {
    /// Finds a word or a symbol at a place; empty at the end of a command.
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

/// Rules that match at a missing word.
const WORDS: [Rule; 6] = [
    Rule::word,
    Rule::bare,
    Rule::inner_word,
    Rule::inner_bare,
    Rule::inner_command,
    Rule::inner_pipeline,
];

/// Returns the start of the last head after a `|`, if the error is behind that head, and otherwise
/// `start`.
fn last_head(text: &str, start: usize, at: usize) -> usize {
    let Some((before, _)) = text[start..at].rsplit_once('|') else { return start };
    let rest = &text[start + before.len() + 1..];
    let rest = rest.strip_prefix('&').unwrap_or(rest).trim_start();
    let head = text.len() - rest.len();
    if head < at && HEADS.contains(&first_word(rest)) { head } else { start }
}

/// Describes the text that would have matched after `before`, in the words of the language.
fn expected(rules: &[Rule], keyword: &str, before: &str) -> &'static str {
    let has = |any: &[Rule]| any.iter().any(|rule| rules.contains(rule));
    let last_word = before.rsplit([' ', '\t']).next().unwrap_or_default();
    if keyword == "try" {
        match last_word {
            "every" | "each" | "from" | "to" => return "a duration, like `5 minutes`",
            "for" | "or" => return "a limit, like `5 times` or `10 minutes`",
            "by" => return "a factor, like `2`",
            "jitter" => return "a percentage, like `10%`",
            "backoff" => return "the name of a policy, like `full`",
            _ => {}
        }
    }
    if has(&[Rule::open]) {
        "`(` and a command"
    } else if has(&[Rule::close]) {
        "`)`"
    } else if has(&[Rule::in_word]) {
        "`in` and a list"
    } else if has(&[Rule::EOI, Rule::terminator]) {
        match keyword {
            "if" | "while" | "return" | "shift" => "an operator, or the end of the command",
            "else" if last_word != "else" => "an operator, or the end of the command",
            _ => "the end of the command",
        }
    } else if keyword == "function" && last_word == keyword {
        "a name for the function"
    } else if keyword.starts_with("for") && last_word == keyword {
        "the name of the loop's variable"
    } else if before.ends_with(['<', '>', '&']) && has(&WORDS) {
        if before.ends_with("->") || before.ends_with("-<") {
            "a variable's name"
        } else {
            "a file"
        }
    } else if has(&WORDS) || before.ends_with('|') {
        "a command"
    } else {
        "a value"
    }
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default()
}

/// Advice for what a line seems to mean in another shell.
fn advice(keyword: &str, statement: &str, before: &str, found: &str) -> Option<(Slug, Hint)> {
    let line = statement.lines().next().unwrap_or_default();
    let rest = line.get(keyword.len()..).unwrap_or_default().trim_start();
    let first = rest.split([' ', '\t', ';']).next().unwrap_or_default();
    let asks = matches!(keyword, "if" | "while") || line.starts_with("else if");
    let expression = asks || matches!(keyword, "return" | "shift") || assigns(line);
    let is_joined = matches!(found, "&&" | "||") && before.contains("$(");
    let expression = expression && !is_joined;
    if assigns(line) && bashisms::is_comparison(found) && !before.contains('(') {
        let name = line.split('=').next().unwrap_or_default();
        return Some((Slug::MisplacedSymbol, bashisms::compared(name, found)));
    }
    if expression && let Some(hint) = bashisms::operator_hint(found) {
        let is_symbol = SYMBOLS.iter().any(|(known, _)| *known == found);
        return Some((if is_symbol { Slug::MisplacedSymbol } else { Slug::UnknownOperator }, hint));
    }
    if bashisms::is_operator(found)
        && let Some(meant) = nearest(found, OPERATORS).filter(|meant| *meant != found)
    {
        return Some((Slug::UnknownOperator, hint!("did you mean `{meant}`?")));
    }
    let dotted = format!(".{}.", found.trim_matches('.'));
    if expression && OPERATORS.contains(&dotted.as_str()) && found != dotted {
        let hint = hint!("operators are written between dots: `{dotted}`");
        return Some((Slug::UnknownOperator, hint));
    }
    let question = QUESTIONS.iter().find(|question| before.ends_with(**question));
    if let Some(question) = question.filter(|_| !found.is_empty()) {
        let command = line.rsplit(question).next().unwrap_or_default();
        let command = command.split([';', '#']).next().unwrap_or_default().trim();
        let hint = hint!("write the command in parentheses: `{question} ({command})`");
        return Some((Slug::CommandAsCondition, hint));
    }
    let tested = line.split_once(' ').filter(|it| matches!(it.0, "[" | "[[" | "test"));
    if let Some(("[[", condition)) = tested
        && let Some(hint) = brackets::matched(condition)
    {
        return Some((Slug::AndOr, hint));
    }
    if let Some((_, condition)) = tested
        && matches!(found, "&&" | "||")
        && let Some(condition) =
            brackets::translated(condition.split(found).next().unwrap_or_default())
    {
        let condition = if found == "||" { brackets::negation(&condition) } else { condition };
        let hint = hint!("write `if {condition}`, the commands, and `end`");
        return Some((Slug::AndOr, hint));
    }
    let is_called = statement[before.len()..].starts_with('(');
    let called = before.rsplit([' ', '\t']).next().filter(|it| is_called && is_name(it));
    let advice = match (keyword, found) {
        (_, "|") if before.contains("$((") => (
            Slug::Arithmetic,
            hint!("`$((` begins a calculation; a pipeline has one parenthesis: `$(… | …)`"),
        ),
        (_, "]") if asks && rest.starts_with("[ ") => {
            let joined = before.split_once("[ ").map_or("", |it| it.1);
            (Slug::MisplacedSymbol, hint!("a comparison has no brackets: `{keyword} {joined}`"))
        }
        (_, "(") if asks && let Some(name) = called => {
            let call = &statement[before.len()..];
            let call = &call[..call.find(')').map_or(call.len(), |at| at + 1)];
            (Slug::Unexpected, hint!("a call in the words of a command: `${{{name}{call}}}`"))
        }
        (_, "then" | "do") if asks => (Slug::Unexpected, bashisms::block()),
        ("for" | "forany" | "forall", ",") if before.split_whitespace().count() == 2 => {
            (Slug::LoopHead, hint!("a loop has one variable: `{keyword} x in a b c`"))
        }
        ("for" | "forany" | "forall", ",") => {
            let list = rest.split([';', '#']).next().unwrap_or_default().replace(',', " ");
            let list = list.replace(['{', '}'], " ");
            let list: Vec<_> = list.split_whitespace().collect();
            let list = list.join(" ");
            (
                Slug::LoopHead,
                hint!("spaces separate the words of a list, not commas: `{keyword} {list}`"),
            )
        }
        (_, "&&" | "||" | "&") if line.starts_with("((") => (Slug::Arithmetic, bashisms::sum()),
        (_, "&&" | "||" | "&") if line.starts_with('(') => (Slug::Subshell, bashisms::subshell()),
        (_, "||") => (
            Slug::AndOr,
            hint!(
                "a failure is handled by `try … catch … end`; a question is `if ! …`, which \
                 continues in either case"
            ),
        ),
        (_, "&&") => (
            Slug::AndOr,
            hint!(
                "on lines of their own, each command runs only after the success of the command \
                 before, and a failure ends the script; a question is `if …`"
            ),
        ),
        (_, "&") if is_inside_word(before, statement) => {
            let word = before.rsplit([' ', '\t']).next().unwrap_or_default();
            let word = if assigns(line) { before } else { word };
            let rest = statement[before.len()..].split([' ', '\t', '\n', ';']).next();
            let all = format!("{word}{}", rest.unwrap_or_default());
            let (name, all) = all.split_once('=').filter(|_| assigns(line)).unwrap_or(("", &all));
            let equals = if name.is_empty() { "" } else { "=" };
            (Slug::Background, hint!("a text with `&` has quotes: `{name}{equals}\"{all}\"`"))
        }
        (_, "&") => (Slug::Background, bashisms::at_once()),
        ("try" | "if" | "while" | "for" | "forany" | "forall", "|") => (
            Slug::PipelineStage,
            hint!("the output of a structure is piped after its `end`: `end | sort`"),
        ),
        ("return" | "shift" | "function" | "catch" | "else", "|") => (
            Slug::PipelineStage,
            hint!("a stage of a pipeline is a command, a call or a structure"),
        ),
        (_, "|") if assigns(before.rsplit('|').next().unwrap_or(line).trim_start()) => {
            (Slug::PipelineStage, no_assignment())
        }
        ("function", "{") => (Slug::FunctionHead, bashisms::block()),
        ("if" | "while" | "else", "{") => (Slug::Unexpected, bashisms::block()),
        ("if" | "while", found) if is_second_word(before, found) => {
            let value = before.rsplit([' ', '\t']).next().unwrap_or_default();
            let rest = line[line.find(before).unwrap_or_default() + before.len()..].trim();
            let rest = rest.split([';', '&', '|', '#']).next().unwrap_or_default().trim();
            (Slug::Unexpected, hint!("a text with spaces has quotes: `\"{value} {rest}\"`"))
        }
        ("function", found) if !found.is_empty() => (
            Slug::FunctionHead,
            hint!("parameters follow the name, with spaces between them: `function name a b`"),
        ),
        ("for" | "forany" | "forall", _) if rest.starts_with("((") => {
            (Slug::LoopHead, hint!("count with a range: `for n in 1 .to. 10`"))
        }
        ("for", _) if matches!(first, "all" | "any" | "each") => {
            let keyword = if first == "each" { "for" } else { &format!("for{first}") };
            (Slug::LoopHead, hint!("write one word: `{keyword} x in …`"))
        }
        ("for" | "forany" | "forall", "=" | ":=") => (
            Slug::LoopHead,
            hint!("to count, `for n in 1 .to. 10`; for other words, `for x in a b c`"),
        ),
        ("for" | "forany" | "forall", "from" | "of" | ":") => {
            (Slug::LoopHead, hint!("write `in`: `for x in a b c`"))
        }
        ("for" | "forany" | "forall", _) if listed(rest).is_some() => {
            let command = listed(rest).unwrap_or_default();
            (Slug::LoopHead, hint!("the lines of a command are `lines($({command}))`"))
        }
        ("for" | "forany" | "forall", found)
            if clause_before(rest).is_some_and(|it| it.0 == found) =>
        {
            let (_, list) = clause_before(rest).unwrap_or_default();
            (Slug::LoopHead, hint!("clauses come after the list: `{keyword} {list}`"))
        }
        ("for" | "forany" | "forall", "(") => (
            Slug::LoopHead,
            hint!("write no parentheses: `for x in a b c`, or `for n in 1 .to. 10` to count"),
        ),
        ("catch", found) if !found.is_empty() => (
            Slug::Unexpected,
            hint!("the failure is in `$error`; put the command on the next line, or after a `;`"),
        ),
        ("try", _) if before.ends_with(" or for") => (
            Slug::Unexpected,
            hint!("write one `for` before both limits: `try for 10 minutes or 5 times`"),
        ),
        ("try", _) if before.ends_with(" up to") => {
            (Slug::Unexpected, hint!("`try 5 times` makes at most 5 attempts"))
        }
        ("else" | "catch" | "end", found) if !found.is_empty() => {
            (Slug::Unexpected, hint!("put the command on the next line, or after a `;`"))
        }
        ("try", _) if before.ends_with(" from") || before.ends_with(" to") => (
            Slug::MisplacedClause,
            hint!(
                "`from`, `to`, `by` and `jitter` belong to a policy: `backoff full from 1 second`"
            ),
        ),
        _ if !found.is_empty() && assigns(line) && before.contains("=(") => {
            (Slug::Array, elements(line).unwrap_or_else(arrays))
        }
        _ => return None,
    };
    Some(advice)
}

/// Returns true for a word behind a text that is compared: `$s == x y`.
fn is_second_word(before: &str, found: &str) -> bool {
    let mut words = before.rsplit([' ', '\t']);
    let is_text = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    words.next().is_some_and(is_text) && matches!(words.next(), Some("==" | "!=")) && is_text(found)
}

/// Returns the hint for `a=(1 2 3)`.
fn elements(line: &str) -> Option<Hint> {
    let (name, rest) = line.split_once("=(")?;
    let (words, _) = rest.split_once(')')?;
    let is_plain = !words.is_empty() && !words.contains(['$', '"', '\'', '(', '[']);
    is_plain.then(|| hint!("parentheses do not make a list: write `list {name} in {words}`"))
}

/// Returns the command of `x in (seq 3)`.
fn listed(rest: &str) -> Option<&str> {
    let (_, list) = rest.split_once(" in (")?;
    let (command, after) = list.split_once(')')?;
    let is_alone = after.trim_start().is_empty() || after.trim_start().starts_with(';');
    (is_alone && command.contains(' ') && !command.contains('(')).then_some(command)
}

/// Returns the first word of a clause in `x at most 2 in a b`, and the head with the clause behind
/// the list.
fn clause_before(rest: &str) -> Option<(&str, String)> {
    let head = rest.split([';', '#']).next()?.trim_end();
    let (variable, rest) = head.split_once(' ')?;
    let (clause, list) = rest.split_once(" in ")?;
    let first = clause.split(' ').next()?;
    let is_clause = loop_clauses().any(|(_, words)| clause.starts_with(&words.join(" ")));
    is_clause.then(|| (first, format!("{variable} in {list} {clause}")))
}

/// Returns true if a word goes on behind the `&` after it: `http://x/?a=1&b=2`.
fn is_inside_word(before: &str, statement: &str) -> bool {
    let after = &statement[before.len()..];
    !before.ends_with([' ', '\t', '"', '\''])
        && after.strip_prefix('&').is_some_and(|it| it.starts_with(|c: char| c.is_alphanumeric()))
}

/// Returns true if a line looks like `name=…`.
fn assigns(line: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}
