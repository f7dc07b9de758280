//! `textDocument/documentSymbol`: functions, channels, tries and loops over words, nested as in the
//! text.
//!
//! The outline uses tokens, and therefore works for unfinished scripts.

use std::collections::HashMap;
use std::iter::Peekable;

use lsp_types::{DocumentSymbol, SymbolKind};

use super::document::Document;
use crate::tokens::{Role, ScriptToken, Tokens, scan};
use ftsh_syntax::Span;
use ftsh_syntax::vocabulary::is_loop;

/// Maximum depth of the outline; no person nests deeper.
const MAX_DEPTH: usize = 100;

/// Structure or declaration in the outline.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Displayed name: a name, or the head as written.
    pub name: String,
    /// Kind of the item.
    pub kind: SymbolKind,
    /// Span of the whole structure.
    pub span: Span,
    /// Span of the name or of the head.
    pub selection: Span,
}

/// Returns the outline.
pub(super) fn outline(document: &Document) -> Vec<DocumentSymbol> {
    let mut tree = Vec::new();
    let mut items = items(document.text()).into_iter().peekable();
    while let Some(item) = items.next() {
        tree.push(symbol(document, item, &mut items, 0));
    }
    tree
}

/// Returns the items of a text by their start, so that inner items follow the outer item.
pub(super) fn items(text: &str) -> Vec<Item> {
    let scanned = scan(text);
    let whole = text.trim_end().len();
    let open = scanned.open.iter().map(|head| (*head, whole));
    let closed = scanned.closed.iter().map(|(head, end)| (*head, scanned.all[*end].range.end));
    let ends: HashMap<usize, usize> = open.chain(closed).collect();
    let heads = scanned.all.iter().enumerate();
    heads
        .filter_map(|(index, token)| item(text, &scanned, token, index, ends.get(&index).copied()))
        .collect()
}

/// Returns the item that the token with this index begins, if any. `end` is the end of its
/// structure.
fn item(
    text: &str,
    scanned: &Tokens,
    token: &ScriptToken,
    index: usize,
    end: Option<usize>,
) -> Option<Item> {
    let keyword = &text[token.range.clone()];
    // A structure on one line has no `end`.
    if token.role != Role::Keyword || end.is_none() && keyword != "channel" {
        return None;
    }
    let rest = &scanned.all[index + 1..];
    let head = rest.iter().take_while(|it| {
        !matches!(it.role, Role::Separator | Role::Comment)
            && !text[it.range.clone()].starts_with('|')
    });
    let head_end = head.last().map_or(token.range.end, |last| last.range.end);
    let name = rest.first().filter(|it| it.role != Role::Separator);
    let named = |kind| name.map(|name| (kind, Span::new(name.range.start, name.range.end)));
    let whole = |kind| (kind, Span::new(token.range.start, head_end));
    let (kind, selection) = match keyword {
        "function" => named(SymbolKind::FUNCTION)?,
        "channel" => named(SymbolKind::INTERFACE)?,
        "try" | "limit" => whole(SymbolKind::EVENT),
        _ if is_loop(keyword) => whole(SymbolKind::ARRAY),
        _ => return None,
    };
    let words = text[std::ops::Range::from(selection)].split_whitespace();
    Some(Item {
        name: words.filter(|word| *word != "\\").collect::<Vec<_>>().join(" "),
        kind,
        span: Span::new(token.range.start, end.unwrap_or(head_end).max(head_end)),
        selection,
    })
}

fn symbol(
    document: &Document,
    item: Item,
    rest: &mut Peekable<impl Iterator<Item = Item>>,
    depth: usize,
) -> DocumentSymbol {
    let mut children = Vec::new();
    while let Some(inner) = rest.next_if(|next| next.span.start < item.span.end) {
        if depth < MAX_DEPTH {
            children.push(symbol(document, inner, rest, depth + 1));
        }
    }
    #[expect(deprecated, reason = "the field has to have a value")]
    DocumentSymbol {
        name: item.name,
        detail: None,
        kind: item.kind,
        tags: None,
        deprecated: None,
        range: document.range(item.span),
        selection_range: document.range(item.selection),
        children: (!children.is_empty()).then_some(children),
    }
}
