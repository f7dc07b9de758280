//! JSON by RFC 8259. jaq reads and writes more: `NaN`, comments, keys that are no strings.

use std::borrow::Cow;

use bstr::ByteSlice;
use jaq_json::{Val, write};
use serde::de::IgnoredAny;

use crate::nesting;

/// Returns a text whose values jaq reads.
///
/// Escapes of lone surrogates become U+FFFD as in jq, since no text in UTF-8 contains a surrogate.
///
/// # Errors
///
/// The text is not a sequence of JSON values: one line for people.
pub(crate) fn checked(text: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if nesting::depth(text) > nesting::MAX_DEPTH {
        return Err(nesting::TooDeep.to_string());
    }
    check(text)?;
    let lone = lone_surrogates(text);
    if lone.is_empty() {
        return Ok(Cow::Borrowed(text));
    }
    let mut text = text.to_owned();
    for at in lone {
        text[at..at + ESCAPE_LEN].copy_from_slice(b"\\ufffd");
    }
    Ok(Cow::Owned(text))
}

/// Returns a value as JSON.
///
/// # Errors
///
/// JSON cannot express the value: one line for people.
pub(crate) fn text(value: &Val) -> Result<Vec<u8>, String> {
    let mut json = Vec::new();
    write::write(&mut json, &write::Pp::default(), 0, value).map_err(|error| error.to_string())?;
    match check(&json) {
        Ok(()) => Ok(json),
        Err(why) => Err(format!("a result is not JSON, {why}: {}", json.as_bstr())),
    }
}

/// Checks the syntax of a sequence of values.
fn check(text: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(text)
        .map_err(|error| format!("byte {} is not UTF-8", error.valid_up_to() + 1))?;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.try_for_each(|value| value.map(drop)).map_err(|error| error.to_string())
}

/// Length of an escape such as `\ufffd`.
const ESCAPE_LEN: usize = 6;

/// Returns the places of escapes of surrogates without their other half.
fn lone_surrogates(text: &[u8]) -> Vec<usize> {
    let code = |at: usize| {
        let digits = text.get(at..at + ESCAPE_LEN)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(digits.to_str().ok()?, 16).ok()
    };
    let (mut lone, mut at) = (Vec::new(), 0);
    while let Some(offset) = text[at..].find_byte(b'\\') {
        at += offset;
        at += match (code(at), code(at + ESCAPE_LEN)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 2 * ESCAPE_LEN,
            (Some(0xD800..=0xDFFF), _) => {
                lone.push(at);
                ESCAPE_LEN
            }
            // A backslash and the character after it.
            _ => 2,
        };
    }
    lone
}
