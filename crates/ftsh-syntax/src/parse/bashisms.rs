//! Bashisms: constructs of other shells, each with its replacement.

use std::collections::HashSet;

use super::braces::{self, arrays};
use super::{Result, literal, misspelled};
use crate::ast::{Expr, ExprKind, Parameter, Redirect, Simple, Word, WordPart};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::nearest::nearest;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{ALONE, KEYWORDS, OPERATORS, SYMBOLS, is_name};

/// Returns the hint for a first word without a meaning here, unless the script defines a function
/// of this name.
fn first_word(name: &str) -> Option<Hint> {
    Some(match name {
        "fi" | "done" | "esac" | "}" => hint!("every structure ends with `end`"),
        "then" | "do" => block(),
        "{" => hint!(
            "a block begins on the line after its head and ends with `end`; \
             to redirect several commands, `try … end > file`"
        ),
        "except" | "rescue" | "ensure" => hint!(
            "`catch` handles the failure of a `try`; commands after `finally` run in any case"
        ),
        "elif" | "elsif" | "elseif" => hint!("write `else if`"),
        "case" => hint!(
            "write `case $x`, a line like `when a b*` before the commands for these patterns, `else` \
             for any other value, and `end`; a program of this name has quotes: `\"case\" x`"
        ),
        "switch" | "match" => hint!(
            "compare with patterns: `case $x`, the lines `when a b*` and `else`, each with its \
             commands, and `end`"
        ),
        "declare" | "typeset" | "readonly" | "let" | "mut" | "var" | "const" => hint!(
            "variables need no declaration: `name=value`; in a function, `local name=value` lasts until the call ends"
        ),
        "local" => hint!("one name at a time: `local name=value`, or `local name`"),
        "set" | "shopt" => hint!(
            "a group stops at its first failure, so `set -e` isn't needed; nor is `-u`, \
             and `ftsh -l 20` logs commands as `-x` does"
        ),
        "ulimit" => hint!(
            "limit a command in a separate shell: `sh -c 'ulimit -n 100; exec command'`; \
              or by a program: `prlimit --nofile=100 command`"
        ),
        "command" | "type" => hint!(
            "to look for a program: `if which name -> path`; \
              the failure of a missing program has the kind `notfound`"
        ),
        "pushd" | "popd" => hint!(
            "a `cd` in a branch of `forall` applies to the branch only; elsewhere, `here=$(pwd)` and `cd $here`"
        ),
        "mapfile" | "readarray" => hint!("write `for line in lines($(command))`"),
        "!" => hint!(
            "to continue after a failure: `try … catch … end`; \
              to test a command: `if ! command`"
        ),
        "[[" => hint!("compare with symbols: `if $a == $b`, `if .isfile. $f`"),
        "until" => hint!("write `while ! …`, or `try` to repeat failed commands"),
        "finally" => hint!("the commands from `finally` to the `end` of the `try` run in any case"),
        "break" | "continue" => {
            hint!("`{name}` is for the innermost `for` or `while`, and takes no arguments")
        }
        "trap" => hint!(
            "`try … finally … end` cleans up after every end of the `try`, also by a signal, and \
             `catch` handles failures; processes of a failed attempt are killed in any case"
        ),
        "." | "include" => hint!("write `source file`"),
        "unless" => hint!("write `if ! …`"),
        "not" => hint!(
            "a question is `if ! …`; a command that has to fail goes into `try … catch … end`"
        ),
        "and" => hint!(
            "each command runs only after the success of the command before; conditions join by `if $a == 1 && $b == 2`"
        ),
        "or" => hint!(
            "a failure is handled by `try … catch … end`; conditions join by `if $a == 1 || $b == 2`"
        ),
        "contains" => hint!(
            "write `case $x`, a line like `when a b` before the commands for these words, and `end`"
        ),
        "math" => hint!("calculate in an assignment, `n=$n + 1`, or in a word, `$((n + 1))`"),
        "string" => hint!(
            "functions change texts: `v=replace($v, 'regex', \"text\")`, and `upper`, `split`, `substr`"
        ),
        "wait" | "jobs" | "fg" | "bg" => at_once(),
        "alias" => hint!("write a function: `function name`, the commands, and `end`"),
        "eval" => hint!(
            "a value is never parsed as code; another shell can run the value: `sh -c \"$command\"`"
        ),
        ":" => hint!(
            "a group may be empty; `echo -n > file` makes an empty file, `while true` repeats, and \
             `name=${{1:?text}}` checks an argument"
        ),
        "getopts" => {
            hint!("declare the options in the first line: `args -v --out=FILE name...`")
        }
        "history" => hint!("at the prompt, the up arrow and Ctrl-R find earlier lines"),
        "throw" | "raise" => {
            hint!("write `failure \"message\"`, or `exit 1` to end the script at once")
        }
        _ => return None,
    })
}

