//! Lint of escapes that mean something else than in other shells.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, ExprKind, Quoted, Word, WordPart};
use ftsh_syntax::hint::hint;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let text = script.source.text();
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        for word in walk::words(command) {
            warnings.extend(single_quoted(word, text));
        }
        for simple in walk::simples(command) {
            if matches!(walk::name(simple).as_deref(), Some("echo" | "export")) {
                warnings.extend(simple.words[1..].iter().filter_map(newline));
            }
        }
        if let CommandKind::Assign { value: Some(value), .. } = &command.kind
            && let ExprKind::Word(word) = &value.kind
        {
            warnings.extend(newline(word));
        }
    });
    warnings
}

/// Checks a word of `echo` or an assignment for `\n` in double quotes.
fn newline(word: &Word) -> Option<Warning> {
    let mut pieces = word.parts.iter().flat_map(|part| match part {
        WordPart::Double(pieces) => &pieces[..],
        _ => &[],
    });
    let is_escape = |piece: &Quoted| matches!(piece, Quoted::Text(text) if text.contains("\\n"));
    pieces.any(is_escape).then(|| {
        Warning::new(Slug::Escape, word.span, "`\\n` is two characters here").hint(hint!(
            "quotes may hold a line break, and `printf \"a\\nb\\n\"` translates escapes"
        ))
    })
}

/// Checks a word for a backslash in single quotes that escapes, unlike in other shells.
fn single_quoted(word: &Word, text: &str) -> Option<Warning> {
    let has_escaped = |part: &WordPart| matches!(part, WordPart::Single(text) if text.contains(['\\', '"', '\'']));
    if !word.parts.iter().any(has_escaped) {
        return None;
    }
    // The text of a here-document has no quotes.
    let is_quoted = |source: &&str| word.parts.len() > 1 || source.ends_with('\'');
    let source = text.get(word.span.start..word.span.end).filter(is_quoted)?;
    let at = escape(source)?;
    let escape = &source[at..at + 2];
    let span = Span::new(word.span.start + at, word.span.start + at + 2);
    if escape == "\\'" {
        let message =
            "in single quotes `\\'` is a quote: the text continues after it, unlike in sh";
        return Some(Warning::new(Slug::Escape, span, message).hint(hint!(
            "in double quotes a backslash at the end is written twice: `\"C:\\\\\"`"
        )));
    }
    let message = format!("in single quotes `{escape}` is one character here, and two in sh");
    Some(
        Warning::new(Slug::Escape, span, message)
            .hint(hint!("for both characters write `\\\\{escape}`")),
    )
}

/// Returns the position of `\\` or `\"` in single quotes, or of a `\'` there where sh would end the
/// word.
fn escape(source: &str) -> Option<usize> {
    let bytes = source.as_bytes();
    let (mut at, mut quote) = (0, None);
    while at < bytes.len() {
        match (quote, bytes[at], bytes.get(at + 1)) {
            (Some(b'\''), b'\\', Some(b'\\' | b'"')) => return Some(at),
            (Some(b'\''), b'\\', Some(b'\''))
                if matches!(bytes.get(at + 2), Some(b' ' | b'\t' | b'\n' | b'|' | b';' | b')')) =>
            {
                return Some(at);
            }
            (Some(b'\''), b'\\', Some(b'\'')) | (None | Some(b'"'), b'\\', _) => at += 1,
            (None, it @ (b'\'' | b'"'), _) => quote = Some(it),
            (Some(open), it, _) if open == it => quote = None,
            _ => {}
        }
        at += 1;
    }
    None
}
