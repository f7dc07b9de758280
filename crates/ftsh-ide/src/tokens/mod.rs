//! Tokens of a possibly unfinished or wrong text, for colors and completion.
//!
//! Only the parser decides on the meaning of a text.

mod roles;
mod symbols;

use std::ops::Range;

use ftsh_syntax::vocabulary::{QUESTIONS, is_name};

use super::lexemes::{TokenPart, assigned, double, redirection, single, variable};

/// Word that begins the declaration of a script's arguments.
pub(crate) const ARGS: &str = "args";
/// Word between the head of a structure and its command, on one line.
pub(crate) const DASHES: &str = "--";
/// Keyword before a file with functions and channels.
pub(crate) const USE: &str = "use";

/// Token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptToken {
    /// Range of the token in the text.
    pub range: Range<usize>,
    /// Role of the token.
    pub role: Role,
    /// Strings and variables in the token.
    pub parts: Vec<(Range<usize>, TokenPart)>,
}

/// Role of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Word that begins, divides or ends a structure, or a statement of its own like `return`.
    Keyword,
    /// Word with a meaning in a head, like `every` or `in`.
    Clause,
    /// Operator, such as `.eq.`.
    Operator,
    /// Name of a command.
    Command,
    /// `name=…`, with the length of the name.
    Assignment(usize),
    /// Any other word.
    Word,
    /// Symbol: `>`, `->`, `|` or a parenthesis.
    Symbol,
    /// `;` or the end of a line.
    Separator,
    /// Comment from `#` to the end of the line.
    Comment,
    /// Lines of a here-document.
    Document,
}

/// Tokens of a text, with its structures.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Tokens in order, without blanks.
    pub all: Vec<ScriptToken>,
    /// Heads of structures without an `end`, as indices of `all`, outermost first.
    pub open: Vec<usize>,
    /// Head and `end` of each complete structure, as indices of `all`, innermost first.
    pub closed: Vec<(usize, usize)>,
    /// Words that end or divide a structure outside of any structure.
    pub stray: Vec<usize>,
}

/// Splits a text into tokens.
pub fn scan(text: &str) -> Tokens {
    let mut scanner = TokenScanner {
        text,
        at: 0,
        found: Tokens::default(),
        head: None,
        at_start: true,
        target: false,
        asks: 0,
        depth: 0,
        documents: Vec::new(),
    };
    while scanner.at < text.len() {
        scanner.step();
    }
    scanner.found
}

struct TokenScanner<'t> {
    text: &'t str,
    at: usize,
    found: Tokens,
    /// Keyword at the start of the current command.
    head: Option<&'t str>,
    /// True at the start of a command.
    at_start: bool,
    /// True if a redirection needs its target next; the target may be the delimiter of a
    /// here-document.
    target: bool,
    /// Number of open parentheses since `.succeeds.` or another question.
    asks: usize,
    /// Number of open parentheses in an expression.
    depth: usize,
    /// Delimiters of here-documents that begin on the next line, with true after `<<-`.
    documents: Vec<(String, bool)>,
}

