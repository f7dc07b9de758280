//! Bashisms: habits from other shells, each with the way it is said here.

use std::collections::HashSet;

use super::braces::{self, arrays};
use super::{Result, literal};
use crate::ast::{Expr, ExprKind, Parameter, Part, Simple, Word};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::nearest::nearest;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{ALONE, DECLARATIONS, KEYWORDS, OPERATORS, is_name};

/// Advice for a first word that no command has, unless it is one of the script's functions.
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
        "case" | "switch" => {
            hint!("compare in turn: `if $x .eq. a … else if $x .matches. \"^b\" … else … end`")
        }
        "declare" | "typeset" | "readonly" | "let" => hint!(
            "variables are simply assigned: `name=value`; in a function, `local name=value` until it ends"
        ),
        "local" => hint!("one name at a time: `local name=value`, or `local name`"),
        "set" => hint!(
            "a group stops at its first failure, so `set -e` isn't needed; nor is `-u`, \
             and `ftsh -l 20` logs commands as `-x` does"
        ),
        "ulimit" => hint!(
            "a shell of its own limits a command: `sh -c 'ulimit -n 100; exec command'`; \
             so does `prlimit --nofile=100 command`"
        ),
        "command" | "type" => hint!(
            "to look for a program: `if .succeeds. (which name -> path)`; \
             the failure of a missing one has the kind `notfound`"
        ),
        "pushd" | "popd" => hint!(
            "a `cd` in a branch of `forall` stays there; else `pwd -> here` and `cd \"$here\"`"
        ),
        "mapfile" | "readarray" => hint!("`command -> v`, and then `for line in lines($v)`"),
        "!" => hint!(
            "to go on when a command fails: `try … catch … end`; \
             to ask it a question: `if .not. .succeeds. (command)`"
        ),
        "[[" => hint!("compare with operators: `if $a .eq. $b`, `if .isfile. $f`"),
        "until" => hint!("write `while .not. …`, or `try` to repeat what fails"),
        "finally" => hint!("the commands from it to the `end` of the `try` run in any case"),
        "break" | "continue" => {
            hint!("it is about the innermost `for` or `while`, and takes no words")
        }
        "trap" => hint!(
            "`try … finally … end` cleans up however the `try` is left, also by a signal, and \
             `catch` reacts to failures; processes of a failed attempt are ended in any case"
        ),
        "." | "include" => hint!("write `source file`"),
        "channel" => hint!(
            "it stands on a line of its own: `channel mirror at most 4`; quote a program's name"
        ),
        "unless" => hint!("write `if .not. …`"),
        "wait" | "jobs" | "fg" | "bg" => at_once(),
        "alias" => hint!("write a function: `function name`, the commands, and `end`"),
        "eval" => hint!("values are never parsed again; `sh -c \"$command\"` would"),
        ":" => hint!(
            "a group may be empty; `echo -n > file` makes an empty file, and `while true` repeats"
        ),
        "getopts" => {
            hint!("take the arguments in turn: `while $# .gt. 0`, `if $1 .eq. \"-v\"` and `shift`")
        }
        "history" => hint!("at the prompt, the up arrow and Ctrl-R find earlier lines"),
        "throw" | "raise" => {
            hint!("write `failure \"message\"`, or `exit 1` to end the script at once")
        }
        _ => return None,
    })
}

/// Names of [`first_word`] that a sourced file may well give to a function.
const COMMON_FUNCTIONS: [&str; 4] = ["history", "include", "raise", "throw"];

/// Advice where a block is opened by a word or a brace.
pub(super) fn block() -> Hint {
    hint!("a block begins on the line after its head, or after a `;`, and ends with `end`")
}

/// Advice where commands are put into the background.
pub(super) fn at_once() -> Hint {
    hint!("`forall` runs commands at once, and waits for all of them")
}

/// Advice where something is counted in a variable.
fn count(name: &str) -> Hint {
    hint!("write `{name}=${name} .add. 1` for numbers, `{name}=\"${name}…\"` for text")
}

/// Returns the hint for an operator of other languages.
pub(super) fn operator_hint(symbol: &str) -> Option<Hint> {
    let meant = operator(symbol)?;
    let for_numbers = match meant {
        ".eq." => ".eql.",
        ".ne." => ".neql.",
        _ => return Some(hint!("`{symbol}` is written `{meant}`")),
    };
    Some(hint!("`{symbol}` is written `{meant}` for text and `{for_numbers}` for numbers"))
}

/// What other languages write for an operator.
pub(super) fn operator(symbol: &str) -> Option<&'static str> {
    Some(match symbol {
        "=" | "==" | "===" => ".eq.",
        "!=" => ".ne.",
        "-eq" => ".eql.",
        "-ne" => ".neql.",
        "<" | "-lt" => ".lt.",
        "<=" | "-le" => ".le.",
        ">" | "-gt" => ".gt.",
        ">=" | "-ge" => ".ge.",
        "=~" => ".matches.",
        "&&" | "-a" | "and" => ".and.",
        "||" | "-o" | "or" => ".or.",
        "+" => ".add.",
        "-" => ".sub.",
        "*" => ".mul.",
        "/" => ".div.",
        "%" => ".mod.",
        "**" | "^" => ".pow.",
        ".." => ".to.",
        "not" | "!" => ".not.",
        _ => return None,
    })
}

