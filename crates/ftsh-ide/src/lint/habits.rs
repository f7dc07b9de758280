//! Lint of spellings of other languages that are text here.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{BinaryOperator, Expr, ExprKind, Parameter, Quoted, Simple, Word, WordPart};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

/// Builtins whose words are often meant as a sum.
const CALCULATORS: [&str; 5] = ["echo", "exit", "export", "failure", "sleep"];

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        for simple in walk::simples(command) {
            warnings.extend(sum(simple));
            warnings.extend(echo_option(simple));
            warnings.extend(simple.words.iter().filter_map(pattern));
        }
        let list = walk::items(command);
        let words = list.iter().filter_map(|expr| match &expr.kind {
            ExprKind::Word(word) => Some(word),
            _ => None,
        });
        warnings.extend(words.filter_map(|word| range(word).or_else(|| pattern(word))));
        warnings.extend(list.windows(2).filter_map(signed));
        warnings.extend(counted(list));
        warnings.extend(list.windows(3).filter_map(spelled_range));
        for expr in walk::expressions(command) {
            expression(expr, &mut warnings);
        }
    });
    warnings
}

/// Checks the words of a command for `1 + 2`.
fn sum(simple: &Simple) -> Option<Warning> {
    walk::name(simple).filter(|name| CALCULATORS.contains(&&**name))?;
    let is_number = |text: &str| literal::number(text).is_some();
    simple.words.windows(3).find_map(|words| {
        let [left, symbol, right] = words else { return None };
        let (left_text, right_text) = (literal::written(left)?, literal::written(right)?);
        let operator = literal::bare(symbol)?;
        if !matches!(operator, "+" | "-" | "/" | "%") {
            return None;
        }
        let is_variable = |text: &str| text.starts_with('$');
        let fits = is_number(&left_text) && (is_number(&right_text) || is_variable(&right_text))
            || is_variable(&left_text) && is_number(&right_text);
        let span = Span::new(left.span.start, right.span.end);
        fits.then(|| {
            Warning::new(Slug::TextArithmetic, span, "this is text: nothing is calculated")
                .hint(hint!("assign the value first: `n={left_text} {operator} {right_text}`"))
        })
    })
}

/// Checks for options of `echo` in other shells, which are printed.
fn echo_option(simple: &Simple) -> Option<Warning> {
    walk::name(simple).filter(|name| name == "echo")?;
    let option = simple.words.get(1)?;
    let letters = literal::bare(option)?.strip_prefix('-')?;
    let is_option = letters.contains(['e', 'E']) && letters.chars().all(|it| "neE".contains(it));
    is_option.then(|| {
        let message = format!("`echo` prints `-{letters}`: it knows only `-n`");
        Warning::new(Slug::EchoOption, option.span, message)
            .hint(hint!("`printf 'a\\tb\\n'` translates escapes"))
    })
}

/// Checks a word of a list for `1..3`.
fn range(word: &Word) -> Option<Warning> {
    let text = literal::written(word)?;
    let (from, to) = text.split_once(".to.").or_else(|| text.split_once(".."))?;
    let is_end = |text: &str| text.parse::<i64>().is_ok() || text.starts_with('$');
    let fits = is_end(from) && is_end(to);
    fits.then(|| {
        Warning::new(Slug::TextArithmetic, word.span, format!("`{text}` is text, and no range"))
            .hint(hint!("a range has an operator: `{from} .to. {to}`"))
    })
}

/// Checks two items of a list for `1 .to. 3 -1`.
fn signed(items: &[Expr]) -> Option<Warning> {
    let [Expr { kind: ExprKind::Range { .. }, .. }, Expr { kind: ExprKind::Word(word), .. }] =
        items
    else {
        return None;
    };
    let text = literal::bare(word).filter(|text| text.starts_with(['-', '+']))?;
    literal::number(text)?;
    let (sign, number) = text.split_at(1);
    let message = format!("`{text}` is a word after the range");
    Some(
        Warning::new(Slug::TextArithmetic, word.span, message)
            .hint(hint!("put spaces around an operator: `1 .to. $n {sign} {number}`")),
    )
}

/// Checks a list for `seq 3`.
fn counted(list: &[Expr]) -> Option<Warning> {
    let (first, numbers) = list.split_first()?;
    let is_name = matches!(&first.kind, ExprKind::Word(word) if literal::bare(word) == Some("seq"));
    let numbers: Option<Vec<_>> = numbers.iter().map(literal::operand).collect();
    let numbers = numbers.filter(|_| is_name)?;
    let is_end = |text: &String| literal::number(text).is_some() || text.starts_with('$');
    let (from, to) = match &numbers[..] {
        [to] => ("1", to),
        [from, to] => (from.as_str(), to),
        _ => return None,
    };
    numbers.iter().all(is_end).then(|| {
        Warning::new(Slug::TextArithmetic, first.span, "`seq` is a word here, and runs nothing")
            .hint(hint!("a range has an operator: `{from} .to. {to}`"))
    })
}

/// Checks three items of a list for `1 to 3` and `1 .. 3`.
fn spelled_range(items: &[Expr]) -> Option<Warning> {
    let written = |item: &Expr| match &item.kind {
        ExprKind::Word(word) => literal::written(word),
        _ => None,
    };
    let [from, between, to] = items else { return None };
    let (from, word, to) = (written(from)?, written(between)?, written(to)?);
    let is_end = |text: &str| text.parse::<i64>().is_ok() || text.starts_with('$');
    (matches!(&*word, "to" | ".." | "...") && is_end(&from) && is_end(&to)).then(|| {
        Warning::new(
            Slug::TextArithmetic,
            between.span,
            format!("`{word}` is a word, and not a range"),
        )
        .hint(hint!("a range has an operator: `{from} .to. {to}`"))
    })
}

