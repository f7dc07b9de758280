//! Bashisms: habits from other shells, each with the way it is said here.

use std::collections::HashSet;

use super::braces::{self, ARRAYS};
use super::{Result, literal};
use crate::nearest::nearest;
use crate::syntax::ast::{Expr, ExprKind, Parameter, Part, Simple, Word};
use crate::syntax::error::SyntaxError;
use crate::syntax::span::Span;
use crate::syntax::vocabulary::{ALONE, DECLARATIONS, KEYWORDS, OPERATORS, is_name};

/// First words that a command never has, unless a function is called so: how that is said here.
fn first_word(name: &str) -> Option<&'static str> {
    Some(match name {
        "fi" | "done" | "esac" | "}" => "every structure ends with `end`",
        "then" | "do" => {
            "a block begins on the line after its head, or after a `;`, and ends with `end`"
        }
        "{" => {
            "a block begins on the line after its head and ends with `end`; \
             to redirect several commands, `try … end > file`"
        }
        "except" | "rescue" | "ensure" => {
            "`catch` handles the failure of a `try`; what is to be done in any case comes after `finally`"
        }
        "elif" | "elsif" | "elseif" => "write `else if`",
        "case" => "compare in turn: `if $x .eq. a … else if $x .matches. \"^b\" … else … end`",
        "declare" | "typeset" | "readonly" | "let" => {
            "variables are simply assigned: `name=value`; in a function, `local name=value` until it ends"
        }
        "local" => "one name at a time: `local name=value`, or `local name`",
        "set" => {
            "a group stops at its first failure, so `set -e` isn't needed; nor is `-u`, \
             and `ftsh -l 20` logs commands as `-x` does"
        }
        "ulimit" => {
            "a shell of its own limits a command: `sh -c 'ulimit -n 100; exec command'`; \
             so does `prlimit --nofile=100 command`"
        }
        "command" | "type" => {
            "to ask for a program: `if .succeeds. (which name -> path)`; \
             what fails because there is none has the kind `notfound`"
        }
        "pushd" | "popd" => {
            "a `cd` in a branch of `forall` stays there; else `pwd -> here` and `cd $here`"
        }
        "mapfile" | "readarray" => "`command -> v`, and then `for line in lines($v)`",
        "!" => {
            "to go on when a command fails: `try … catch … end`; to ask it a question: `if .not. .succeeds. (command)`"
        }
        "[[" => "compare with operators: `if $a .eq. $b`, `if .isfile. $f`",
        "until" => "write `while .not. …`, or `try` to repeat what fails",
        "finally" => "what comes after it, up to the `end` of the `try`, is done in any case",
        "break" | "continue" => "it is about the innermost `for` or `while`, and takes no words",
        "trap" => {
            "`try … finally … end` cleans up however the `try` is left, also by a signal, and \
             `catch` reacts to failures; what a failed attempt started is ended in any case"
        }
        "." => "write `source file`",
        "channel" => {
            "it stands on a line of its own: `channel mirror at most 4`; quote a program's name"
        }
        "unless" => "write `if .not. …`",
        "wait" | "jobs" | "fg" | "bg" => {
            "`forall` runs commands at once, and waits for all of them"
        }
        "alias" => "write a function: `function name`, the commands, and `end`",
        "eval" => "values are never parsed again; `sh -c \"$command\"` would",
        _ => return None,
    })
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
    SyntaxError::new(span, format!("there is no `{operator}( )`")).hint(match operator {
        "<" => {
            "collect the output, `command -> v`, and read it with `-< v`; for a pipe, `command | …`"
        }
        _ => "send the output on with a pipe: `… | command`",
    })
}

/// Refuses commands that can only be a mistake.
pub(super) fn command(simple: &Simple, functions: &HashSet<&str>) -> Result<()> {
    let Some(word) = simple.words.first() else { return Ok(()) };
    let refuse = |message: String, hint: &str| {
        Err(Box::new(SyntaxError::new(word.span, message).hint(hint)))
    };
    if let Some(keyword) = keyword(word) {
        return refuse(
            format!("`{keyword}` can't follow a redirection or an assignment"),
            "a structure is redirected after its `end`; to run a program of that name, quote it",
        );
    }
    match &word.parts[..] {
        [Part::Bare(text), ..] if is_element(text) => {
            return refuse("an element of an array is assigned".to_owned(), ARRAYS);
        }
        [Part::Bare(text), ..] if text.split_once("+=").is_some_and(|it| is_name(it.0)) => {
            let name = text.split_once("+=").map_or("x", |it| it.0);
            return refuse(
                "there is no `+=`".to_owned(),
                &format!(
                    "write `{name}=${name} .add. 1` for numbers, `{name}=\"${name}…\"` for text"
                ),
            );
        }
        [Part::Variable(variable), Part::Bare(text), ..] if text.starts_with('=') => {
            if let Parameter::Named(name) = &variable.parameter {
                return refuse(
                    "a variable is assigned without its `$`".to_owned(),
                    &format!("write `{name}=value`"),
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
            "`exec` redirects nothing but its command".to_owned(),
            "redirect what follows as a whole: `try`, the commands, and `end > file`; \
             or the script: `ftsh script > file`",
        );
    }
    if let Some(hint) = first_word(name) {
        let message = if ALONE.contains(&name) {
            format!("`{name}` stands alone on its line")
        } else if name == "local" {
            "`local` takes one name, and no more than its value".to_owned()
        } else if DECLARATIONS.contains(&name) {
            format!("`{name}` says what is to hold: it is no command")
        } else {
            format!("there is no `{name}` in ftsh")
        };
        return refuse(message, hint);
    }
    if let Some(function) = function_header(name, simple.words.get(1)) {
        return refuse(
            "functions are defined with a word".to_owned(),
            &format!("write `function {function}`, the commands, and `end`"),
        );
    }
    if name.starts_with("((") {
        return refuse(
            "`(( ))` doesn't calculate".to_owned(),
            "an assignment does: `n=$n .add. 1`",
        );
    }
    if name.starts_with('(') {
        return refuse(
            "parentheses make no subshell".to_owned(),
            "a `cd` in a branch of `forall` stays there, and `sh -c 'cd dir; command'` is a shell of \
             its own; to run a program of that name, quote it",
        );
    }
    let second = simple.words.get(1).and_then(literal::bare);
    if !simple.assignments.is_empty() {
        if let Some(meant) = operator(name).filter(|_| second.is_some() || simple.words.len() > 1) {
            return refuse(
                format!("unknown operator `{name}`"),
                &format!("`{name}` is written `{meant}`"),
            );
        }
        if is_operator(name) {
            return match nearest(name, OPERATORS) {
                Some(meant) if meant != name => refuse(
                    format!("unknown operator `{name}`"),
                    &format!("did you mean `{meant}`?"),
                ),
                Some(_) => refuse(
                    format!("`{name}` has no value before it"),
                    "is there a parenthesis too many or too few?",
                ),
                None => refuse(format!("unknown operator `{name}`"), &OPERATORS.join(" ")),
            };
        }
    }
    if is_name(name) && second.is_some_and(|word| word.starts_with('=')) {
        return refuse(
            "an assignment has no blank before its `=`".to_owned(),
            &format!("write `{name}=value`"),
        );
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
        let error = SyntaxError::new(word.span, "braces make no list");
        return Err(Box::new(error.hint(if alone {
            format!("count with a range: `{head} {range}`")
        } else {
            format!("count with a range, `{head} {range}`, and put the names together inside")
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
