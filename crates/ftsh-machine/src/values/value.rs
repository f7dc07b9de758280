//! Values of variables and expressions.

use std::borrow::Cow;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::{list::List, size, splitter::Splitter, suspend::Suspend, value_error::ValueError};
use crate::effect::BufferId;
use crate::resources::ResourceHandle;

/// Value of a variable or an expression. All values are text to a script. Integers and booleans are
/// stored parsed, to avoid parsing twice.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Bytes.
    Text(Arc<BString>),
    /// An integer.
    Integer(i64),
    /// Result of a calculation with decimals; only on a task's stack.
    Decimal(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// The integers of a range. As text, separated by blanks.
    Range(Range),
    /// The output of a command, stored by the driver.
    Buffer(ResourceHandle<BufferId>),
    /// Elements of a list. As text, separated by newlines.
    List(Arc<List>),
    /// Words of a loop's list; only on a task's stack.
    Words(Vec<BString>),
    /// A text whose pieces are a loop's list; only on a task's stack.
    Split(Splitter),
}

/// Maximum number of integers in the text of a range.
const MAX_RANGE_TEXT: u64 = 1_000_000;
/// Maximum length of an integer with a blank, in bytes.
const MAX_INTEGER_LEN: u64 = 21;

impl Value {
    /// Returns the value as bytes. Returns `None` for a buffer, whose content must be fetched
    /// first, for a range that is too long, and for several words or none.
    pub(crate) fn text(&self) -> Option<Cow<'_, BStr>> {
        if self.not_text().is_some() {
            return None;
        }
        Some(match self {
            Self::Text(text) => Cow::Borrowed(text.as_bstr()),
            Self::Split(pieces) => Cow::Borrowed(pieces.only().ok()?.as_bstr()),
            Self::Integer(integer) => Cow::Owned(integer.to_string().into()),
            Self::Decimal(decimal) => Cow::Owned(shortest(*decimal).into()),
            Self::Boolean(true) => Cow::Borrowed("true".into()),
            Self::Boolean(false) => Cow::Borrowed("false".into()),
            Self::Range(range) => Cow::Owned(range.text()),
            Self::List(list) => Cow::Owned(list.text()),
            Self::Words(words) => Cow::Borrowed(words.first()?.as_bstr()),
            Self::Buffer(_) => return None,
        })
    }

    /// Returns the error of a value without a text: a range that would take too much memory and
    /// time, or words that are not a single one.
    pub(crate) fn not_text(&self) -> Option<ValueError> {
        match self {
            Self::Split(pieces) => pieces.only().err(),
            Self::Words(words) => match words.len() {
                0 => Some(ValueError::NoWord),
                1 => None,
                _ => Some(ValueError::SeveralWords),
            },
            Self::List(list) if !size::can_allocate(list.text_len()) => {
                Some(ValueError::NoRoom(list.text_len()))
            }
            Self::Range(range) if range.count() > MAX_RANGE_TEXT => {
                Some(ValueError::LongRange(range.count()))
            }
            Self::Range(range)
                if !size::can_allocate((range.count() * MAX_INTEGER_LEN) as usize) =>
            {
                Some(ValueError::NoMemory(range.count()))
            }
            _ => None,
        }
    }

    /// Returns the value for the log, with a long range or list abbreviated. Returns `None` for a buffer.
    pub(crate) fn brief(&self) -> Option<String> {
        match self {
            Self::Range(range) if range.count() > 100 => {
                let last = range.get(range.count() - 1);
                Some(format!("{} .to. {last} .step. {}", range.first, range.step))
            }
            Self::List(list) if list.len() > 100 => {
                let element = |position| list.at(position).unwrap_or_default();
                Some(format!("{}\n…\n{}", element(1), element(-1)))
            }
            value => value.text().map(|text| text.to_string()),
        }
    }

    /// Calls `visit` for each word of a value with several words. Returns false for other values.
    pub(crate) fn each_word(
        &self,
        mut visit: impl FnMut(&[u8]) -> Result<(), Suspend>,
    ) -> Result<bool, Suspend> {
        match self {
            Self::Words(words) => words.iter().try_for_each(|word| visit(word))?,
            Self::List(list) => list.iter().try_for_each(|word| visit(word))?,
            Self::Range(range) => {
                for index in 0..range.count() {
                    visit(range.get(index).to_string().as_bytes())?;
                }
            }
            Self::Split(pieces) => {
                let mut position = 0;
                while let Some(word) = pieces.next(&mut position) {
                    visit(word)?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the value as it leaves a calculation: a decimal becomes its text.
    pub(crate) fn settled(self) -> Self {
        match self {
            Self::Decimal(decimal) => Self::from(&*shortest(decimal)),
            value => value,
        }
    }

    /// Returns the text of a value that is to be a number.
    pub(crate) fn number_text(&self) -> Result<Cow<'_, BStr>, ValueError> {
        match (self.not_text(), self) {
            (Some(error), _) => Err(error),
            (None, Self::List(list)) if list.len() != 1 => {
                Err(ValueError::NumberOfList(list.len()))
            }
            (None, _) => Ok(self.text().unwrap_or_default()),
        }
    }

    /// Returns the value as an integer. Surrounding white space is allowed.
    pub(crate) fn integer(&self) -> Result<i64, ValueError> {
        if let Self::Integer(integer) = self {
            return Ok(*integer);
        }
        let text = self.number_text()?;
        let digits = text.as_bytes().trim_ascii();
        let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        number.ok_or_else(|| {
            let bare = digits.strip_prefix(b"-").unwrap_or(digits);
            if !bare.is_empty() && bare.iter().all(u8::is_ascii_digit) {
                ValueError::TooManyDigits(text.clone().into_owned())
            } else {
                ValueError::NotAnInteger(text.clone().into_owned())
            }
        })
    }

    /// Returns the value as a boolean.
    pub(crate) fn boolean(&self) -> Result<bool, ValueError> {
        if let Self::Boolean(boolean) = self {
            return Ok(*boolean);
        }
        if let Some(error) = self.not_text() {
            return Err(error);
        }
        match self.text().unwrap_or_default().as_bytes() {
            b"true" => Ok(true),
            b"false" => Ok(false),
            other => Err(ValueError::NotABoolean(other.into())),
        }
    }
}

/// Returns the shortest text of a decimal. A whole number has no point if it is an integer.
fn shortest(decimal: f64) -> String {
    let is_integer = decimal.fract() == 0.0 && decimal.abs() < i64::MAX as f64;
    if is_integer { (decimal as i64).to_string() } else { format!("{decimal:?}") }
}

impl From<BString> for Value {
    fn from(text: BString) -> Self {
        Self::Text(Arc::new(text))
    }
}

impl From<&str> for Value {
    /// Converts text. An integer in canonical form becomes an integer.
    fn from(text: &str) -> Self {
        match Value::canonical_integer(text.as_bytes()) {
            Some(integer) => Self::Integer(integer),
            None => Self::from(BString::from(text)),
        }
    }
}

/// Arithmetic progression of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    first: i64,
    step: i64,
    count: u64,
}

impl Range {
    /// Creates the integers from `first` to `last`, inclusive, with the difference `step`. The
    /// range is empty if `step` leads away from `last`.
    ///
    /// # Errors
    ///
    /// Fails if `step` is zero.
    pub(crate) fn new(first: i64, last: i64, step: i64) -> Result<Self, ValueError> {
        let count = match step {
            0 => return Err(ValueError::NoStep),
            1.. if first > last => 0,
            ..0 if first < last => 0,
            step => (first.abs_diff(last) / step.unsigned_abs()).saturating_add(1),
        };
        Ok(Self { first, step, count })
    }

    /// Returns the number of integers.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the integer at `index`, which must be below `count`.
    pub(crate) fn get(&self, index: u64) -> i64 {
        self.first.wrapping_add(self.step.wrapping_mul(index as i64))
    }

    /// Returns the first integer, the last one, and the step, which reproduce the range.
    pub(crate) fn ends(&self) -> (i64, i64, i64) {
        let last = match self.count.checked_sub(1) {
            Some(last) => self.get(last),
            None => self.first - self.step.signum(),
        };
        (self.first, last, self.step)
    }

    fn text(&self) -> BString {
        let mut text = BString::from(Vec::with_capacity((self.count() * MAX_INTEGER_LEN) as usize));
        for index in 0..self.count() {
            if index > 0 {
                text.push(b' ');
            }
            text.extend_from_slice(self.get(index).to_string().as_bytes());
        }
        text
    }
}

impl Value {
    /// Returns the integer whose canonical form is the text.
    pub(crate) fn canonical_integer(text: &[u8]) -> Option<i64> {
        match text.strip_prefix(b"-").unwrap_or(text) {
            b"0" if text.len() == 1 => Some(0),
            [b'1'..=b'9', ..] => str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn only_canonical_integers_become_integers(
            text in "[-+ ]?0?[0-9]{1,20}|-?[1-9][0-9]{0,17}|-?[0-9]?[a-z]?",
        ) {
            let integer = Value::canonical_integer(text.as_bytes());
            let read = text.parse::<i64>().ok().filter(|integer| integer.to_string() == text);
            prop_assert_eq!(integer, read);
        }
    }
}
