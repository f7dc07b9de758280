//! `textDocument/formatting`: the script as `ftsh -p` prints it.

use lsp_types::TextEdit;

use super::document::Document;
use ftsh_syntax::{Span, print};

/// Returns the change from the first differing line to the last, so that the cursor keeps its
/// position.
///
/// Returns no change for a text with errors.
pub(super) fn format(document: &Document) -> Vec<TextEdit> {
    let Ok(script) = document.parsed() else { return Vec::new() };
    let (old, new) = (document.text(), print(script));
    if old == new {
        return Vec::new();
    }
    let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (lines(old), lines(&new));
    let same = |(a, b): &(&String, &String)| a == b;
    let head = before.iter().zip(&after).take_while(same).count();
    let tail = before[head..].iter().rev().zip(after[head..].iter().rev()).take_while(same).count();
    let length = |lines: &[String]| lines.iter().map(String::len).sum::<usize>();
    let start = length(&before[..head]);
    let end = old.len() - length(&before[before.len() - tail..]);
    let new_text = after[head..after.len() - tail].concat();
    vec![TextEdit::new(document.range(Span::new(start, end)), new_text)]
}