/// A condition in the words of `test`, said in operators: `-f x ]` is `.isfile. x`.
pub(super) fn test(condition: &str) -> Option<String> {
    let condition = condition.split([';', ']']).next()?;
    let mut words: Vec<&str> = condition.split_whitespace().collect();
    let negated = words.first() == Some(&"!");
    if negated {
        words.remove(0);
    }
    let said = match words[..] {
        ["-z", value] => format!("{value} .eq. \"\""),
        ["-n", value] => format!("{value} .ne. \"\""),
        [flag, file] => format!("{} {file}", file_test(flag)?),
        [left, symbol, right] => format!("{left} {} {right}", operator(symbol)?),
        _ => return None,
    };
    Some(match words.len() {
        _ if !negated => said,
        2 if said.starts_with('.') => format!(".not. {said}"),
        _ => format!(".not. ({said})"),
    })
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

/// `<(command)` and `>(command)`.
pub(super) fn process_substitution(span: Span, operator: &str) -> SyntaxError {
    SyntaxError::new(Slug::ProcessSubstitution, span, format!("there is no `{operator}( )`")).hint(match operator {
        "<" => {
            hint!("collect the output, `command -> v`, and read it with `-< v`; for a pipe, `command | …`")
        }
        _ => hint!("send the output on with a pipe: `… | command`"),
    })
}

/// Refuses commands that can only be a mistake, in the script `text`.
pub(super) fn command(simple: &Simple, functions: &HashSet<&str>, text: &str) -> Result<()> {
    let Some(word) = simple.words.first() else { return Ok(()) };
    let refuse = |slug: Slug, message: String, hint: Hint| {
        Err(Box::new(SyntaxError::new(slug, word.span, message).hint(hint)))
    };
    if let Some(keyword) = keyword(word) {
        return refuse(
            Slug::MisplacedKeyword,
            format!("`{keyword}` can't follow a redirection or an assignment"),
            hint!(
                "a structure is redirected after its `end`; to run a program of that name, quote it"
            ),
        );
    }
    match &word.parts[..] {
        [Part::Bare(text), ..] if is_element(text) => {
            return refuse(Slug::Array, "an element of an array is assigned".to_owned(), arrays());
        }
        [Part::Bare(word), ..] if let Some((name, operator)) = changed(simple, word, text) => {
            return refuse(
                Slug::CompoundAssignment,
                format!("there is no `{operator}`"),
                count(name),
            );
        }
        [Part::Variable(variable), Part::Bare(text), ..] if text.starts_with('=') => {
            if let Parameter::Named(name) = &variable.parameter {
                return refuse(
                    Slug::DollarAssignment,
                    "a variable is assigned without its `$`".to_owned(),
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
            "`exec` redirects nothing but its command".to_owned(),
            hint!(
                "redirect what follows as a whole: `try`, the commands, and `end > file`; \
                 or the script: `ftsh script > file`"
            ),
        );
    }
    if let Some(hint) = first_word(name).filter(|_| !is_sourced(name, text)) {
        let (slug, message) = if ALONE.contains(&name) {
            (Slug::NotAlone, format!("`{name}` stands alone on its line"))
        } else if name == "local" {
            let message = "`local` takes one name, and no more than its value";
            (Slug::LocalNames, message.to_owned())
        } else if DECLARATIONS.contains(&name) {
            let message = format!("`{name}` says what is to hold: it is no command");
            (Slug::MisplacedKeyword, message)
        } else {
            (Slug::OtherShell, format!("there is no `{name}` in ftsh"))
        };
        return refuse(slug, message, hint);
    }
    if let Some(function) = function_header(name, simple.words.get(1)) {
        return refuse(
            Slug::FunctionHead,
            "functions are defined with a word".to_owned(),
            hint!("write `function {function}`, the commands, and `end`"),
        );
    }
    if name.starts_with("((") {
        return refuse(
            Slug::Arithmetic,
            "`(( ))` doesn't calculate".to_owned(),
            hint!("an assignment does: `n=$n .add. 1`"),
        );
    }
    if name.starts_with('(') {
        return refuse(
            Slug::Subshell,
            "parentheses make no subshell".to_owned(),
            hint!(
                "a `cd` in a branch of `forall` stays there, and `sh -c 'cd dir; command'` is a \
                 shell of its own; to run a program of that name, quote it"
            ),
        );
    }
    if name == "read" {
        reading(simple)?;
    }
    let second = simple.words.get(1).and_then(literal::bare);
    if !simple.assignments.is_empty() {
        if simple.words.len() > 1
            && let Some(hint) = operator_hint(name)
        {
            return refuse(Slug::UnknownOperator, format!("unknown operator `{name}`"), hint);
        }
        if is_operator(name) {
            let unknown = format!("unknown operator `{name}`");
            return match nearest(name, OPERATORS) {
                Some(meant) if meant != name => {
                    refuse(Slug::UnknownOperator, unknown, hint!("did you mean `{meant}`?"))
                }
                Some(_) => refuse(
                    Slug::MissingOperand,
                    format!("`{name}` has no value before it"),
                    hint!("is there a parenthesis too many or too few?"),
                ),
                None => refuse(Slug::UnknownOperator, unknown, hint!("{}", OPERATORS.join(" "))),
            };
        }
    }
    if is_name(name) && second.is_some_and(|word| word.starts_with('=')) {
        return refuse(
            Slug::AssignmentBlank,
            "an assignment has no blank before its `=`".to_owned(),
            hint!("write `{name}=value`"),
        );
    }
    Ok(())
}

/// The variable and the operator in `x+=1`, `x -= 1`, `x++` and `++x`.
fn changed<'w>(simple: &'w Simple, first: &'w str, text: &str) -> Option<(&'w str, &'w str)> {
    const CHANGES: [&str; 3] = ["+=", "-=", "*="];
    const STEPS: [&str; 2] = ["++", "--"];
    if let Some(second) = simple.words.get(1) {
        let operator = literal::bare(second).filter(|word| CHANGES.contains(word));
        if let Some(operator) = operator.filter(|_| is_name(first)) {
            return Some((first, operator));
        }
    }
    for operator in CHANGES {
        if let Some((name, _)) = first.split_once(operator)
            && is_name(name)
        {
            return Some((name, operator));
        }
    }
    // Compilers are called `g++`, and need arguments.
    let step = |operator: &&'static str| {
        let name = first.strip_suffix(*operator).or_else(|| first.strip_prefix(*operator))?;
        let is_variable = is_name(name) && text.contains(&format!("{name}="));
        is_variable.then_some((name, *operator))
    };
    STEPS.iter().filter(|_| simple.words.len() == 1).find_map(step)
}

/// True if a file that the script sources may define `name`.
fn is_sourced(name: &str, text: &str) -> bool {
    COMMON_FUNCTIONS.contains(&name) && text.contains("source")
}

/// A command of `read` without the options and separators of another shell.
pub(super) fn read_command(command: &str) -> Option<String> {
    let mut words = command.split_whitespace().peekable();
    words.next_if(|word| word.starts_with("IFS="));
    let read = words.next().filter(|word| *word == "read")?;
    let names = words.filter(|word| !word.starts_with('-'));
    Some(std::iter::once(read).chain(names).collect::<Vec<_>>().join(" "))
}

/// Refuses options of `read`, and separators for it.
fn reading(simple: &Simple) -> Result<()> {
    let words = simple.words.iter().filter_map(literal::bare);
    if let Some(option) = words.clone().find(|word| word.starts_with('-')) {
        let names: Vec<_> = words.skip(1).filter(|word| is_name(word)).collect();
        let names = if names.is_empty() { "line".to_owned() } else { names.join(" ") };
        let message = format!("`read` takes names, and no `{option}`");
        return Err(Box::new(SyntaxError::new(Slug::ReadOption, simple.span, message).hint(hint!(
            "write `read {names}`: backslashes stay as they are; `try for 5 seconds` limits the time"
        ))));
    }
    if simple.assignments.iter().any(|(name, _)| &**name == "IFS") {
        let error =
            SyntaxError::new(Slug::ReadOption, simple.span, "`read` takes no notice of `IFS`");
        return Err(Box::new(error.hint(hint!(
            "`read line` takes a whole line, and `for field in split($line, \":\")` takes it apart"
        ))));
    }
    Ok(())
}

/// The keyword that a word is, or would be at the start of a line.
fn keyword(word: &Word) -> Option<&'static str> {
    let (Part::Bare(text), rest) = word.parts.split_first()? else { return None };
    KEYWORDS.into_iter().find(|keyword| {
        text.strip_prefix(keyword).is_some_and(|after| match after.chars().next() {
            Some(c) => matches!(c, '(' | ')' | ','),
            None => matches!(rest.first(), None | Some(Part::Bare(_))),
        })
    })
}

/// The name in `name()` or `name ()`.
fn function_header<'w>(first: &'w str, second: Option<&Word>) -> Option<&'w str> {
    if let Some((name, after)) = first.split_once("()") {
        return (!name.is_empty() && matches!(after, "" | "{")).then_some(name);
    }
    let second = literal::bare(second?)?;
    second.starts_with("()").then_some(first)
}

/// Whether a word has the shape of an operator.
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
        let error = SyntaxError::new(Slug::BraceList, word.span, "braces make no list");
        return Err(Box::new(error.hint(if alone {
            hint!("count with a range: `{head} {range}`")
        } else {
            hint!("count with a range, `{head} {range}`, and put the names together inside")
        })));
    }
    Ok(())
}

/// Whether a word begins like `a[0]=`.
fn is_element(text: &str) -> bool {
    text.split_once('[').is_some_and(|(name, rest)| {
        is_name(name) && rest.split_once("]=").is_some_and(|(index, _)| !index.contains(['/', '=']))
    })
}
