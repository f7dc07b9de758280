//! Words in the making: what one word of a script is split into.

use bstr::{BString, ByteSlice};

use crate::tasks::suspend::Suspend;
use crate::values::size;

/// A word in the making.
#[derive(Default)]
pub struct Field {
    /// Its text.
    pub text: BString,
    /// The text with everything escaped that isn't a pattern, if it has to be known.
    pattern: BString,
    /// Whether `*`, `?` or `[…]` stand unquoted in it.
    special: bool,
}

impl Field {
    /// The pattern, if it is one.
    pub fn pattern(&self) -> Option<BString> {
        self.special.then(|| self.pattern.clone())
    }
}

/// The words that one becomes.
#[derive(Default)]
pub struct Fields {
    /// Whether there may be a pattern.
    is_pattern: bool,
    done: Vec<Field>,
    current: Option<Field>,
}

impl Fields {
    /// None yet; whether there may be a pattern among them.
    pub fn new(is_pattern: bool) -> Self {
        Self { is_pattern, ..Self::default() }
    }

    /// Adds text that stands for itself.
    pub fn quoted(&mut self, text: &[u8]) -> Result<(), Suspend> {
        let field = self.current.get_or_insert_default();
        size::append(&mut field.text, text)?;
        if self.is_pattern {
            let escaped = text.iter().filter(|byte| b"*?[]\\".contains(byte)).count();
            if !size::is_to_be_had(field.pattern.len() + text.len() + escaped) {
                return Err(size::none(text.len()));
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

    /// Adds unquoted text of the script.
    pub fn bare(&mut self, text: &str) {
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
                // A bracket that isn't closed in the script's own text is an ordinary character.
                b'[' if text[index..].find(']').is_some_and(|close| close > 1) => {
                    field.special = true;
                }
                b'[' => field.pattern.push(b'\\'),
                _ => {}
            }
            field.pattern.push(byte);
        }
    }

    /// Adds text that is split at white space.
    pub fn split(&mut self, text: &[u8]) -> Result<(), Suspend> {
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

    /// Ends a word.
    pub fn end(&mut self) {
        self.done.extend(self.current.take());
    }

    /// All words.
    pub fn finish(self) -> impl Iterator<Item = Field> {
        self.done.into_iter().chain(self.current)
    }
}
