//! Whether a script does the same if something in it has another name.

use super::names::{Kind, Names, Occurrence};
use crate::complete::SPECIAL;
use ftsh_machine::builtins;
use ftsh_syntax::ast::{Command, CommandKind};
use ftsh_syntax::vocabulary::{ALONE, DECLARATIONS, KEYWORDS, is_name};
use ftsh_syntax::{Script, Span};

pub(super) mod flow;

/// Why a name can't be another one: a sentence for people.
pub type Refusal = String;

/// Whether something may get another name, where `is_outside` knows the variables of the environment.
///
/// # Errors
///
/// It may not, and this is why.
pub fn check(
    script: &Script,
    names: &Names,
    found: &Occurrence,
    is_outside: &dyn Fn(&str) -> bool,
) -> Result<(), Refusal> {
    let name = &found.name;
    match found.kind {
        Kind::Channel => {
            return Err(format!("all your scripts share the channel `{name}`, by its name"));
        }
        Kind::Function if names.definitions(Kind::Function, name).next().is_none() => {
            return Err(format!("`{name}` is no function of this script"));
        }
        _ => {}
    }
    if names.sources {
        return Err("`source` runs other scripts with the same names".into());
    }
    if only_defines(script) {
        return Err("the script only defines functions: others will `source` it".into());
    }
    match found.kind {
        Kind::Function if names.computed_commands => {
            Err("a command's name is computed: it may be that of the function".into())
        }
        Kind::Variable => check_variable(script, names, name, is_outside),
        Kind::Function | Kind::Channel => Ok(()),
    }
}

fn check_variable(
    script: &Script,
    names: &Names,
    name: &str,
    is_outside: &dyn Fn(&str) -> bool,
) -> Result<(), Refusal> {
    if is_given(name) {
        return Err(format!("the shell itself sets `{name}`"));
    }
    if names.computed_variables {
        return Err("a variable's name is computed: it may be this one".into());
    }
    if names.exported.contains(name) {
        return Err(format!("commands find `{name}` in their environment"));
    }
    let text = script.source.text();
    let first = text.lines().next().unwrap_or_default();
    if first.starts_with("#!") && words(first).any(|word| word == name) {
        return Err(format!("the first line tells the shell of `{name}`"));
    }
    if is_outside(name) {
        return Err(format!("`{name}` is also in the environment"));
    }
    match flow::read_before_set(script, name) {
        Some(Span { start, .. }) => Err(format!(
            "`{name}` may come from the environment: line {} reads it where the script may not have set it",
            script.source.line(start)
        )),
        None => Ok(()),
    }
}

/// Whether something can be called `new` from there on.
///
/// # Errors
///
/// It can't, and this is why.
pub fn check_new(
    names: &Names,
    kind: Kind,
    new: &str,
    is_outside: &dyn Fn(&str) -> bool,
) -> Result<(), Refusal> {
    let taken = |what: &str| Err(format!("`{new}` is {what} already"));
    if kind == Kind::Variable {
        if !is_name(new) {
            return Err(format!(
                "`{new}` can't be a variable's name: it has letters, digits and `_`, and doesn't begin with a digit"
            ));
        }
        if is_given(new) {
            return Err(format!("the shell itself sets `{new}`"));
        }
        if names.exported.contains(new) || is_outside(new) {
            return taken("in the environment");
        }
        if names.same(kind, new).next().is_some() {
            return taken("a variable of the script");
        }
        return Ok(());
    }
    if KEYWORDS.contains(&new) || ALONE.contains(&new) || DECLARATIONS.contains(&new) {
        return taken("a word of the language");
    }
    if builtins::named(new).is_some() {
        return taken("a builtin");
    }
    if names.same(kind, new).next().is_some() {
        return taken("a command of the script");
    }
    // Whether it can be a name at all, the parser says.
    Ok(())
}

/// Whether the shell sets a variable of this name, or reads it.
fn is_given(name: &str) -> bool {
    SPECIAL.contains(&name)
        || matches!(
            name,
            "scratch" | "error_output" | "PATH" | "HOME" | "PWD" | "OLDPWD" | "TMPDIR"
        )
        || name.starts_with("FTSH_")
}

/// Whether a script is there to be sourced by others, as the static look sees it.
fn only_defines(script: &Script) -> bool {
    let is_quiet = |command: &Command| {
        matches!(
            command.kind,
            CommandKind::Comment { .. } | CommandKind::Channel(_) | CommandKind::Function { .. }
        )
    };
    script.body.commands.iter().all(is_quiet)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}
