//! Requests on texts in which `‸` is the cursor.

mod answers;
mod flow;
mod renaming;
mod server;
mod uses;

use std::collections::HashMap;

use bstr::BString;
use lsp_types::{Position, Range};

use super::document::Document;
use ftsh_syntax::Span;
use ftsh_syntax::backoff::Policy;

fn policy() -> Policy {
    "exponential from 1 s to 1 min".parse().expect("a policy")
}

fn document(text: &str) -> Document {
    let uri = "file:///nowhere/a%20script.ftsh".parse().expect("an address");
    Document::new(uri, Some(1), text.to_owned())
}

/// Returns the text without the cursor, and the position of the cursor.
fn cursor(text: &str) -> (Document, Position) {
    let offset = text.find('‸').expect("a cursor");
    let document = document(&text.replace('‸', ""));
    let place = document.range(Span::new(offset, offset)).start;
    (document, place)
}

/// Formats a range with lines and columns from 1.
fn shown(range: Range) -> String {
    let Range { start, end } = range;
    let end_line =
        if end.line == start.line { String::new() } else { format!("{}:", end.line + 1) };
    format!("{}:{}-{end_line}{}", start.line + 1, start.character + 1, end.character + 1)
}

fn variables() -> HashMap<String, Option<BString>> {
    HashMap::from([("HOME".to_owned(), None), ("MAIL_TO".to_owned(), None)])
}

/// Returns every script of the project.
fn scripts() -> Vec<(String, String)> {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut folders = ["tests/scripts", "examples", "lab/scripts"].map(|it| root.join(it)).to_vec();
    let mut scripts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "ftsh")
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                scripts.push((path.display().to_string(), text));
            }
        }
    }
    assert!(scripts.len() > 20, "{}", scripts.len());
    scripts
}