/// Names of [`first_word`] that a sourced file may define as a function.
const COMMON_FUNCTIONS: [&str; 5] = ["history", "include", "match", "raise", "throw"];

/// Returns the name of a list in `list name=…` or `list name = …`.
pub(super) fn assigned_list<'w>(word: &'w str, next: Option<&'w Word>) -> Option<&'w str> {
    let (name, is_assigned) = match word.split_once('=') {
        Some((name, _)) => (name, true),
        None => (word, next.and_then(literal::bare) == Some("=")),
    };
    (is_assigned && is_name(name)).then_some(name)
}

/// Returns the hint for a block that begins with a word or a brace.
pub(super) fn block() -> Hint {
    hint!("a block begins on the line after its head, or after a `;`, and ends with `end`")
}

/// Returns the hint for `(( … ))`.
pub(super) fn sum() -> Hint {
    hint!("calculate in an assignment, `n=$n + 1`, and compare in a condition, `if $n > 2`")
}

/// Returns the hint for `( … )`.
pub(super) fn subshell() -> Hint {
    hint!(
        "a `cd` in a branch of `forall` applies to the branch only, and `sh -c 'cd dir; command'` runs \
         a separate shell; to run a program of this name, quote the name"
    )
}

/// Returns the hint for commands in the background.
pub(super) fn at_once() -> Hint {
    hint!(
        "`forall` runs commands in parallel, and waits for all of them; `with` runs a command next to \
         a group"
    )
}

/// Returns the hint for arithmetic on a variable.
fn count(name: &str) -> Hint {
    hint!("write `{name}=${name} + 1` for numbers, `{name}=\"${name}…\"` for text")
}

/// Returns the hint for an operator of other languages, or for a misplaced symbol.
pub(super) fn operator_hint(symbol: &str) -> Option<Hint> {
    if matches!(symbol, "=" | "===") {
        return Some(hint!("`{symbol}` is written `==`"));
    }
    if symbol != "!" && SYMBOLS.iter().any(|(known, _)| *known == symbol) {
        return Some(hint!(
            "a symbol is written between two values, with spaces around it: `$a {symbol} $b`"
        ));
    }
    let meant = operator(symbol)?;
    Some(hint!("`{symbol}` is written `{meant}`"))
}

/// Returns the hint for a comparison in an assignment without parentheses.
pub(super) fn compared(name: &str, symbol: &str) -> Hint {
    hint!("a comparison in an assignment has parentheses: `{name}=($a {symbol} $b)`")
}

/// Returns true if a symbol compares values, or joins or negates conditions.
pub(super) fn is_comparison(symbol: &str) -> bool {
    let is_known = SYMBOLS.iter().any(|(known, _)| *known == symbol);
    is_known && !matches!(symbol, "+" | "-" | "*" | "/" | "%" | "!")
}

/// Returns the operator for a symbol of other languages.
pub(super) fn operator(symbol: &str) -> Option<&'static str> {
    Some(match symbol {
        "=" | "==" | "===" | "is" => "==",
        "!=" => "!=",
        "-eq" => ".eql.",
        "-ne" => ".neql.",
        "<" | "-lt" => "<",
        "<=" | "-le" => "<=",
        ">" | "-gt" => ">",
        ">=" | "-ge" => ">=",
        "=~" => ".matches.",
        "&&" | "-a" | "and" => "&&",
        "||" | "-o" | "or" => "||",
        "+" => "+",
        "-" => "-",
        "*" => "*",
        "/" => "/",
        "%" => "%",
        "**" | "^" => ".pow.",
        ".." => ".to.",
        "not" | "!" => "!",
        _ => return None,
    })
}

