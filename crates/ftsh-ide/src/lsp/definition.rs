//! `textDocument/definition` and `textDocument/references`: definitions and uses of names.

use lsp_types::{Location, Position, SymbolKind};

use super::document::Document;
use super::names::{NameKind, Names};
use super::outline;
use crate::tokens::scan;
use ftsh_syntax::Span;

/// Returns the definitions of the name at a position: one for a function or a channel, and every
/// assignment of a variable.
pub(super) fn definition(document: &Document, place: Position) -> Vec<Location> {
    let offset = document.offset(place);
    let Ok(script) = document.parsed() else { return guess(document, offset) };
    let names = Names::of(script);
    let Some(found) = names.at(offset) else { return Vec::new() };
    locations(document, names.definitions(found.kind, &found.name).map(|it| it.span))
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
