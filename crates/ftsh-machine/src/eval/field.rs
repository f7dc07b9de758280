//! Fields: the words into which a word of a script is split.

use bstr::{BString, ByteSlice};

use crate::values::Suspend;
use crate::{pattern, size};

/// Field under construction.
#[derive(Default)]
pub(crate) struct Field {
    /// Text of the field.
    pub text: BString,
    /// Text with all characters escaped except those of a pattern; filled only if needed.
    pattern: BString,
    /// True if the field contains `*`, `?` or `[…]` unquoted.
    special: bool,
}

impl Field {
    /// Returns the pattern of the field, if the field is a pattern. An address with `://` is none.
    pub(crate) fn pattern(&self) -> Option<BString> {
        let is_pattern = self.special && !self.text.contains_str("://");
        is_pattern.then(|| self.pattern.clone())
    }

    /// Returns true if the field, as a text or a pattern, matches a whole value.
    pub(crate) fn matches(&self, value: &[u8]) -> bool {
        if self.special { pattern::matches(&self.pattern, value) } else { self.text == value }
    }
}

/// Fields of a word.
#[derive(Default)]
pub(crate) struct Fields {
    /// True if the word may contain a pattern.
    is_pattern: bool,
    done: Vec<Field>,
    current: Option<Field>,
}

impl Fields {
    /// Starts without fields; `is_pattern` states that the word may contain a pattern.
    pub(crate) fn new(is_pattern: bool) -> Self {
        Self { is_pattern, ..Self::default() }
    }

    /// Appends literal text.
    pub(crate) fn quoted(&mut self, text: &[u8]) -> Result<(), Suspend> {
        let field = self.current.get_or_insert_default();
        size::append(&mut field.text, text)?;
        if self.is_pattern {
            let escaped = text.iter().filter(|byte| b"*?[]\\".contains(byte)).count();
            if !size::can_allocate(field.pattern.len() + text.len() + escaped) {
                return Err(size::no_memory(text.len()));
            }
            for byte in text {
                if b"*?[]\\".contains(byte) {
                    field.pattern.push(b'\\');
                }
                field.pattern.push(*byte);
            }
        }
        Ok(())
    }

    /// Appends a value that is part of the pattern, if the word is a pattern.
    pub(crate) fn active(&mut self, text: &[u8]) -> Result<(), Suspend> {
        if !self.is_pattern {
            return self.quoted(text);
        }
        let field = self.current.get_or_insert_default();
        size::append(&mut field.text, text)?;
        size::append(&mut field.pattern, text)
    }

    /// Appends unquoted text of the script.
    pub(crate) fn bare(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let field = self.current.get_or_insert_default();
        field.text.extend_from_slice(text.as_bytes());
        if !self.is_pattern {
            return;
        }
        for (index, byte) in text.bytes().enumerate() {
            match byte {
                b'*' | b'?' => field.special = true,
                // A bracket not closed in the script's own text is an ordinary character.
                b'[' if text[index..].find(']').is_some_and(|close| close > 1) => {
                    field.special = true;
                }
                b'[' => field.pattern.push(b'\\'),
                _ => {}
            }
            field.pattern.push(byte);
        }
    }

    /// Appends text to split at white space.
    pub(crate) fn split(&mut self, text: &[u8]) -> Result<(), Suspend> {
        if text.first().is_some_and(u8::is_ascii_whitespace) {
            self.end();
        }
        for (index, word) in text.fields_with(|c| c.is_ascii_whitespace()).enumerate() {
            if index > 0 {
                self.end();
            }
            self.quoted(word)?;
        }
        if text.last().is_some_and(u8::is_ascii_whitespace) {
            self.end();
        }
        Ok(())
    }

    /// Ends the current field.
    pub(crate) fn end(&mut self) {
        self.done.extend(self.current.take());
    }

    /// Returns all fields.
    pub(crate) fn finish(self) -> impl Iterator<Item = Field> {
        self.done.into_iter().chain(self.current)
    }
}