/// Returns the error for `<(command)` and `>(command)`.
pub(super) fn process_substitution(span: Span, operator: &str) -> SyntaxError {
    SyntaxError::new(Slug::ProcessSubstitution, span, format!("there is no `{operator}( )`")).hint(match operator {
        "<" => {
            hint!("to read the output from a variable, `command -> v` and `-< v`; from a pipe, `command | …`")
        }
        _ => hint!("send the output through a pipe: `… | command`"),
    })
}

/// Refuses commands of the script `text` that are certainly errors.
pub(super) fn command(simple: &Simple, functions: &HashSet<&str>, text: &str) -> Result<()> {
    let Some(word) = simple.words.first() else { return Ok(()) };
    let refuse = |slug: Slug, message: String, hint: Hint| {
        Err(Box::new(SyntaxError::new(slug, word.span, message).hint(hint)))
    };
    if let Some(keyword) = keyword(word) {
        let is_first = |it: &Redirect| it.span.start < word.span.start;
        if simple.assignments.is_empty() && !simple.redirects.iter().any(is_first) {
            return Err(Box::new(misspelled::structure_in_succeeds(word.span, keyword)));
        }
        return refuse(
            Slug::MisplacedKeyword,
            format!("`{keyword}` can't follow a redirection or an assignment"),
            hint!(
                "a structure is redirected after its `end`; to run a program of this name, quote the name"
            ),
        );
    }
    match &word.parts[..] {
        [WordPart::Bare(text), ..] if is_element(text) => {
            return refuse(
                Slug::Array,
                "assignment to an element of an array".to_owned(),
                arrays(),
            );
        }
        [WordPart::Bare(text), ..] if text.contains('(') && text.contains("+=(") => {
            return refuse(Slug::Array, "there is no `+=`".to_owned(), arrays());
        }
        [WordPart::Bare(word), ..] if let Some((name, operator)) = changed(simple, word, text) => {
            return refuse(
                Slug::CompoundAssignment,
                format!("there is no `{operator}`"),
                count(name),
            );
        }
        [WordPart::Variable(variable), rest @ ..]
            if matches!(rest, [WordPart::Bare(text), ..] if text.starts_with('=') && !text.starts_with("=="))
                || rest.is_empty() && simple.words.get(1).and_then(literal::bare) == Some("=") =>
        {
            if let Parameter::Named(name) = &variable.parameter {
                return refuse(
                    Slug::DollarAssignment,
                    "an assignment has no `$` before the name".to_owned(),
                    hint!("write `{name}=value`"),
                );
            }
        }
        _ => {}
    }
    let Some(name) = literal::bare(word).filter(|name| !functions.contains(name)) else {
        return Ok(());
    };
    if name == "exec" && simple.words.len() == 1 && !simple.redirects.is_empty() {
        return refuse(
            Slug::ExecRedirection,
            "`exec` can't redirect the shell".to_owned(),
            hint!(
                "redirect a group: `try`, the commands, and `end > file`; \
                 or the whole script: `ftsh script > file`"
            ),
        );
    }
    if name == "list"
        && let Some(list) = simple.words.get(1).and_then(literal::bare)
        && let Some(list) = assigned_list(list, simple.words.get(2))
    {
        let message = "the elements of a list follow `in`, not `=`".to_owned();
        return refuse(Slug::Array, message, hint!("write `list {list} in a b`"));
    }
    if name == "printf" && simple.words.get(1).and_then(literal::bare) == Some("-v") {
        let message = "`printf` is a program, and sets no variable".to_owned();
        let hint = hint!("output goes to a variable by `->`: `printf '%s' a -> name`");
        return refuse(Slug::OtherShell, message, hint);
    }
    if name == "wait"
        && let Some(time) = simple.words.get(1)
        && literal::bare(time).is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit()))
    {
        let time = &text[time.span.start..simple.span.end];
        let message = "there is no `wait` in ftsh".to_owned();
        return refuse(Slug::OtherShell, message, hint!("write `sleep {time}`"));
    }
    if let Some(hint) = first_word(name).filter(|_| !is_sourced(name, text)) {
        let (slug, message) = if ALONE.contains(&name) {
            (Slug::NotAlone, format!("`{name}` must be alone on its line"))
        } else if name == "local" {
            let message = "`local` takes one name, with or without a value";
            (Slug::LocalNames, message.to_owned())
        } else if name == "case" {
            (Slug::CaseForm, "`case` takes one value".to_owned())
        } else {
            (Slug::OtherShell, format!("there is no `{name}` in ftsh"))
        };
        return refuse(slug, message, hint);
    }
    if let Some(function) = function_header(name, simple.words.get(1)) {
        return refuse(
            Slug::FunctionHead,
            "functions are defined with the word `function`".to_owned(),
            hint!("write `function {function}`, the commands, and `end`"),
        );
    }
    if name.starts_with("((") {
        return refuse(Slug::Arithmetic, "`(( ))` doesn't calculate".to_owned(), sum());
    }
    if name.starts_with('(') {
        return refuse(Slug::Subshell, "parentheses don't run a subshell".to_owned(), subshell());
    }
    if name == "read" {
        reading(simple)?;
    }
    let second = simple.words.get(1).and_then(literal::bare);
    if !simple.assignments.is_empty() {
        if simple.words.len() > 1
            && let Some(hint) = operator_hint(name)
        {
            let assigned = &simple.assignments[0].0;
            let is_symbol = SYMBOLS.iter().any(|(known, _)| *known == name);
            return match is_symbol {
                _ if is_comparison(name) => {
                    let message = format!("an assignment takes `{name}` only in parentheses");
                    refuse(Slug::MisplacedSymbol, message, compared(assigned, name))
                }
                true if name != "!" => {
                    let message = format!("something follows the value after `{name}`");
                    let hint =
                        hint!("an assignment ends with its value: `{assigned}=$a {name} $b`");
                    refuse(Slug::MisplacedSymbol, message, hint)
                }
                _ => refuse(Slug::UnknownOperator, format!("unknown operator `{name}`"), hint),
            };
        }
        if is_operator(name) {
            let unknown = format!("unknown operator `{name}`");
            return match nearest(name, OPERATORS) {
                Some(meant) if meant != name => {
                    refuse(Slug::UnknownOperator, unknown, hint!("did you mean `{meant}`?"))
                }
                Some(_) => refuse(
                    Slug::MissingOperand,
                    format!("a value is missing before `{name}`"),
                    hint!("check the parentheses before the operator"),
                ),
                None => refuse(
                    Slug::UnknownOperator,
                    unknown,
                    hint!("the operators are {}", OPERATORS.join(" ")),
                ),
            };
        }
    }
    if is_name(name) && second.is_some_and(|word| word.starts_with('=')) {
        return refuse(
            Slug::AssignmentBlank,
            "an assignment has no space before its `=`".to_owned(),
            hint!("write `{name}=value`"),
        );
    }
    Ok(())
}