impl<'t> TokenScanner<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn push(&mut self, length: usize, role: Role) {
        let range = self.at..self.at + length;
        self.at = range.end;
        self.found.all.push(ScriptToken { range, role, parts: Vec::new() });
    }

    fn step(&mut self) {
        let rest = self.rest();
        let first = rest.chars().next().unwrap_or('\n');
        let symbol = self.symbol();
        match first {
            _ if symbol > 0 => {
                self.push(symbol, Role::Operator);
                self.at_start = false;
            }
            ' ' | '\t' | '\r' => self.at += 1,
            '\\' if rest[1..].starts_with('\n') => self.at += 2,
            '\n' => {
                self.end_command(1);
                self.take_documents();
            }
            ';' => self.end_command(1),
            '#' => self.push(rest.find('\n').unwrap_or(rest.len()), Role::Comment),
            '|' => {
                self.push(if rest.starts_with("|&") { 2 } else { 1 }, Role::Symbol);
                (self.at_start, self.target) = (true, false);
                if self.asks == 0 {
                    self.head = None;
                }
            }
            ',' if self.in_expression() => self.push(1, Role::Symbol),
            '(' | ')' if self.in_expression() || self.asks > 0 => self.parenthesis(first),
            _ => match redirection(rest) {
                0 if matches!(first, '<' | '>' | '&') => self.push(1, Role::Symbol),
                0 => self.word(),
                length => {
                    let operator = &rest[..length];
                    self.push(length, Role::Symbol);
                    self.target = true;
                    let sign = operator.trim_start_matches(|c: char| c.is_ascii_digit());
                    if matches!(sign, "<<" | "<<-") {
                        self.document(sign == "<<-");
                    }
                }
            },
        }
    }

    fn end_command(&mut self, length: usize) {
        self.push(length, Role::Separator);
        (self.at_start, self.head, self.target) = (true, None, false);
        (self.asks, self.depth) = (0, 0);
    }

    fn parenthesis(&mut self, symbol: char) {
        let last = self.found.all.last().map_or("", |it| &self.text[it.range.clone()]);
        let value = assigned(last).map_or(last, |name| &last[name + 1..]);
        let asks = QUESTIONS.contains(&value);
        self.push(1, Role::Symbol);
        // No command follows a symbol.
        self.at_start &= self.head != Some("=");
        match symbol {
            '(' if asks => (self.asks, self.at_start) = (1, true),
            '(' if self.asks > 0 => self.asks += 1,
            ')' if self.asks > 0 => {
                self.asks -= 1;
                self.at_start &= self.asks > 0;
            }
            '(' => self.depth += 1,
            _ => self.depth = self.depth.saturating_sub(1),
        }
    }

    /// Returns true if `( ) ,` and operators are not parts of words.
    fn in_expression(&self) -> bool {
        self.asks == 0
            && matches!(
                self.head,
                Some(
                    "if" | "case"
                        | "while"
                        | "for"
                        | "forany"
                        | "forall"
                        | "return"
                        | "shift"
                        | "try"
                        | "limit"
                        | "in"
                        | "channel"
                        | "list"
                        | "="
                )
            )
    }

    /// Adds the delimiter of a here-document.
    fn document(&mut self, indented: bool) {
        let rest = self.rest().trim_start_matches([' ', '\t']);
        let end = rest.find([' ', '\t', '\n', ';', '|', '>', '<']).unwrap_or(rest.len());
        let word: String =
            rest[..end].chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        if !word.is_empty() {
            self.documents.push((word, indented));
        }
    }

    fn take_documents(&mut self) {
        for (delimiter, indented) in std::mem::take(&mut self.documents) {
            let mut end = self.at;
            for line in self.rest().split_inclusive('\n') {
                end += line.len();
                let blanks: &[char] = if indented { &[' ', '\t'] } else { &[] };
                if line.trim_end_matches(['\r', '\n']).trim_start_matches(blanks) == delimiter {
                    break;
                }
            }
            if end > self.at {
                self.push(end - self.at, Role::Document);
            }
        }
    }

    fn word(&mut self) {
        let (mut expression, asks) = (self.in_expression(), self.asks > 0);
        let start = self.at;
        let assigns = self.at_start || self.follows_declaration();
        let mut parts = Vec::new();
        let mut at = start;
        while let Some(c) = self.text[at..].chars().next() {
            match c {
                // Other spellings of an option of the script.
                '|' if self.head == Some(ARGS) && self.text[at + 1..].starts_with('-') => at += 1,
                ' ' | '\t' | '\r' | '\n' | ';' | '|' | '<' | '>' | '&' => break,
                '(' | ')' if expression || asks => break,
                ',' if expression => break,
                '\\' => at += 1 + self.text[at + 1..].chars().next().map_or(0, char::len_utf8),
                '\'' => {
                    let (end, closed) = single(self.text, at);
                    parts.push((at..end, TokenPart::Quoted(closed)));
                    at = end;
                }
                '"' => at = double(self.text, at, &mut parts),
                '$' => {
                    let end = variable(self.text, at);
                    if end > at + 1 {
                        parts.push((at..end, TokenPart::Variable));
                    }
                    at = end;
                }
                _ => at += c.len_utf8(),
            }
            // A value follows: `x=f(1)`.
            expression |= c == '=' && assigns && is_name(&self.text[start..at - 1]);
        }
        let role = self.role(&self.text[start..at]);
        self.at = at;
        self.found.all.push(ScriptToken { range: start..at, role, parts });
    }
}

/// Returns true if tokens are comments, `args` and `use` with their words only.
pub(crate) fn is_head(tokens: &[ScriptToken], text: &str) -> bool {
    tokens.iter().all(|token| match token.role {
        Role::Comment | Role::Separator | Role::Word => true,
        Role::Keyword => matches!(&text[token.range.clone()], ARGS | USE),
        _ => false,
    })
}

#[cfg(test)]
mod tests;
