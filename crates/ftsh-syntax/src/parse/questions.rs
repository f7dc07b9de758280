//! Commands as conditions: which words are commands, and conditions that would mean something else
//! than they seem to.

use super::substitutions::is_script;
use super::{Result, bashisms, brackets, literal};
use crate::ast::{
    BinaryOperator, Expr, ExprKind, Mode, Pipeline, Question, Redirect, RedirectionTarget, Simple,
    Stage, Word, WordPart,
};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::nearest::nearest;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{OPERATORS, QUESTIONS, SYMBOLS};

/// Returns true if a word that is a whole condition is a command, and no value.
pub(super) fn is_command(word: &Word) -> bool {
    let is_plain = |part: &WordPart| !matches!(part, WordPart::Single(_) | WordPart::Double(_));
    let is_path = |part: &WordPart| matches!(part, WordPart::Bare(text) if text.contains('/'));
    if !word.parts.iter().all(is_plain) {
        return false;
    }
    match &word.parts[..] {
        [WordPart::Bare(text)] if matches!(&**text, "true" | "false") || is_number(text) => false,
        // A symbol is a text.
        [WordPart::Bare(text), ..] => {
            text.contains(|c: char| c.is_alphanumeric())
                && !text.starts_with(|c: char| c.is_ascii_digit())
        }
        parts => parts.iter().any(is_path),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && text.parse::<f64>().is_ok()
}

/// Refuses a comparison without blanks: `if $x==3`.
pub(super) fn check_word(word: &Word, text: &str) -> Result<()> {
    let glued = |part: &WordPart| match part {
        WordPart::Bare(bare) => ["==", "!=", "<=", ">=", "="]
            .into_iter()
            .filter_map(|symbol| bare.find(symbol).map(|at| (at, symbol)))
            .min_by_key(|(at, _)| *at)
            .map(|(_, symbol)| symbol),
        _ => None,
    };
    let Some(symbol) = word.parts.iter().find_map(glued) else { return Ok(()) };
    let written = &text[word.span.start..word.span.end];
    let (left, right) = written.split_once(symbol).unwrap_or((written, ""));
    if symbol == "="
        && let Some(command) = right.strip_prefix("$(").and_then(|it| it.strip_suffix(')'))
    {
        let message = "a condition assigns nothing by `=`";
        let error = SyntaxError::new(Slug::CommandAsCondition, word.span, message);
        let before = text[..word.span.start].trim_end();
        let negation = if before.ends_with('!') { "! " } else { "" };
        return Err(Box::new(error.hint(hint!("write `{negation}{command} -> {left}`"))));
    }
    let symbol = if symbol == "=" { "==" } else { symbol };
    let message = format!("`{symbol}` needs spaces on both sides");
    let error = SyntaxError::new(Slug::CommandAsCondition, word.span, message);
    Err(Box::new(error.hint(hint!("write `{left} {symbol} {right}`"))))
}

/// Refuses `read x || …`, which would not end as a loop: at the end of input `read` sets nothing.
pub(super) fn check_read(left: &Expr, text: &str) -> Result<()> {
    if let ExprKind::Asked { question: Question::Bare, pipeline } = &left.kind
        && let [stage] = &pipeline.stages[..]
        && let Some(simple) = stage.simple()
        && simple.words.first().and_then(literal::bare) == Some("read")
    {
        let message = "`read` also takes a last line without a line end";
        let error = SyntaxError::new(Slug::CommandAsCondition, left.span, message);
        let read = &text[left.span.start..left.span.end];
        return Err(Box::new(error.hint(hint!("write `while {read}`"))));
    }
    Ok(())
}

/// Refuses the names of Python for `true` and `false`.
pub(super) fn check_name(word: &Word) -> Result<()> {
    let Some(name) = literal::bare(word) else { return Ok(()) };
    let meant = match name {
        "True" | "TRUE" => "true",
        "False" | "FALSE" => "false",
        _ => return Ok(()),
    };
    let message = format!("`{name}` is not a condition");
    let error = SyntaxError::new(Slug::CommandAsCondition, word.span, message);
    Err(Box::new(error.hint(hint!("write `{meant}`"))))
}

/// True for an operand of a comparison that no command looks like.
fn begins_number(text: &str) -> bool {
    text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// Refuses a condition that would compare a name with a number, or a number with a name.
pub(super) fn check(expr: &Expr, text: &str) -> Result<()> {
    if let ExprKind::Binary { left, .. } = &expr.kind
        && let ExprKind::Word(word) = &left.kind
        && let Some(WordPart::Bare(begin)) = word.parts.first()
        && begin.starts_with('[')
    {
        let message = "`[` needs a space after it";
        let error = SyntaxError::new(Slug::CommandAsCondition, word.span, message);
        let rest = text[word.span.start + 1..expr.span.end].trim_end_matches(']');
        return Err(Box::new(error.hint(brackets::instead(rest, &text[..word.span.start]))));
    }
    if let ExprKind::Binary { right, .. } = &expr.kind
        && let ExprKind::Word(word) = &right.kind
        && let Some(number) = literal::bare(word).and_then(|text| text.strip_suffix(':'))
        && is_number(number)
    {
        let message = format!("unexpected `:` behind `{number}`");
        let error = SyntaxError::new(Slug::Unexpected, word.span, message);
        return Err(Box::new(error.hint(bashisms::block())));
    }
    if let ExprKind::Word(word) = &expr.kind {
        if let [WordPart::Bare(mark), WordPart::Variable(_), ..] = &word.parts[..]
            && mark == "!"
        {
            return Err(glued_negation(word, &text[word.span.start + 1..word.span.end]));
        }
        let is_variable = matches!(word.parts.first(), Some(WordPart::Variable(_)));
        return if is_variable { check_word(word, text) } else { Ok(()) };
    }
    let ExprKind::Binary { operator, is_symbol: true, left, right } = &expr.kind else {
        return Ok(());
    };
    let (ExprKind::Word(first), ExprKind::Word(second)) = (&left.kind, &right.kind) else {
        return Ok(());
    };
    let is_name = |word: &Word| literal::bare(word).is_some_and(|text| !begins_number(text));
    if !matches!(operator, BinaryOperator::Lt | BinaryOperator::Gt)
        || !is_name(first) && !is_name(second)
    {
        return Ok(());
    }
    let symbol = if *operator == BinaryOperator::Lt { "<" } else { ">" };
    let written = |word: &Word| &text[word.span.start..word.span.end];
    let (name, value) = (written(first), written(second));
    let message = format!("`{symbol}` could compare two numbers or redirect a command");
    let error = SyntaxError::new(Slug::CommandAsCondition, expr.span, message);
    Err(Box::new(if is_name(first) && value.starts_with('$') {
        error.hint(hint!(
            "a variable has a `$`: `${name} {symbol} {value}`; a command has parentheses: \
             `.succeeds. ({name} {symbol} {value})`"
        ))
    } else if is_name(first) {
        error.hint(hint!(
            "a variable has a `$`: `${name} {symbol} {value}`; a file has a `/`: `{name} {symbol} ./{value}`"
        ))
    } else {
        error.hint(hint!(
            "a variable has a `$`: `{name} {symbol} ${value}`; a command in a variable has \
             parentheses: `.succeeds. ({name} {symbol} {value})`"
        ))
    }))
}

/// Returns the error for an operator that does not exist.
fn unknown(operator: &str, span: Span) -> Box<SyntaxError> {
    let message = format!("unknown operator `{operator}`");
    let error = SyntaxError::new(Slug::UnknownOperator, span, message);
    Box::new(match nearest(operator, OPERATORS) {
        Some(meant) => error.hint(hint!("did you mean `{meant}`?")),
        None => error.hint(hint!("the operators are {}", OPERATORS.join(" "))),
    })
}

/// Refuses `.and.`, `.or.` and `.not.` beside a command.
pub(super) fn joined(operator: &str, span: Span) -> Box<SyntaxError> {
    let symbol = match operator {
        ".and." => "&&",
        ".or." => "||",
        _ => "!",
    };
    let message = format!("`{operator}` takes values, and no commands");
    let error = SyntaxError::new(Slug::CommandAsCondition, span, message);
    Box::new(error.hint(hint!("before or between commands, write `{symbol}`")))
}

/// Refuses commands that were meant to be something else, before they are built.
pub(super) fn check_text(text: &str, span: Span) -> Result<()> {
    let line = text[span.start..span.end].lines().next().unwrap_or_default().trim_end();
    let Some((first, rest)) = line.split_once([' ', '\t']) else { return Ok(()) };
    let rest = rest.trim_start();
    let refuse = |length: usize, message: String, hint: Hint| {
        let span = Span::new(span.start, span.start + length);
        let error = SyntaxError::new(Slug::CommandAsCondition, span, message);
        Err(Box::new(error.hint(hint)))
    };
    if first == "[[" {
        let message = "there is no `[[` in ftsh".to_owned();
        if let Some(hint) = brackets::matched(rest) {
            return refuse(first.len(), message, hint);
        }
        return match brackets::translated(rest) {
            Some(condition) => {
                let hint = brackets::instead(&condition, &text[..span.start]);
                refuse(first.len(), message, hint)
            }
            None => refuse(
                first.len(),
                message,
                hint!("compare with symbols: `if $a == $b`, `if $n < 5`, `if .isfile. $f`"),
            ),
        };
    }
    if first.starts_with('-')
        && let Some(test) = brackets::translated(line)
    {
        let message = format!("`{first}` is not a test of a file here");
        return refuse(first.len(), message, hint!("write `{test}`"));
    }
    let second = rest.split([' ', '\t']).next().unwrap_or_default();
    let meant = match second {
        "=" | "===" | "is" => "==",
        "-eq" => ".eql.",
        "-ne" => ".neql.",
        "-lt" => "<",
        "-le" => "<=",
        "-gt" => ">",
        "-ge" => ">=",
        "=~" => ".matches.",
        "in" => ".in.",
        _ if first.starts_with('$') => {
            let is_it = |it: &&str| it.trim_matches('.') == second && *it != second;
            let dotted = OPERATORS.into_iter().find(is_it).unwrap_or_default();
            SYMBOLS.iter().find(|it| it.1 == dotted).map_or(dotted, |it| it.0)
        }
        _ => "",
    };
    let right = rest[second.len()..].trim_start();
    if meant == ".in." {
        let words = right.trim_matches(['(', ')', '[', ']']).replace(',', " ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let message = "`in` is not an operator".to_owned();
        let hint = hint!("write `case {first}`, a line `when {words}`, the commands, and `end`");
        return refuse(line.len(), message, hint);
    }
    if bashisms::is_operator(second) && !OPERATORS.contains(&second) {
        let at = span.start + line.len() - rest.len();
        return Err(unknown(second, Span::new(at, at + second.len())));
    }
    let is_symbol = |it: char| "*^=~+!%/<>".contains(it);
    if first.starts_with('$')
        && meant.is_empty()
        && !second.is_empty()
        && second.chars().all(is_symbol)
    {
        let message = format!("unknown operator `{second}`");
        return refuse(line.len(), message, hint!("the operators are {}", OPERATORS.join(" ")));
    }
    if !meant.is_empty() {
        let message = format!("`{second}` is not an operator here");
        let span = Span::new(span.start, span.start + line.len());
        let error = SyntaxError::new(Slug::UnknownOperator, span, message);
        let (meant, right) = match right.strip_prefix("not ") {
            Some(right) if second == "is" => ("!=", right),
            _ => (meant, right),
        };
        return Err(Box::new(error.hint(
            if is_script(&format!("if {first} {meant} {right}\nend")) {
                hint!("write `{first} {meant} {right}`")
            } else {
                hint!("write `{first} {meant} value`; a value with blanks has quotes")
            },
        )));
    }
    Ok(())
}

/// Refuses `and` and `or` between the words of a question, where other languages join conditions.
fn check_joined(simple: &Simple) -> Result<()> {
    let last = simple.words.len().saturating_sub(1);
    for word in simple.words.iter().take(last).skip(1) {
        let Some(name @ ("and" | "or")) = literal::bare(word) else { continue };
        let symbol = if name == "and" { "&&" } else { "||" };
        let message = format!("`{name}` joins no conditions");
        let error = SyntaxError::new(Slug::CommandAsCondition, word.span, message);
        return Err(Box::new(error.hint(hint!(
            "between conditions, write `{symbol}`; a word of a command has quotes: `\"{name}\"`"
        ))));
    }
    Ok(())
}

/// Refuses a command with words or redirections that make it something else than it seems.
pub(super) fn check_pipeline(pipeline: &Pipeline, text: &str) -> Result<()> {
    let simples = pipeline.stages.iter().filter_map(Stage::simple);
    for simple in simples {
        check_joined(simple)?;
        check_simple(simple, text)?;
        let is_test = simple.words.first().and_then(literal::bare).is_some_and(|name| {
            matches!(name, "[" | "test")
                && simple.words.iter().all(|it| literal::bare(it) != Some("-a"))
        });
        let is_compared = |it: &&Redirect| is_to_number(it) || is_test && is_to_file(it);
        if let Some(redirect) = simple.redirects.iter().find(is_compared) {
            let written = &text[redirect.span.start..redirect.span.end];
            let number = written.trim_start_matches(|c: char| "0123456789".contains(c));
            let number = number.trim_start_matches(['<', '>', '=', ' ', '\t']);
            let symbol = written[..written.len() - number.len()].trim_end();
            if is_test && let Some(value) = simple.words.get(1) {
                let value = &text[value.span.start..value.span.end];
                let message = format!("`{symbol}` would use a file, and compares nothing");
                let error = SyntaxError::new(Slug::CommandAsCondition, redirect.span, message);
                let condition = format!("{value} {symbol} {number}");
                let before = &text[..simple.span.start];
                return Err(Box::new(error.hint(brackets::instead(&condition, before))));
            }
            let message = format!("`{symbol}` would use a file called `{number}`");
            let error = SyntaxError::new(Slug::CommandAsCondition, redirect.span, message);
            return Err(Box::new(error.hint(hint!(
                "to compare what a command prints, write `$(command) {symbol} {number}`; \
                 a file of this name is `./{number}`"
            ))));
        }
    }
    Ok(())
}

fn check_simple(simple: &Simple, text: &str) -> Result<()> {
    let Some(word) = simple.words.first() else { return Ok(()) };
    if let [WordPart::Variable(_), WordPart::Bare(symbol)] = &word.parts[..]
        && matches!(&**symbol, "==" | "!=" | "<=" | ">=" | "=")
        && let Some(second) = simple.words.get(1)
    {
        let left = &text[word.span.start..word.span.end - symbol.len()];
        let right = &text[second.span.start..second.span.end];
        let message = format!("`{left}{symbol}` is one word");
        let symbol = if symbol == "=" { "==" } else { symbol };
        let error = SyntaxError::new(Slug::CommandAsCondition, word.span, message);
        return Err(Box::new(error.hint(hint!("write `{left} {symbol} {right}`"))));
    }
    let second = simple.words.get(1);
    if let Some(redirect) = simple.redirects.first().filter(|it| it.span.start < word.span.start)
        && (second.is_none() || literal::bare(word).is_none())
    {
        let message = "a redirection comes after the command of a condition";
        return Err(Box::new(SyntaxError::new(Slug::CommandAsCondition, redirect.span, message)));
    }
    let early = simple.redirects.first().filter(|redirect| {
        let is_before = |it: &Word| redirect.span.start < it.span.start;
        redirect.span.start >= word.span.end && second.is_none_or(is_before)
    });
    if let Some(redirect) = early.filter(|_| literal::bare(word).is_none()) {
        let message = "a value before a redirection could be a command or an operand";
        let error = SyntaxError::new(Slug::CommandAsCondition, simple.span, message);
        let written = &text[word.span.start..redirect.span.end];
        return Err(Box::new(error.hint(hint!(
            "a comparison has spaces around its symbol: `$a < $b`; a command in a variable has \
             parentheses: `.succeeds. ({written})`"
        ))));
    }
    let last = simple.words[1..].last();
    let ends = |it: &&Word| matches!(literal::bare(it), Some("then" | "do" | ":"));
    let brace = simple.words[1..].iter().find(|it| literal::bare(it) == Some("{"));
    if let Some(stray) = last.filter(ends).or(brace) {
        let message = format!("unexpected `{}`", &text[stray.span.start..stray.span.end]);
        let error = SyntaxError::new(Slug::Unexpected, stray.span, message);
        return Err(Box::new(error.hint(bashisms::block())));
    }
    let Some(name) = literal::bare(word) else { return Ok(()) };
    let refuse = |slug: Slug, message: String, hint: Hint| {
        Err(Box::new(SyntaxError::new(slug, word.span, message).hint(hint)))
    };
    let is_same = |it: &&Word| matches!(literal::bare(it), Some("==" | "!="));
    if let Some(symbol) = simple.words.iter().find(is_same)
        && !matches!(name, "[" | "test" | "expr")
    {
        let message = format!("`{name}` is a command here, and compares nothing");
        let left = text[word.span.start..symbol.span.start].trim_end();
        let right = &text[symbol.span.start..simple.span.end];
        let is_sum =
            second.and_then(literal::bare).is_some_and(|it| SYMBOLS.iter().any(|s| s.0 == it));
        return refuse(
            Slug::CommandAsCondition,
            message,
            if is_sum {
                hint!("a variable has a `$`: `${left} {right}`")
            } else {
                hint!("to compare what a command prints, write `$({left}) {right}`")
            },
        );
    }
    if QUESTIONS.contains(&name) && name != Question::Output.spelling() {
        let command = &text[word.span.end..simple.span.end].trim_start();
        let hint = hint!(
            "write the command alone, `if {command}`, or in parentheses: `{name} ({command})`"
        );
        return refuse(Slug::CommandAsCondition, format!("`{name}` has no parentheses"), hint);
    }
    if let Some(redirect) = early.filter(|it| may_be_compared(it) || begins_number(name)) {
        let written = &text[word.span.start..redirect.span.end];
        let message = "a redirection to a value could be a comparison";
        let error = SyntaxError::new(Slug::CommandAsCondition, simple.span, message);
        return Err(Box::new(error.hint(hint!(
            "a comparison has spaces around its symbol: `$a < $b`; a command has parentheses: \
             `.succeeds. ({written})`"
        ))));
    }
    // Only a redirection in between hides the operator from the grammar.
    if let Some(operator) = second.and_then(literal::bare)
        && OPERATORS.contains(&operator)
        && early.is_some()
    {
        let message = format!("`{operator}` takes values, and no redirections");
        return Err(Box::new(SyntaxError::new(Slug::CommandAsCondition, simple.span, message)));
    }
    let joins = |word: &&Word| matches!(literal::bare(word), Some(".and." | ".or." | ".not."));
    if let Some(word) = simple.words.iter().find(joins) {
        return Err(joined(&text[word.span.start..word.span.end], word.span));
    }
    if OPERATORS.contains(&name)
        && let Some(second) = second
    {
        let message = format!("`{name}` takes one value");
        let hint = hint!(
            "several values need several operators: `{name} a && {name} b`; a value with blanks or \
             commas has quotes"
        );
        return Err(Box::new(SyntaxError::new(Slug::Unexpected, second.span, message).hint(hint)));
    }
    if bashisms::is_operator(name) {
        return Err(unknown(name, word.span));
    }
    if let Some(rest) = name.strip_prefix('!').filter(|rest| !rest.is_empty()) {
        let rest = format!("{rest}{}", &text[word.span.end..simple.span.end]);
        return Err(glued_negation(word, &rest));
    }
    match name {
        "not" => refuse(
            Slug::UnknownOperator,
            "`not` is written `!`".to_owned(),
            hint!("write `! {}`", text[word.span.end..simple.span.end].trim_start()),
        ),
        "and" | "or" => refuse(
            Slug::UnknownOperator,
            format!("`{name}` is written `{}`", if name == "and" { "&&" } else { "||" }),
            hint!("join two conditions on one line: `$a == 1 && $b == 2`"),
        ),
        _ => Ok(()),
    }
}

/// Returns the error for `!$x` and `!command`.
fn glued_negation(word: &Word, negated: &str) -> Box<SyntaxError> {
    let message = "`!` needs a space after it";
    let error = SyntaxError::new(Slug::CommandAsCondition, word.span, message);
    Box::new(error.hint(hint!("write `! {negated}`")))
}

/// Returns true for `> 5`.
fn is_to_number(redirect: &Redirect) -> bool {
    let RedirectionTarget::File(word) = &redirect.target else { return false };
    literal::bare(word).is_some_and(|text| text == "=" || is_number(text))
}

/// Returns true for `< $x`, `< "x"` and `< 5`.
fn may_be_compared(redirect: &Redirect) -> bool {
    let RedirectionTarget::File(word) = &redirect.target else { return false };
    let is_usual = matches!(redirect.mode, Mode::Read | Mode::Write) && !redirect.with_errors;
    is_usual
        && redirect.descriptor == u8::from(redirect.mode == Mode::Write)
        && match word.parts.first() {
            Some(WordPart::Bare(text)) => {
                let number = text.strip_prefix('-').unwrap_or(text);
                let number = number.strip_prefix('.').unwrap_or(number);
                number.starts_with(|c: char| c.is_ascii_digit())
            }
            Some(WordPart::Escaped(_)) | None => false,
            Some(_) => true,
        }
}

/// Returns true for `> file`, and for `< file`.
fn is_to_file(redirect: &Redirect) -> bool {
    matches!(redirect.target, RedirectionTarget::File(_)) && !redirect.with_errors
}
