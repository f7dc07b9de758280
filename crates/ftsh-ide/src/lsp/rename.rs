//! `textDocument/rename`: renaming of a variable or function, if the script keeps its meaning.

use std::collections::HashMap;
use std::ops;

use lsp_types::{Position, Range, TextEdit, WorkspaceEdit};

use super::document::Document;
use super::names::{NameKind, Names, Occurrence};
use super::rename_check::{self, Refusal};
use ftsh_syntax::{Script, parse};

/// Returns the range and the name at a position, for a renaming.
///
/// # Errors
///
/// Returns the reason if the name cannot be changed.
pub(super) fn prepare(
    document: &Document,
    place: Position,
    is_outside: &dyn Fn(&str) -> bool,
) -> Result<(Range, String), Refusal> {
    let (_, found) = renamable(document, place, is_outside)?;
    Ok((document.range(found.span), found.name))
}

/// Returns the changes of a renaming. `is_outside` returns true for variables of the environment.
///
/// # Errors
///
/// Returns the reason if the name cannot be changed, or not to this name.
pub(super) fn rename(
    document: &Document,
    place: Position,
    new: &str,
    is_outside: &dyn Fn(&str) -> bool,
) -> Result<WorkspaceEdit, Refusal> {
    let (names, found) = renamable(document, place, is_outside)?;
    if new == found.name {
        return Ok(WorkspaceEdit::default());
    }
    rename_check::check_new(&names, found.kind, new, is_outside)?;
    let all: Vec<&Occurrence> = names.same(found.kind, &found.name).collect();
    let result = replaced(document.text(), &all, new);
    // The parser makes the final decision.
    let script = parse("renamed", &result).ok();
    check_places(script.as_ref(), found.kind, &all, new)?;
    let edits = all.iter().map(|it| TextEdit::new(document.range(it.span), new.to_owned()));
    #[expect(clippy::mutable_key_type, reason = "the protocol's own type")]
    let changes = HashMap::from([(document.uri.clone(), edits.collect())]);
    Ok(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
}

/// Checks that the new name stands in the places of the old one, and nowhere else.
///
/// # Errors
///
/// Returns the reason against the name.
pub(super) fn check_places(
    renamed: Option<&Script>,
    kind: NameKind,
    all: &[&Occurrence],
    new: &str,
) -> Result<(), Refusal> {
    let mut moved = 0_isize;
    let expected = all.iter().map(|it| {
        let start = it.span.start.saturating_add_signed(moved);
        moved += new.len() as isize - (it.span.end - it.span.start) as isize;
        start..start + new.len()
    });
    let names = renamed.map(Names::of);
    let found = names.iter().flat_map(|names| names.same(kind, new));
    if names.is_some() && found.map(|it| ops::Range::<usize>::from(it.span)).eq(expected) {
        return Ok(());
    }
    Err(format!("`{new}` would have another meaning in one of the places"))
}

/// Checks that a name is written without escapes in all places.
///
/// # Errors
///
/// Returns the reason against the renaming.
pub(super) fn check_spelling(text: &str, all: &[&Occurrence]) -> Result<(), Refusal> {
    for it in all {
        let written = &text[ops::Range::from(it.span)];
        if written.trim_matches(['"', '\'']) != it.name {
            return Err(format!("`{}` is also written `{written}`", it.name));
        }
    }
    Ok(())
}

fn renamable(
    document: &Document,
    place: Position,
    is_outside: &dyn Fn(&str) -> bool,
) -> Result<(Names, Occurrence), Refusal> {
    let script = document.parsed().map_err(|_| {
        "the script has errors, and the places of its names are uncertain".to_owned()
    })?;
    let names = Names::of(script);
    let found = names.at(document.offset(place)).cloned();
    let found = found.ok_or("there is no variable and no function here")?;
    rename_check::check(script, &names, &found, is_outside)?;
    check_spelling(document.text(), &names.same(found.kind, &found.name).collect::<Vec<_>>())?;
    Ok((names, found))
}

/// Returns a text with another name in all places.
pub(super) fn replaced(text: &str, all: &[&Occurrence], new: &str) -> String {
    let mut changed = String::new();
    let mut at = 0;
    for it in all {
        changed += &text[at..it.span.start];
        changed += new;
        at = it.span.end;
    }
    changed + &text[at..]
}
