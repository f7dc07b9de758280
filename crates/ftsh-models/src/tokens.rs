//! Tokens of a command model.

/// A word or a quoted text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModelToken {
    /// Text without quotes.
    pub text: String,
    /// True if the token was quoted.
    pub quoted: bool,
}

/// Splits a text into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<ModelToken>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some((token, after)) = next(rest)? {
        tokens.push(token);
        rest = after;
    }
    Ok(tokens)
}

/// Returns a line without its comment, which begins with `#` at the start of a word.
pub fn without_comment(line: &str) -> &str {
    let mut rest = line;
    loop {
        if rest.trim_start().starts_with('#') {
            return &line[..line.len() - rest.len()];
        }
        // The parser reports errors in the line later.
        let Ok(Some((_, after))) = next(rest) else { return line };
        rest = after;
    }
}

/// Returns the first token and the rest of the text.
fn next(text: &str) -> Result<Option<(ModelToken, &str)>, String> {
    let text = text.trim_start();
    let Some(first) = text.chars().next() else { return Ok(None) };
    if first == '"' || first == '\'' {
        let Some((inside, after)) = text[1..].split_once(first) else {
            return Err(format!("missing {first} at the end"));
        };
        return Ok(Some((ModelToken { text: inside.into(), quoted: true }, after)));
    }
    let (word, after) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    // Commas between clauses are optional.
    let word = word.strip_suffix(',').unwrap_or(word);
    Ok(Some((ModelToken { text: word.into(), quoted: false }, after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_begin_where_words_do() {
        for (line, rest) in [
            ("", ""),
            ("# a", ""),
            ("  # a", ""),
            ("a fails # 'b", "a fails"),
            ("a '# b' # c", "a '# b'"),
            ("a \"#\"# b", "a \"#\""),
            ("a b#c fails", "a b#c fails"),
            ("a 'b # c", "a 'b # c"),
        ] {
            assert_eq!(without_comment(line), rest, "{line}");
        }
    }
}