/// Returns the variable and the operator of `x+=1`, `x -= 1`, `x++` and `++x`.
fn changed<'w>(simple: &'w Simple, first: &'w str, text: &str) -> Option<(&'w str, &'w str)> {
    const CHANGES: [&str; 3] = ["+=", "-=", "*="];
    const STEPS: [&str; 2] = ["++", "--"];
    if let Some(second) = simple.words.get(1) {
        let operator = literal::bare(second).filter(|word| CHANGES.contains(word));
        if let Some(operator) = operator.filter(|_| is_name(first)) {
            return Some((first, operator));
        }
    }
    if first.contains('=') {
        for operator in CHANGES {
            if let Some((name, _)) = first.split_once(operator)
                && is_name(name)
            {
                return Some((name, operator));
            }
        }
    }
    // Compilers have names like `g++`, and need arguments.
    let step = |operator: &&'static str| {
        let name = first.strip_suffix(*operator).or_else(|| first.strip_prefix(*operator))?;
        let sets = [
            format!("{name}="),
            format!("> {name}"),
            format!("read {name}"),
            format!("for {name}"),
        ];
        let is_variable = is_name(name) && sets.iter().any(|set| text.contains(set.as_str()));
        is_variable.then_some((name, *operator))
    };
    STEPS.iter().filter(|_| simple.words.len() == 1).find_map(step)
}

