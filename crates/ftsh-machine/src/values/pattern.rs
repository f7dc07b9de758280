//! Patterns of shells: `*`, `?` and `[…]`. A backslash removes the meaning of the next character.

use bstr::decode_utf8;

/// Returns true if a pattern matches a whole text. Slashes and leading dots have no special meaning.
///
/// The time is at most proportional to the product of the lengths: only the last star is retried.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut rest, mut text) = (pattern, name);
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some(after) = rest.strip_prefix(b"*") {
            star = Some((after, text));
            rest = after;
            continue;
        }
        if text.is_empty() && rest.is_empty() {
            return true;
        }
        if !text.is_empty()
            && let Some((after, size)) = one(rest, text)
        {
            (rest, text) = (after, &text[size..]);
            continue;
        }
        // The last star matches one more character.
        match star {
            Some((after, start)) if !start.is_empty() => {
                let start = &start[decode_utf8(start).1..];
                star = Some((after, start));
                (rest, text) = (after, start);
            }
            _ => return false,
        }
    }
}

/// Matches one character. Returns the rest of the pattern and the size of the character.
fn one<'a>(pattern: &'a [u8], text: &[u8]) -> Option<(&'a [u8], usize)> {
    let size = decode_utf8(text).1;
    match pattern.first()? {
        b'?' => Some((&pattern[1..], size)),
        b'[' => match bracket(&pattern[1..], &text[..size]) {
            Some((true, after)) => Some((after, size)),
            Some((false, _)) => None,
            None => (text[0] == b'[').then_some((&pattern[1..], 1)), // no closing bracket
        },
        b'\\' if pattern.len() > 1 => (pattern[1] == text[0]).then_some((&pattern[2..], 1)),
        byte => (*byte == text[0]).then_some((&pattern[1..], 1)),
    }
}

/// Matches a character against `…]`. Returns the result and the rest of the pattern; none without a
/// closing bracket.
fn bracket<'a>(pattern: &'a [u8], character: &[u8]) -> Option<(bool, &'a [u8])> {
    let negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let mut rest = &pattern[usize::from(negated)..];
    let wanted = value(character);
    let mut hit = false;
    let mut first = true;
    loop {
        if rest.first() == Some(&b']') && !first {
            return Some((hit != negated, &rest[1..]));
        }
        first = false;
        if let Some((class, after)) = class(rest) {
            hit |= in_class(class, wanted);
            rest = after;
            continue;
        }
        let (low, after) = element(rest)?;
        match after {
            [b'-', next, ..] if *next != b']' => {
                let (high, after) = element(&after[1..])?;
                hit |= (low..=high).contains(&wanted);
                rest = after;
            }
            _ => {
                hit |= low == wanted;
                rest = after;
            }
        }
    }
}

/// Returns the position of a character in the order. Bytes outside UTF-8 follow all characters.
fn value(character: &[u8]) -> u32 {
    match decode_utf8(character).0 {
        Some(character) => u32::from(character),
        None => 0x11_0000 + character.first().copied().map_or(0, u32::from),
    }
}

fn element(pattern: &[u8]) -> Option<(u32, &[u8])> {
    let pattern = match pattern {
        [b'\\', rest @ ..] if !rest.is_empty() => rest,
        _ => pattern,
    };
    if pattern.is_empty() {
        return None;
    }
    let size = decode_utf8(pattern).1;
    Some((value(&pattern[..size]), &pattern[size..]))
}

fn class(pattern: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = pattern.strip_prefix(b"[:")?;
    let end = inner.windows(2).position(|pair| pair == b":]")?;
    Some((&inner[..end], &inner[end + 2..]))
}

fn in_class(name: &[u8], value: u32) -> bool {
    let Some(character) = char::from_u32(value) else { return false };
    match name {
        b"alpha" => character.is_alphabetic(),
        b"digit" => character.is_ascii_digit(),
        b"alnum" => character.is_alphanumeric(),
        b"upper" => character.is_uppercase(),
        b"lower" => character.is_lowercase(),
        b"space" => character.is_whitespace(),
        b"blank" => matches!(character, ' ' | '\t'),
        b"punct" => character.is_ascii_punctuation(),
        b"xdigit" => character.is_ascii_hexdigit(),
        b"cntrl" => character.is_control(),
        b"print" => !character.is_control(),
        b"graph" => !character.is_control() && !character.is_whitespace(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let yes = [
            ("*", ""),
            ("*", "a"),
            ("a*c", "abbc"),
            ("a*c*", "ac"),
            ("?", "é"),
            ("[a-c]", "b"),
            ("[!a-c]", "d"),
            ("[]]", "]"),
            ("[a-]", "-"),
            ("\\*", "*"),
            ("[é]", "é"),
            ("[", "["),
            ("[[:digit:]]x", "7x"),
            ("*.tar.*", "a.b.tar.tar.gz"),
            ("[\\]]", "]"),
            ("[\\!a]", "!"),
        ];
        for (pattern, name) in yes {
            assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        let no = [
            ("", "a"),
            ("?", ""),
            ("a*c", "abbd"),
            ("[a-c]", "d"),
            ("\\*", "a"),
            ("[!a]", "a"),
            ("[[:digit:]]", "x"),
            ("??", "é"),
        ];
        for (pattern, name) in no {
            assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        assert!(matches(b"?", b"\xff"));
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "a*".repeat(1000) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(2000).as_bytes()));
    }
}
