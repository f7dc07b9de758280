//! Checks that a renaming keeps the meaning of a script.

use super::names::{NameKind, Names, Occurrence};
use crate::complete::SPECIAL;
use ftsh_machine::builtins;
use ftsh_syntax::ast::{Command, CommandKind};
use ftsh_syntax::vocabulary::{ALONE, DECLARATIONS, FORMS, KEYWORDS, is_name};
use ftsh_syntax::{Script, Span};

pub(super) mod flow;

/// Reason against a renaming, for people.
pub(super) type Refusal = String;

/// Checks that a variable or function may be renamed. `is_outside` returns true for variables of
/// the environment.
///
/// # Errors
///
/// Returns the reason if the renaming could change the meaning.
pub(super) fn check(
    script: &Script,
    names: &Names,
    found: &Occurrence,
    is_outside: &dyn Fn(&str) -> bool,
) -> Result<(), Refusal> {
    let name = &found.name;
    match found.kind {
        NameKind::Channel => {
            return Err(format!("all your scripts share the channel `{name}` by its name"));
        }
        NameKind::Function if names.definitions(NameKind::Function, name).next().is_none() => {
            return Err(format!("`{name}` is not a function of this script"));
        }
        _ => {}
    }
    if names.sources {
        return Err("`source` runs other scripts with the same names".into());
    }
    if only_defines(script) {
        return Err("the script only defines functions: others will `source` it".into());
    }
    let mut declared = script.arguments().into_iter().flat_map(|it| &it.arguments);
    if let Some(option) = declared.find(|it| !it.spellings.is_empty() && *it.name == **name)
        && found.kind == NameKind::Variable
    {
        return Err(format!("callers of the script use its option `{}`", option.spellings[0]));
    }
    match found.kind {
        NameKind::Function if names.computed_commands => {
            Err("a command's name is computed, and may be the name of the function".into())
        }
        NameKind::Variable => check_variable(script, names, name, is_outside),
        NameKind::Function | NameKind::Channel => Ok(()),
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
        return Err("a variable's name is computed, and may be this name".into());
    }
    if names.exported.contains(name) {
        return Err(format!("commands find `{name}` in their environment"));
    }
    let text = script.source.text();
    let first = text.lines().next().unwrap_or_default();
    if first.starts_with("#!") && words(first).any(|word| word == name) {
        return Err(format!("the first line of the script mentions `{name}`"));
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

/// Checks that a variable or function may be called `new`.
///
/// # Errors
///
/// Returns the reason if the new name could change the meaning.
pub(super) fn check_new(
    names: &Names,
    kind: NameKind,
    new: &str,
    is_outside: &dyn Fn(&str) -> bool,
) -> Result<(), Refusal> {
    let taken = |what: &str| Err(format!("`{new}` is {what} already"));
    if kind == NameKind::Variable {
        if !is_name(new) {
            return Err(format!(
                "`{new}` can't be the name of a variable: a name has letters, digits and `_`, and doesn't begin with a digit"
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
    if [&KEYWORDS[..], &FORMS, &ALONE, &DECLARATIONS].iter().any(|words| words.contains(&new)) {
        return taken("a word of the language");
    }
    if builtins::named(new).is_some() {
        return taken("a builtin");
    }
    if names.same(kind, new).next().is_some() {
        return taken("a command of the script");
    }
    // The parser checks the form of the name.
    Ok(())
}

/// Returns true if the shell sets or reads a variable of this name.
fn is_given(name: &str) -> bool {
    SPECIAL.contains(&name)
        || matches!(
            name,
            "scratch" | "status" | "error_output" | "PATH" | "HOME" | "PWD" | "OLDPWD" | "TMPDIR"
        )
        || name.starts_with("FTSH_")
}

/// Returns true if a script only defines functions and channels, for other scripts.
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
