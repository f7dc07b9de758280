//! `textDocument/definition` and `textDocument/references`: definitions and uses of names.

use std::path::Path;

use lsp_types::{Location, Position, Range, SymbolKind};

use super::document::{self, Document};
use super::names::{NameKind, Names};
use super::outline;
use super::position::LineIndex;
use crate::tokens::scan;
use ftsh_syntax::uses::joined;
use ftsh_syntax::{Script, Span};

/// Returns the definitions of the name at a position: one for a function or a channel, and every
/// assignment of a variable.
pub(super) fn definition(document: &Document, place: Position) -> Vec<Location> {
    let offset = document.offset(place);
    let Ok(script) = document.parsed() else { return guess(document, offset) };
    let names = Names::of(script);
    let Some(found) = names.at(offset) else { return file(document, script, offset) };
    let own = locations(document, names.definitions(found.kind, &found.name).map(|it| it.span));
    if own.is_empty() { elsewhere(script, found.kind, &found.name) } else { own }
}

/// Returns the definitions of a function or a channel in the files that a script uses.
fn elsewhere(script: &Script, kind: NameKind, name: &str) -> Vec<Location> {
    if kind == NameKind::Variable {
        return Vec::new();
    }
    let mut found = Vec::new();
    for file in script.all_files().into_iter().skip(1) {
        for definition in Names::of(file).definitions(kind, name) {
            found.extend(location(file, definition.span));
        }
    }
    found
}

/// Returns the beginning of the file of the `use` at an offset.
fn file(document: &Document, script: &Script, offset: usize) -> Vec<Location> {
    let Some(directory) = document.directory() else { return Vec::new() };
    let is_there = |span: Span| span.start <= offset && offset <= span.end;
    let found = script.uses().find(|(span, _)| is_there(*span));
    let Some((_, named)) = found else { return Vec::new() };
    let start = Range::new(Position::new(0, 0), Position::new(0, 0));
    let uri = document::file_uri(&joined(&directory, &named.path));
    uri.map(|uri| Location::new(uri, start)).into_iter().collect()
}

/// Returns the location of a span in a used file.
fn location(file: &Script, span: Span) -> Option<Location> {
    let text = file.source.text();
    let uri = document::file_uri(Path::new(&**file.source.name()))?;
    Some(Location::new(uri, LineIndex::of(text).range(text, span)))
}

/// Returns the uses of a name, with the definitions if wanted. Programs have no references.
pub(super) fn references(document: &Document, place: Position, definitions: bool) -> Vec<Location> {
    let Ok(script) = document.parsed() else { return Vec::new() };
    let names = Names::of(script);
    let Some(found) = names.at(document.offset(place)) else { return Vec::new() };
    let is_program = found.kind == NameKind::Function
        && names.definitions(found.kind, &found.name).next().is_none();
    let uses = names.same(found.kind, &found.name).filter(|it| definitions || !it.defines);
    locations(document, uses.filter(|_| !is_program).map(|it| it.span))
}

/// Returns the function or channel named by a word of an unfinished script.
fn guess(document: &Document, offset: usize) -> Vec<Location> {
    let text = document.text();
    let tokens = scan(text).all;
    let word = tokens.iter().find(|it| it.range.start <= offset && offset <= it.range.end);
    let Some(word) = word.map(|it| &text[it.range.clone()]) else { return Vec::new() };
    let named = outline::items(text).into_iter().filter(|item| {
        item.name == word && matches!(item.kind, SymbolKind::FUNCTION | SymbolKind::INTERFACE)
    });
    locations(document, named.map(|item| item.selection))
}

fn locations(document: &Document, spans: impl Iterator<Item = Span>) -> Vec<Location> {
    spans.map(|span| Location::new(document.uri.clone(), document.range(span))).collect()
}
