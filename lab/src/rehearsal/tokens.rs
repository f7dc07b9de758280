//! The words of what people say of a command.

/// A word, or a text in quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Without quotes.
    pub text: String,
    /// Whether it was in some.
    pub quoted: bool,
}

/// The words of a text.
pub fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some((token, after)) = next(rest)? {
        tokens.push(token);
        rest = after;
    }
    Ok(tokens)
}

/// A line without its comment: where a word would begin, `#` does.
pub fn without_comment(line: &str) -> &str {
    let mut rest = line;
    loop {
        if rest.trim_start().starts_with('#') {
            return &line[..line.len() - rest.len()];
        }
        // What is wrong with a line is told by who reads it.
        let Ok(Some((_, after))) = next(rest) else { return line };
        rest = after;
    }
}

/// The first word, and what comes after it.
fn next(text: &str) -> Result<Option<(Token, &str)>, String> {
    let text = text.trim_start();
    let Some(first) = text.chars().next() else { return Ok(None) };
    if first == '"' || first == '\'' {
        let Some((inside, after)) = text[1..].split_once(first) else {
            return Err(format!("a {first} is missing at the end"));
        };
        return Ok(Some((Token { text: inside.into(), quoted: true }, after)));
    }
    let (word, after) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    // People put commas between clauses.
    let word = word.strip_suffix(',').unwrap_or(word);
    Ok(Some((Token { text: word.into(), quoted: false }, after)))
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
