//! Position in a plain line, and the words at the position.

use smallvec::SmallVec;

use crate::ast::{
    Mode, Parameter, Quoted, Redirect, RedirectionTarget, VariableUse, Word, WordPart,
};
use crate::span::Span;

/// Position in the text.
pub(super) struct Cursor<'s> {
    pub(super) text: &'s str,
    /// Position of the next byte.
    pub(super) at: usize,
}

impl<'s> Cursor<'s> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn skip(&mut self, counts: impl Fn(u8) -> bool) -> &'s str {
        let start = self.at;
        while self.peek().is_some_and(&counts) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    pub(super) fn ends_word(&self) -> bool {
        matches!(self.peek(), None | Some(b' ' | b'\t' | b'\n'))
    }

    /// Parses a word of letters and digits, after blanks.
    pub(super) fn plain_word(&mut self) -> Option<&'s str> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let word = self.skip(|byte| byte.is_ascii_alphanumeric());
        (!word.is_empty() && self.ends_word()).then_some(word)
    }

    /// Skips blanks, and returns true at the end of the line.
    pub(super) fn ends_line(&mut self) -> bool {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        matches!(self.peek(), None | Some(b'\n'))
    }

    pub(super) fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut parts = SmallVec::new();
        loop {
            match self.peek() {
                None | Some(b' ' | b'\t' | b'\n') => break,
                Some(b'$') => parts.push(WordPart::Variable(Box::new(self.variable()?))),
                Some(b'\'') => {
                    let text = self.string(|byte| !matches!(byte, b'\'' | b'\\' | b'\r' | b'\n'));
                    parts.push(WordPart::Single(text.to_owned()));
                    self.take(b'\'')?;
                }
                Some(b'"') => parts.push(WordPart::Double(self.double()?)),
                Some(_) => {
                    let text = self.skip(is_harmless);
                    if text.is_empty() {
                        return None;
                    }
                    parts.push(WordPart::Bare(text.to_owned()));
                }
            }
        }
        Some(Word { span: Span::new(start, self.at), parts })
    }

    /// Parses the bar between two commands on a line.
    pub(super) fn pipe(&mut self) -> Option<()> {
        self.take(b'|')?;
        let goes_on = !matches!(self.peek(), Some(b'|' | b'&'));
        (goes_on && !self.ends_line()).then_some(())
    }

    pub(super) fn is_at_redirection(&self) -> bool {
        let after = &self.text.as_bytes()[self.at..];
        matches!(after, [b'<' | b'>', ..] | [b'0'..=b'9', b'<' | b'>', ..])
    }

    /// Parses `< word`, `> word`, `>> word` or `2>&1`, with any descriptor.
    pub(super) fn redirection(&mut self) -> Option<Redirect> {
        let start = self.at;
        let digits = self.skip(|byte| byte.is_ascii_digit());
        let mode = match self.skip(|byte| matches!(byte, b'<' | b'>' | b'&')) {
            "<" => Mode::Read,
            ">" => Mode::Write,
            ">>" => Mode::Append,
            ">&" if self.text[self.at..].starts_with('1') && digits == "2" => Mode::Write,
            _ => return None,
        };
        let copies = self.text[..self.at].ends_with('&');
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let word = self.word().filter(|word| !word.parts.is_empty())?;
        let target = match &word.parts[..] {
            [WordPart::Bare(text)] if copies && text == "1" => RedirectionTarget::Descriptor(1),
            _ if copies => return None,
            _ => RedirectionTarget::File(word),
        };
        let descriptor = digits.parse().unwrap_or(u8::from(mode != Mode::Read));
        let span = Span::new(start, self.at);
        Some(Redirect { span, descriptor, mode, with_errors: false, target })
    }

    pub(super) fn string(&mut self, counts: impl Fn(u8) -> bool) -> &'s str {
        self.at += 1;
        self.skip(counts)
    }

    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    pub(super) fn double(&mut self) -> Option<Vec<Quoted>> {
        let is_text = |byte| !matches!(byte, b'"' | b'$' | b'`' | b'\\' | b'\r' | b'\n');
        let mut pieces = Vec::new();
        let mut text = self.string(is_text);
        loop {
            if !text.is_empty() {
                pieces.push(Quoted::Text(text.to_owned()));
            }
            if self.peek() != Some(b'$') {
                self.take(b'"')?;
                return Some(pieces);
            }
            pieces.push(Quoted::Variable(Box::new(self.variable()?)));
            text = self.skip(is_text);
        }
    }

    /// Parses `$name` or `${name}`.
    pub(super) fn variable(&mut self) -> Option<VariableUse> {
        let start = self.at;
        self.at += 1;
        let is_braced = self.take(b'{').is_some();
        let name = self.skip(is_in_name);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        if is_braced {
            self.take(b'}')?;
        }
        let span = Span::new(start, self.at);
        Some(VariableUse {
            span,
            parameter: Parameter::Named(name.into()),
            index: None,
            substitute: None,
        })
    }
}

pub(super) fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns true for a character of command names.
pub(super) fn is_in_command(byte: u8) -> bool {
    is_in_name(byte) || matches!(byte, b'.' | b'/' | b'-' | b'+')
}

/// Returns true for a character without a meaning in any place of a word.
pub(super) fn is_harmless(byte: u8) -> bool {
    is_in_command(byte)
        || !byte.is_ascii()
        || matches!(
            byte,
            b'=' | b':' | b',' | b'%' | b'@' | b'^' | b'~' | b'*' | b'?' | b'[' | b']'
        )
}
