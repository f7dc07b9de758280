//! Depth of JSON, whose parser recurses.

use thiserror::Error;

/// Maximum depth of arrays and objects.
pub(crate) const MAX_DEPTH: usize = 1_000;

/// Error of a text with too many arrays or objects in each other.
#[derive(Debug, Error)]
#[error("it has more than {MAX_DEPTH} levels")]
pub(crate) struct TooDeep;

/// Returns the highest number of open brackets and braces outside of strings.
pub(crate) fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
