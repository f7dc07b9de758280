//! Text of a drawing.

use unicode_width::UnicodeWidthChar;

/// Approximate width of a letter of a label.
const LETTER: f64 = 6.8;

/// Returns the width of a label.
pub(super) fn width(label: &str) -> f64 {
    label.chars().map(letters).sum::<usize>() as f64 * LETTER
}

/// Returns the beginning of a label that fits.
pub(super) fn shortened(label: &str, room: f64) -> String {
    if width(label) <= room {
        return label.to_owned();
    }
    let most = (room / LETTER) as usize;
    let mut taken = 1;
    let fits = |c: &char| {
        taken += letters(*c);
        taken <= most
    };
    label.chars().take_while(fits).chain(['…']).collect()
}

fn letters(c: char) -> usize {
    // Control characters are written as escapes.
    c.width().unwrap_or(4)
}

/// Escapes text for XML, which allows few control characters.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            // A direction override would reverse the text after it.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.extend(c.escape_default()),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}
