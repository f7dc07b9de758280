//! Words of the command and of lists, as words of a script that reach the command byte for byte.

use std::fmt::Write as _;

use ftsh_syntax::clauses;
use ftsh_syntax::vocabulary::{ALONE, DECLARATIONS, FORMS, KEYWORDS, MODIFIERS};

/// Marks in words and the variables that take their places, innermost loop first.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<(String, String)>);

impl Marks {
    /// Adds the mark of a loop inside all loops so far.
    pub(super) fn enter(&mut self, variable: &str, is_named: bool) {
        self.0.retain(|(mark, _)| mark != "{}");
        self.0.insert(0, ("{}".to_owned(), variable.to_owned()));
        if is_named {
            self.add(variable);
        }
    }

    /// Adds the mark of a variable.
    pub(super) fn add(&mut self, name: &str) {
        self.0.push((format!("{{{name}}}"), name.to_owned()));
    }

    /// Returns the variable of the innermost loop.
    pub(super) fn innermost(&self) -> Option<&str> {
        self.0.first().map(|(_, name)| name.as_str())
    }

    /// Returns true if a word has a mark to replace.
    pub(super) fn are_in(&self, word: &[u8]) -> bool {
        self.pieces(word).iter().any(|piece| matches!(piece, WordPiece::Variable(_)))
    }

    /// Divides a word into text and variables.
    fn pieces<'m>(&'m self, word: &[u8]) -> Vec<WordPiece<'m>> {
        let mut pieces = Vec::new();
        let mut text = Vec::new();
        let mut rest = word;
        while let [first, after @ ..] = rest {
            let is_at = |mark: &str| rest.starts_with(mark.as_bytes());
            if let Some((mark, _)) = self.0.iter().find(|(mark, _)| is_at(&format!("{{{mark}}}"))) {
                text.extend_from_slice(mark.as_bytes());
                rest = &rest[mark.len() + 2..];
            } else if let Some((mark, name)) = self.0.iter().find(|(mark, _)| is_at(mark)) {
                pieces.extend([
                    WordPiece::Text(std::mem::take(&mut text)),
                    WordPiece::Variable(name),
                ]);
                rest = &rest[mark.len()..];
            } else {
                text.push(*first);
                rest = after;
            }
        }
        pieces.push(WordPiece::Text(text));
        pieces
    }
}

/// A piece of a word.
enum WordPiece<'m> {
    Text(Vec<u8>),
    Variable(&'m str),
}

/// Place of a word, where some words need quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPlace {
    /// Name of the command.
    Name,
    /// Argument of the command.
    Argument,
    /// List of a loop, before a clause.
    List,
    /// List of a loop, before a word that does not complete a clause.
    Item,
    /// Place where all words have quotes.
    Quoted,
}

/// Returns a word with variables in place of marks.
pub(super) fn word(bytes: &[u8], marks: &Marks, place: WordPlace) -> String {
    let pieces = marks.pieces(bytes);
    if let [WordPiece::Text(text)] = &pieces[..]
        && let Ok(text) = std::str::from_utf8(text)
    {
        return if is_plain(text, place) { text.to_owned() } else { quoted(text) };
    }
    let mut double = String::from("\"");
    for piece in &pieces {
        // Writing to a string can't fail.
        let _ = match piece {
            WordPiece::Variable(name) => write!(double, "${{{name}}}"),
            WordPiece::Text(text) => text.utf8_chunks().try_for_each(|chunk| {
                for c in chunk.valid().chars() {
                    if "\"\\$`".contains(c) {
                        double.push('\\');
                    } else if c == '\n' && double.ends_with('\r') {
                        // A script has no carriage return before a line end.
                        double.push_str("\"\"");
                    }
                    double.push(c);
                }
                let octal = chunk.invalid().iter().map(|byte| format!("\\{byte:03o}"));
                let octal: String = octal.collect();
                // No script has bytes that are not UTF-8.
                if octal.is_empty() { Ok(()) } else { write!(double, "$(printf '{octal}')") }
            }),
        };
    }
    double + "\""
}

/// Returns text in single quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut single = String::from("'");
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let ends = matches!(rest.peek(), None | Some('\'' | '"' | '\\'));
        if c == '\'' || c == '\\' && ends {
            single.push('\\');
        } else if c == '\n' && single.ends_with('\r') {
            single.push_str("''");
        }
        single.push(c);
    }
    single + "'"
}

/// Returns true if text without quotes means itself.
fn is_plain(text: &str, place: WordPlace) -> bool {
    let lists: [&[&str]; 5] = [&KEYWORDS, &FORMS, &ALONE, &DECLARATIONS, &MODIFIERS];
    let has_meaning = match place {
        WordPlace::Name => lists.into_iter().flatten().any(|known| text == *known),
        WordPlace::Argument => false,
        WordPlace::List | WordPlace::Item => {
            let rows = clauses::ROWS.iter().flat_map(|row| row.words);
            let is_sign = !text.contains(|c: char| c.is_ascii_alphanumeric());
            let is_of_clause = || rows.chain(&["on"]).any(|it| *it == text);
            is_sign || place == WordPlace::List && is_of_clause()
        }
        WordPlace::Quoted => return false,
    };
    let signs =
        if matches!(place, WordPlace::List | WordPlace::Item) { "-_./:@" } else { "-_./:@%+," };
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || signs.as_bytes().contains(&byte);
    let is_operator = text.starts_with('.') && text.ends_with('.');
    !text.is_empty()
        && text.bytes().all(is_harmless)
        && !is_operator
        && !text.contains("..")
        && !has_meaning
}