/// Checks a word for `**`, and for a pattern behind `host:` or `--option=`.
fn pattern(word: &Word) -> Option<Warning> {
    let bare = |part: &WordPart| match part {
        WordPart::Bare(text) => Some(text.clone()),
        _ => None,
    };
    if word.parts.iter().filter_map(bare).any(|text| text.contains("**")) {
        let message = "`**` means the same as `*`: it matches names in one directory";
        let warning = Warning::new(Slug::PatternWord, word.span, message);
        let pattern = literal::written(word).unwrap_or_else(|| "**/*.txt".into());
        return Some(warning.hint(hint!(
            "`for f in files(\"{pattern}\")` also finds files in the directories below"
        )));
    }
    let text = literal::bare(word)?;
    let (before, after) = match text.strip_prefix("--") {
        Some(option) => option.split_once('=')?,
        None => text.split_once(':')?,
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    let fits = !before.is_empty()
        && before.chars().all(is_host)
        && after.contains(['*', '?'])
        && !after.starts_with("//");
    fits.then(|| {
        let message = "this is a pattern for local files whose names begin like the word";
        Warning::new(Slug::PatternWord, word.span, message)
            .hint(hint!("quote the word: `'{text}'`"))
    })
}

/// Checks an expression and its operands.
fn expression(expr: &Expr, warnings: &mut Vec<Warning>) {
    match &expr.kind {
        ExprKind::Binary {
            operator: BinaryOperator::Or | BinaryOperator::And,
            left,
            right,
            ..
        } => {
            warnings.extend(condition(left, None));
            warnings.extend(condition(right, Some(&**left)));
        }
        ExprKind::Binary { operator: BinaryOperator::Pow, left, right, .. } => {
            let is_power = |expr: &Expr| {
                matches!(expr.kind, ExprKind::Binary { operator: BinaryOperator::Pow, .. })
            };
            if is_power(left) || is_power(right) {
                let message = "powers in a row are calculated from the left";
                let warning = Warning::new(Slug::ChainedPower, expr.span, message);
                warnings.push(warning.hint(hint!(
                    "parentheses show the order: `2 .pow. (3 .pow. 2)` or `(2 .pow. 3) .pow. 2`"
                )));
            }
        }
        ExprKind::Call { name, args } if &**name == "replace" => {
            warnings.extend(args.get(2).and_then(replacement));
            warnings.extend(args.get(1).and_then(special));
        }
        ExprKind::Call { name, args } if &**name == "match" => {
            warnings.extend(args.get(1).and_then(special));
        }
        ExprKind::Call { name, args } if &**name == "lines" => {
            warnings.extend(args.first().and_then(file_name));
        }
        _ => {}
    }
    for operand in walk::operands(expr) {
        expression(operand, warnings);
    }
}

/// Checks an operand of `.or.`, `||`, `.and.` or `&&` for a text, which is not a condition.
fn condition(operand: &Expr, left: Option<&Expr>) -> Option<Warning> {
    let text = literal::expr(operand)?;
    if matches!(&*text, "true" | "false") {
        return None;
    }
    let message = format!("`{text}` is neither `true` nor `false`: the condition fails");
    let warning = Warning::new(Slug::TextOperand, operand.span, message);
    let compared = left.and_then(|left| match &left.kind {
        ExprKind::Binary { operator: operator @ BinaryOperator::Eq, is_symbol, left, .. } => {
            match &left.kind {
                ExprKind::Word(word) => {
                    Some((literal::written(word)?, operator.written(*is_symbol)))
                }
                _ => None,
            }
        }
        _ => None,
    });
    Some(match compared {
        Some((value, operator)) => {
            warning.hint(hint!("compare once more: `{value} {operator} {text}`"))
        }
        None => warning,
    })
}

/// Checks a regular expression for a single character with a meaning.
fn special(pattern: &Expr) -> Option<Warning> {
    let text = literal::expr(pattern).filter(|text| matches!(&**text, "." | "^" | "$" | "|"))?;
    let message = format!("`{text}` is a regular expression here, and not the character");
    Some(
        Warning::new(Slug::SpecialCharacter, pattern.span, message)
            .hint(hint!("a backslash makes it a character: `\"\\{text}\"`")),
    )
}

/// Checks the text of `lines` for the name of a file.
fn file_name(text: &Expr) -> Option<Warning> {
    let name = literal::expr(text).filter(|text| !text.is_empty() && !text.contains('\n'))?;
    let message = format!("`lines` splits a text, and `{name}` is one line");
    Some(
        Warning::new(Slug::OneLine, text.span, message)
            .hint(hint!("the lines of a file: `lines($(cat \"{name}\"))`")),
    )
}

/// Checks the text that replaces a match for `$1` in double quotes.
fn replacement(with: &Expr) -> Option<Warning> {
    let ExprKind::Word(word) = &with.kind else { return None };
    let quoted = word.parts.iter().filter_map(|part| match part {
        WordPart::Double(pieces) => Some(pieces),
        _ => None,
    });
    let variable = quoted.flatten().find_map(|piece| match piece {
        Quoted::Variable(variable) => match variable.parameter {
            Parameter::Positional(number @ 1..=9) => Some((variable.span, number)),
            _ => None,
        },
        Quoted::Text(_) | Quoted::Call(_) => None,
    });
    let (span, number) = variable?;
    let message = format!("in double quotes, `${number}` is an argument of the script");
    Some(
        Warning::new(Slug::QuotedGroup, span, message)
            .hint(hint!("a group of the match is written in single quotes: `'${number}'`")),
    )
}
