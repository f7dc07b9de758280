//! Colors for the line being typed.

use std::ops::Range;

use super::known::SessionSnapshot;
use super::lexemes::TokenPart;
use super::tokens::{Role, ScriptToken, scan};
use ftsh_syntax::vocabulary::function;

/// Style of a piece of text, as SGR parameters of an escape sequence.
type Style = &'static str;

const KEYWORD: Style = "1";
/// Style of the head of a structure without an `end`.
const OPEN: Style = "1;4";
const CLAUSE: Style = "35";
const COMMAND: Style = "32";
const WRONG: Style = "31";
const STRING: Style = "33";
/// Style of an unterminated string.
const OPEN_STRING: Style = "4;33";
const VARIABLE: Style = "36";
const SYMBOL: Style = "35";
const COMMENT: Style = "2";

/// Maximum length of text with colors, in bytes.
const MAX_LENGTH: usize = 64 * 1024;

/// Returns `line` with colors. `before` are the previous lines of the same input.
pub fn highlight(before: &str, line: &str, known: &SessionSnapshot) -> String {
    if before.len() + line.len() > MAX_LENGTH {
        return plain(line);
    }
    let text = format!("{before}{line}");
    let scanned = scan(&text);
    let mut shown = StyledLine { text: &text, at: before.len(), out: String::new() };
    for (index, token) in scanned.all.iter().enumerate() {
        if token.range.end <= before.len() {
            continue;
        }
        let style = if scanned.stray.contains(&index) {
            WRONG
        } else if scanned.open.contains(&index) {
            OPEN
        } else {
            style(token, &text, known)
        };
        shown.token(token, style);
    }
    shown.plain_up_to(text.len());
    shown.out
}

/// Returns text without characters that control a terminal.
pub fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn style(token: &ScriptToken, text: &str, known: &SessionSnapshot) -> Style {
    match token.role {
        Role::Keyword => KEYWORD,
        Role::Clause | Role::Operator => CLAUSE,
        Role::Word if is_call(&text[token.range.clone()], token, text, known) => COMMAND,
        Role::Assignment(name)
            if is_call(
                &text[token.range.start + name + 1..token.range.end],
                token,
                text,
                known,
            ) =>
        {
            COMMAND
        }
        Role::Assignment(_) | Role::Word | Role::Separator => "",
        Role::Symbol => SYMBOL,
        Role::Comment => COMMENT,
        Role::Document => STRING,
        Role::Command => {
            let word = &text[token.range.clone()];
            // The value of a variable and the matches of a pattern are known only at run time.
            let certain = token.parts.is_empty() && !word.contains(['\\', '*', '?', '[', '~']);
            if certain && !known.is_command(word) { WRONG } else { COMMAND }
        }
    }
}

/// Returns true if a word of an expression is the name of a called function.
fn is_call(word: &str, token: &ScriptToken, text: &str, known: &SessionSnapshot) -> bool {
    text[token.range.end..].starts_with('(')
        && (function(word).is_some() || known.functions.iter().any(|name| name == word))
}

struct StyledLine<'t> {
    text: &'t str,
    at: usize,
    out: String,
}

impl StyledLine<'_> {
    fn styled(&mut self, range: Range<usize>, style: Style) {
        let start = range.start.max(self.at);
        if start >= range.end {
            return;
        }
        let text = plain(&self.text[start..range.end]);
        self.at = range.end;
        if style.is_empty() {
            self.out.push_str(&text);
        } else {
            self.out.push_str(&format!("\x1b[{style}m{text}\x1b[0m"));
        }
    }

    fn plain_up_to(&mut self, end: usize) {
        self.styled(self.at..end, "");
    }

    fn token(&mut self, token: &ScriptToken, style: Style) {
        self.plain_up_to(token.range.start);
        if let Role::Assignment(length) = token.role {
            self.styled(token.range.start..token.range.start + length, VARIABLE);
        }
        // The style of a string continues after a variable in the string.
        let mut string: Option<(usize, Style)> = None;
        for (range, part) in &token.parts {
            if let Some((end, style)) = string {
                self.styled(self.at..range.start.min(end), style);
            }
            match part {
                TokenPart::Quoted(closed) => {
                    self.styled(self.at..range.start, style);
                    string = Some((range.end, if *closed { STRING } else { OPEN_STRING }));
                }
                TokenPart::Variable => {
                    if string.is_none_or(|(end, _)| range.start >= end) {
                        self.styled(self.at..range.start, style);
                    }
                    self.styled(range.clone(), VARIABLE);
                }
            }
        }
        if let Some((end, style)) = string {
            self.styled(self.at..end, style);
        }
        self.styled(self.at..token.range.end, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, line: &str) -> String {
        highlight(before, line, &SessionSnapshot::default())
            .replace("\x1b[", "<")
            .replace("<0m", "|")
    }

    #[test]
    fn open_and_unknown_words_are_marked() {
        assert_eq!(shown("", "try; echo"), "<1;4mtry|; <32mecho|");
        assert_eq!(shown("", "try; end"), "<1mtry|; <1mend|");
        assert_eq!(shown("try\n", "end"), "<1mend|");
        assert_eq!(shown("", "end"), "<31mend|");
        assert_eq!(shown("echo | for x in a\n", "end | try"), "<1mend| <35m|| <1;4mtry|");
        assert_eq!(shown("", "no/such -x"), "<31mno/such| -x");
        assert_eq!(shown("", "echo 'a"), "<32mecho| <4;33m'a|");
        assert_eq!(shown("echo 'a\n", "b' c"), "<33mb'| c");
    }

    #[test]
    fn calls_are_marked() {
        assert_eq!(shown("", "x=trim($y)"), "<36mx|<32m=trim|<35m(|<36m$y|<35m)|");
        assert_eq!(shown("", "if trim(a)"), "<1;4mif| <32mtrim|<35m(|a<35m)|");
    }

    #[test]
    fn words_show_their_parts() {
        assert_eq!(
            shown("", r#"v=1; echo a"b $v c"d$v # e"#),
            "<36mv|=1; <32mecho| a<33m\"b |<36m$v|<33m c\"|d<36m$v| <2m# e|"
        );
    }

    #[test]
    fn text_is_kept_without_control_characters() {
        for line in ["a \"b $c 'd", "echo ' $x\" <<E", "${a:-\"b\"} 'é'\"$", "x='a'\"b\"$c'd'"] {
            let shown = highlight("", line, &SessionSnapshot::default());
            let mut pieces = shown.split("\x1b[");
            let first = pieces.next().unwrap_or_default().to_owned();
            let rest = pieces.map(|piece| piece.split_once('m').expect("a style").1);
            assert_eq!(rest.fold(first, |text, piece| text + piece), line);
        }
        assert!(
            !highlight("", "echo \x07\x1b[2J", &SessionSnapshot::default()).contains("\x1b[2J")
        );
    }
}
