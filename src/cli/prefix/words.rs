//! Words of the command and of lists: values that reach the command byte for byte.

use ftsh_syntax::Span;
use ftsh_syntax::ast::{Name, Parameter, Quoted, VariableUse, Word, WordPart};
use ftsh_syntax::clauses;
use ftsh_syntax::engine::EngineId;

/// Marks in words and the variables that take their places, innermost loop first.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<(String, Name)>);

impl Marks {
    /// Adds the mark of a loop inside all loops so far.
    pub(super) fn enter(&mut self, named: Option<&str>, variable: &Name) {
        self.0.retain(|(mark, _)| mark != "{}");
        self.0.insert(0, ("{}".to_owned(), Name::clone(variable)));
        if let Some(named) = named {
            self.0.push((format!("{{{named}}}"), Name::clone(variable)));
        }
    }

    /// Adds the mark of a variable that the shell sets.
    pub(super) fn add(&mut self, name: &Name) {
        self.0.push((format!("{{{name}}}"), Name::clone(name)));
    }

    /// Returns the variable of the innermost loop.
    pub(super) fn innermost(&self) -> Option<&Name> {
        self.0.first().map(|(_, name)| name)
    }
}

/// A piece of a word.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(Name),
}

/// Way to write words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Without quotes where a command needs none.
    Plain,
    /// Without quotes where a list needs none.
    Item,
    /// Always in quotes.
    Quoted,
}

/// Maker of words, which collects the bytes that no script can hold.
#[derive(Debug, Default)]
pub(super) struct WordMaker {
    /// Names that variables already have.
    pub taken: Vec<String>,
    /// Variables, each with bytes that are not UTF-8.
    pub bytes: Vec<(Name, Vec<u8>)>,
    /// Set when a mark was replaced.
    pub has_marks: bool,
}

impl WordMaker {
    /// Returns a name that no variable has.
    pub(super) fn fresh(&mut self, wanted: &str) -> Name {
        let mut name = wanted.to_owned();
        while self.taken.contains(&name) {
            name.push('_');
        }
        self.taken.push(name.clone());
        name.into()
    }

    /// Makes a word of these bytes, with variables in place of marks.
    pub(super) fn word(&mut self, bytes: &[u8], marks: &Marks, style: Style) -> Word {
        let pieces = self.pieces(bytes, marks);
        let is_text = |piece: &Piece| matches!(piece, Piece::Text(_));
        let has_line_end =
            pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if text.contains("\r\n")));
        let parts = match &pieces[..] {
            [] => vec![WordPart::Single(String::new())],
            [Piece::Text(text)] if is_plain(text, style) => vec![WordPart::Bare(text.clone())],
            // A script has no carriage return before a line end, but each can begin or end a string.
            pieces if has_line_end || pieces.iter().all(is_text) => {
                pieces.iter().flat_map(separate).collect()
            }
            pieces => vec![WordPart::Double(pieces.iter().map(inside).collect())],
        };
        Word { span: Span::default(), parts: parts.into() }
    }

    fn pieces(&mut self, bytes: &[u8], marks: &Marks) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut text = Vec::new();
        let mut rest = bytes;
        while let [first, after @ ..] = rest {
            let is_at = |mark: &str| rest.starts_with(mark.as_bytes());
            let literal = marks.0.iter().find(|(mark, _)| is_at(&format!("{{{mark}}}")));
            let found = marks.0.iter().find(|(mark, _)| is_at(mark));
            if let Some((mark, _)) = literal {
                text.extend_from_slice(mark.as_bytes());
                rest = &rest[mark.len() + 2..];
            } else if let Some((mark, name)) = found {
                self.text(&mut text, &mut pieces);
                pieces.push(Piece::Variable(Name::clone(name)));
                self.has_marks = true;
                rest = &rest[mark.len()..];
            } else {
                text.push(*first);
                rest = after;
            }
        }
        self.text(&mut text, &mut pieces);
        pieces
    }

    /// Adds text to pieces, with a variable for each run of bytes that are not UTF-8.
    fn text(&mut self, text: &mut Vec<u8>, pieces: &mut Vec<Piece>) {
        for chunk in std::mem::take(text).utf8_chunks() {
            if !chunk.valid().is_empty() {
                pieces.push(Piece::Text(chunk.valid().to_owned()));
            }
            if !chunk.invalid().is_empty() {
                let name = self.variable_of(chunk.invalid());
                pieces.push(Piece::Variable(name));
            }
        }
    }

    fn variable_of(&mut self, bytes: &[u8]) -> Name {
        if let Some((name, _)) = self.bytes.iter().find(|(_, known)| known == bytes) {
            return Name::clone(name);
        }
        let name = self.fresh(&format!("bytes{}", self.bytes.len() + 1));
        self.bytes.push((Name::clone(&name), bytes.to_owned()));
        name
    }
}

/// Returns a use of a variable in double quotes.
pub(super) fn value_of(name: &Name) -> Word {
    Word { span: Span::default(), parts: vec![WordPart::Double(vec![variable(name)])].into() }
}

fn variable(name: &Name) -> Quoted {
    let parameter = Parameter::Named(Name::clone(name));
    Quoted::Variable(Box::new(VariableUse {
        span: Span::default(),
        parameter,
        index: None,
        substitute: None,
    }))
}

/// Returns a piece as parts of a word.
fn separate(piece: &Piece) -> Vec<WordPart> {
    match piece {
        Piece::Text(text) => {
            let mut parts = vec![String::new()];
            let mut before = None;
            for c in text.chars() {
                if (before, c) == (Some('\r'), '\n') {
                    parts.push(String::new());
                }
                parts.last_mut().expect("a part").push(c);
                before = Some(c);
            }
            parts.into_iter().map(WordPart::Single).collect()
        }
        Piece::Variable(name) => vec![WordPart::Double(vec![variable(name)])],
    }
}

/// Returns a piece as a part of a string in double quotes.
fn inside(piece: &Piece) -> Quoted {
    match piece {
        Piece::Text(text) => Quoted::Text(text.clone()),
        Piece::Variable(name) => variable(name),
    }
}

/// Returns true if text without quotes means itself.
fn is_plain(text: &str, style: Style) -> bool {
    let signs = match style {
        Style::Plain => "-_./:@%+,",
        Style::Item => "-_./:@",
        Style::Quoted => return false,
    };
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || signs.as_bytes().contains(&byte);
    let is_operator = text.starts_with('.') && text.ends_with('.');
    let is_clause = || {
        let rows = clauses::ROWS.iter().flat_map(|row| row.words);
        let mut engines = EngineId::ALL.into_iter().map(EngineId::name);
        rows.chain(&["on"]).any(|word| *word == text) || engines.any(|engine| engine == text)
    };
    text.bytes().all(is_harmless)
        && !is_operator
        && !text.contains("..")
        && (style == Style::Plain || !is_clause())
}
