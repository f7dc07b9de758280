//! `textDocument/rename`: renaming of a variable or function, if the script keeps its meaning.

use std::collections::HashMap;

use lsp_types::{Position, Range, TextEdit, WorkspaceEdit};

use super::document::Document;
use super::names::{Names, Occurrence};
use super::rename_check::{self, Refusal};
use ftsh_syntax::parse;

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
    let read_back = parse("renamed", &result).ok().map(|script| Names::of(&script));
    let spans = |all: &[&Occurrence]| {
        let mut moved = 0_isize;
        let spans = all.iter().map(|it| {
            let start = it.span.start.saturating_add_signed(moved);
            moved += new.len() as isize - (it.span.end - it.span.start) as isize;
            start..start + new.len()
        });
        spans.collect::<Vec<_>>()
    };
    let now = read_back
        .as_ref()
        .map(|names| names.same(found.kind, new).map(|it| it.span.into()).collect::<Vec<_>>());
    if now.as_ref() != Some(&spans(&all)) {
        return Err(format!("`{new}` would have another meaning in one of the places"));
    }
    let edits = all.iter().map(|it| TextEdit::new(document.range(it.span), new.to_owned()));
    #[expect(clippy::mutable_key_type, reason = "the protocol's own type")]
    let changes = HashMap::from([(document.uri.clone(), edits.collect())]);
    Ok(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
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
    for it in names.same(found.kind, &found.name) {
        let written = &document.text()[std::ops::Range::from(it.span)];
        if written.trim_matches(['"', '\'']) != found.name {
            return Err(format!("`{}` is also written `{written}`", found.name));
        }
    }
    Ok((names, found))
}

fn replaced(text: &str, all: &[&Occurrence], new: &str) -> String {
    let mut changed = String::new();
    let mut at = 0;
    for it in all {
        changed += &text[at..it.span.start];
        changed += new;
        at = it.span.end;
    }
    changed + &text[at..]
}
