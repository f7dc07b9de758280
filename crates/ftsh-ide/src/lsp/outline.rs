//! `textDocument/documentSymbol`: functions, channels, tries and loops over words, as they stand in each
//! other. Of what is typed, so of unfinished scripts as well.

use std::collections::HashMap;
use std::iter::Peekable;

use lsp_types::{DocumentSymbol, SymbolKind};

use super::document::Document;
use crate::tokens::{Role, Token, Tokens, scan};
use ftsh_syntax::Span;
use ftsh_syntax::vocabulary::{DECLARATIONS, is_loop};

/// What is deeper than this isn't shown: no person wrote it.
const DEEPEST: usize = 100;

/// A structure, or a declaration.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is shown as: a name, or the head as written.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// All of it.
    pub span: Span,
    /// Its name, or its head.
    pub selection: Span,
}

/// The outline.
pub fn outline(document: &Document) -> Vec<DocumentSymbol> {
    let mut tree = Vec::new();
    let mut items = items(document.text()).into_iter().peekable();
    while let Some(item) = items.next() {
        tree.push(symbol(document, item, &mut items, 0));
    }
    tree
}

/// What there is in a text, by where it begins; so that what is inside something comes right after it.
pub fn items(text: &str) -> Vec<Item> {
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

/// What the token with this index begins, if it does; it ends there if it has an end.
fn item(
    text: &str,
    scanned: &Tokens,
    token: &Token,
    index: usize,
    end: Option<usize>,
) -> Option<Item> {
    let keyword = &text[token.range.clone()];
    if token.role != Role::Keyword {
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
        _ if DECLARATIONS.contains(&keyword) => named(SymbolKind::INTERFACE)?,
        "try" => whole(SymbolKind::EVENT),
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
        if depth < DEEPEST {
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