/// Returns true if a file sourced by the script may define `name`.
fn is_sourced(name: &str, text: &str) -> bool {
    COMMON_FUNCTIONS.contains(&name) && text.contains("source")
}

/// Removes the `-r` of `read`, which keeps backslashes in any case.
pub(super) fn drop_option_of_read(simple: &mut Simple) {
    let is = |at: usize, text: &str| simple.words.get(at).and_then(literal::bare) == Some(text);
    if is(0, "read") && is(1, "-r") && simple.words.len() > 2 {
        simple.words.remove(1);
    }
}

/// Refuses options of `read`, and `IFS` before `read`.
fn reading(simple: &Simple) -> Result<()> {
    let words = simple.words.iter().filter_map(literal::bare);
    if let Some(option) = words.clone().find(|word| word.starts_with('-')) {
        let names: Vec<_> = words.skip(1).filter(|word| is_name(word)).collect();
        let names = if names.is_empty() { "line".to_owned() } else { names.join(" ") };
        let message = format!("`read` takes names, and no option `{option}`");
        if option == "-p" {
            let name = names.rsplit(' ').next().unwrap_or_default();
            let error = SyntaxError::new(Slug::ReadOption, simple.span, message);
            return Err(Box::new(error.hint(hint!(
                "print the question before: `echo -n \"Name: \"`, and then `read {name}`"
            ))));
        }
        return Err(Box::new(SyntaxError::new(Slug::ReadOption, simple.span, message).hint(
            hint!(
                "write `read {names}`: backslashes are kept; `try for 5 seconds` limits the time"
            ),
        )));
    }
    if simple.assignments.iter().any(|(name, _)| &**name == "IFS") {
        let error = SyntaxError::new(Slug::ReadOption, simple.span, "`read` ignores `IFS`");
        return Err(Box::new(error.hint(hint!(
            "`read line` reads a whole line, and `for field in split($line, \":\")` splits the line"
        ))));
    }
    Ok(())
}

/// Returns the keyword that a word is, or would be at the start of a line.
fn keyword(word: &Word) -> Option<&'static str> {
    let (WordPart::Bare(text), rest) = word.parts.split_first()? else { return None };
    let first = *text.as_bytes().first()?;
    KEYWORDS.into_iter().filter(|keyword| keyword.as_bytes()[0] == first).find(|keyword| {
        text.strip_prefix(keyword).is_some_and(|after| match after.chars().next() {
            Some(c) => matches!(c, '(' | ')' | ','),
            None => matches!(rest.first(), None | Some(WordPart::Bare(_))),
        })
    })
}

/// Returns the name in `name()` or `name ()`.
fn function_header<'w>(first: &'w str, second: Option<&Word>) -> Option<&'w str> {
    if first.contains('(')
        && let Some((name, after)) = first.split_once("()")
    {
        return (!name.is_empty() && matches!(after, "" | "{")).then_some(name);
    }
    let second = literal::bare(second?)?;
    second.starts_with("()").then_some(first)
}

/// Returns true if a word has the shape of an operator.
pub(super) fn is_operator(word: &str) -> bool {
    word.len() > 2
        && word.starts_with('.')
        && word.ends_with('.')
        && word[1..word.len() - 1].bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Refuses `{1..3}` in the list of a loop that begins with `head`, like `for x in`.
pub(super) fn list(list: &[Expr], head: &str) -> Result<()> {
    for expr in list {
        let ExprKind::Word(word) = &expr.kind else { continue };
        let Some((range, alone)) = braces::range(word) else { continue };
        let error = SyntaxError::new(Slug::BraceList, word.span, "braces don't make a list");
        return Err(Box::new(error.hint(if alone {
            hint!("count with a range: `{head} {range}`")
        } else {
            hint!("count with a range, `{head} {range}`, and build the names in the loop")
        })));
    }
    Ok(())
}

/// Returns true if a word begins like `a[0]=`.
fn is_element(text: &str) -> bool {
    text.split_once('[').is_some_and(|(name, rest)| {
        is_name(name) && rest.split_once("]=").is_some_and(|(index, _)| !index.contains(['/', '=']))
    })
}
