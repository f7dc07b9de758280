//! Parser of plain lines without the grammar: most lines of most scripts, in a fraction of the
//! time.
//!
//! Every uncertain line is left to the grammar. A test compares both trees, places included, for
//! all scripts of the repository.
//!
//! Plain lines are comments, `end`, `else` and `catch` alone, pipelines of commands with
//! redirections to files, assignments of one word, and some heads of `try`. Their words consist of letters, digits,
//! characters without a meaning, `$name`, and strings on one line without escapes.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::bashisms;
use super::builder::Builder;
use super::line::{EndLine, ParsedLine};
use super::plain_try;
use crate::ast::{
    CommandKind, Expr, ExprKind, Mode, Parameter, Pipeline, Quoted, Redirect, RedirectionTarget,
    Simple, Stage, StageKind, VariableUse, Word, WordPart,
};
use crate::span::Span;
use crate::vocabulary::{ALONE, DECLARATIONS, FORMS, KEYWORDS, MODIFIERS};

/// Plain line.
pub(super) struct Plain<'s> {
    /// Text before the statement or comment.
    pub(super) spacing: &'s str,
    /// Span of the statement or comment.
    pub(super) span: Span,
    /// Statement; `None` for a comment.
    pub(super) statement: Option<ParsedLine>,
    /// Position of the next line.
    pub(super) next: usize,
}

impl<'s> Builder<'s> {
    /// Parses the line at a position, if the line is plain.
    pub(super) fn plain(&self, at: usize) -> Option<Plain<'s>> {
        let mut cursor = Cursor { text: self.text, at };
        cursor.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
        let (spacing, start) = (&self.text[at..cursor.at], cursor.at);
        let mut end = start;
        let statement = if cursor.peek()? == b'#' {
            end += cursor.skip(|byte| byte != b'\n').len();
            None
        } else {
            let line = self.statement(&mut cursor)?;
            end += self.text[start..cursor.at].trim_end_matches([' ', '\t']).len();
            Some(line)
        };
        let next = cursor.at + usize::from(cursor.at < self.text.len());
        Some(Plain { spacing, span: Span::new(start, end), statement, next })
    }

    /// Parses a statement up to the end of its line.
    fn statement(&self, cursor: &mut Cursor<'s>) -> Option<ParsedLine> {
        let start = cursor.at;
        let first = cursor.skip(is_in_command);
        if cursor.peek() == Some(b'=') {
            return assignment(first, cursor);
        }
        if first == "try" && cursor.ends_word() {
            return plain_try::head(cursor);
        }
        if cursor.ends_line() {
            match first {
                "end" => return Some(ParsedLine::End(EndLine::default())),
                "else" => return Some(ParsedLine::Else),
                "catch" => return Some(ParsedLine::Catch),
                _ => {}
            }
        }
        cursor.at = start;
        let mut stages = vec![self.stage(cursor)?];
        while !cursor.ends_line() {
            cursor.pipe()?;
            stages.push(self.stage(cursor)?);
        }
        if stages.len() > 1 {
            for stage in stages.iter().filter_map(Stage::simple) {
                self.check_stage(&self.text[Range::from(stage.span)], stage.span, false).ok()?;
            }
        }
        Some(ParsedLine::Command(CommandKind::Pipeline(Pipeline { stages })))
    }

    /// Parses a command with its arguments and redirections.
    fn stage(&self, cursor: &mut Cursor<'s>) -> Option<Stage> {
        let start = cursor.at;
        let first = cursor.skip(is_in_command);
        let means_more = |among: &[&str]| among.contains(&first);
        if first.is_empty()
            || !cursor.ends_word()
            || first == "local"
            || first == "export"
            || means_more(&MODIFIERS)
            || means_more(&KEYWORDS)
            || means_more(&FORMS)
            || means_more(&ALONE)
            || means_more(&DECLARATIONS)
        {
            return None;
        }
        let mut span = Span::new(start, cursor.at);
        let mut words = vec![Word { span, parts: smallvec![WordPart::Bare(first.to_owned())] }];
        let mut redirects = Vec::new();
        while !cursor.ends_line() && cursor.peek() != Some(b'|') {
            if cursor.is_at_redirection() {
                let redirect = cursor.redirection()?;
                span.end = redirect.span.end;
                redirects.push(redirect);
            } else {
                let word = cursor.word()?;
                span.end = word.span.end;
                words.push(word);
            }
        }
        let simple =
            Simple { span, assignments: Vec::new(), modifiers: Vec::new(), words, redirects };
        bashisms::command(&simple, &self.functions, self.text).ok()?;
        Some(Stage { kind: StageKind::Simple(simple), pipe_errors: false })
    }
}

/// Parses `name=word`, from the `=` on.
fn assignment(name: &str, cursor: &mut Cursor) -> Option<ParsedLine> {
    let is_name = name.bytes().all(is_in_name) && !name.starts_with(|c: char| c.is_ascii_digit());
    cursor.at += 1;
    // A word after a point, or beside a string, may be an operator.
    if !is_name
        || name.is_empty()
        || matches!(cursor.peek(), None | Some(b'.' | b' ' | b'\t' | b'\n'))
    {
        return None;
    }
    let word = cursor.word()?;
    let is_string = |part: &WordPart| matches!(part, WordPart::Single(_) | WordPart::Double(_));
    let has_comma = |part: &WordPart| matches!(part, WordPart::Bare(text) if text.contains(','));
    if word.parts.len() > 1 && word.parts.iter().any(is_string)
        || word.parts.iter().any(has_comma)
        || !cursor.ends_line()
    {
        return None;
    }
    let value = Some(Expr { span: word.span, kind: ExprKind::Word(word) });
    Some(ParsedLine::Command(CommandKind::Assign {
        name: name.into(),
        value,
        local: false,
        exported: false,
    }))
}

/// Position in the text.
pub(super) struct Cursor<'s> {
    text: &'s str,
    /// Position of the next byte.
    pub(super) at: usize,
}

impl<'s> Cursor<'s> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, counts: impl Fn(u8) -> bool) -> &'s str {
        let start = self.at;
        while self.peek().is_some_and(&counts) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn ends_word(&self) -> bool {
        matches!(self.peek(), None | Some(b' ' | b'\t' | b'\n'))
    }

    /// Parses a word of letters and digits, after blanks.
    pub(super) fn plain_word(&mut self) -> Option<&'s str> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let word = self.skip(|byte| byte.is_ascii_alphanumeric());
        (!word.is_empty() && self.ends_word()).then_some(word)
    }

    /// Skips blanks, and returns true at the end of the line.
    pub(super) fn ends_line(&mut self) -> bool {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        matches!(self.peek(), None | Some(b'\n'))
    }

    fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut parts = SmallVec::new();
        loop {
            match self.peek() {
                None | Some(b' ' | b'\t' | b'\n') => break,
                Some(b'$') => parts.push(WordPart::Variable(Box::new(self.variable()?))),
                Some(b'\'') => {
                    let text = self.string(|byte| !matches!(byte, b'\'' | b'\\' | b'\r' | b'\n'));
                    parts.push(WordPart::Single(text.to_owned()));
                    self.take(b'\'')?;
                }
                Some(b'"') => parts.push(WordPart::Double(self.double()?)),
                Some(_) => {
                    let text = self.skip(is_harmless);
                    if text.is_empty() {
                        return None;
                    }
                    parts.push(WordPart::Bare(text.to_owned()));
                }
            }
        }
        Some(Word { span: Span::new(start, self.at), parts })
    }

    /// Parses the bar between two commands on a line.
    fn pipe(&mut self) -> Option<()> {
        self.take(b'|')?;
        let goes_on = !matches!(self.peek(), Some(b'|' | b'&'));
        (goes_on && !self.ends_line()).then_some(())
    }

    fn is_at_redirection(&self) -> bool {
        let after = &self.text.as_bytes()[self.at..];
        matches!(after, [b'<' | b'>', ..] | [b'0'..=b'9', b'<' | b'>', ..])
    }

    /// Parses `< word`, `> word`, `>> word` or `2>&1`, with any descriptor.
    fn redirection(&mut self) -> Option<Redirect> {
        let start = self.at;
        let digits = self.skip(|byte| byte.is_ascii_digit());
        let mode = match self.skip(|byte| matches!(byte, b'<' | b'>' | b'&')) {
            "<" => Mode::Read,
            ">" => Mode::Write,
            ">>" => Mode::Append,
            ">&" if self.text[self.at..].starts_with('1') && digits == "2" => Mode::Write,
            _ => return None,
        };
        let copies = self.text[..self.at].ends_with('&');
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let word = self.word().filter(|word| !word.parts.is_empty())?;
        let target = match &word.parts[..] {
            [WordPart::Bare(text)] if copies && text == "1" => RedirectionTarget::Descriptor(1),
            _ if copies => return None,
            _ => RedirectionTarget::File(word),
        };
        let descriptor = digits.parse().unwrap_or(u8::from(mode != Mode::Read));
        let span = Span::new(start, self.at);
        Some(Redirect { span, descriptor, mode, with_errors: false, target })
    }

    fn string(&mut self, counts: impl Fn(u8) -> bool) -> &'s str {
        self.at += 1;
        self.skip(counts)
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    fn double(&mut self) -> Option<Vec<Quoted>> {
        let is_text = |byte| !matches!(byte, b'"' | b'$' | b'`' | b'\\' | b'\r' | b'\n');
        let mut pieces = Vec::new();
        let mut text = self.string(is_text);
        loop {
            if !text.is_empty() {
                pieces.push(Quoted::Text(text.to_owned()));
            }
            if self.peek() != Some(b'$') {
                self.take(b'"')?;
                return Some(pieces);
            }
            pieces.push(Quoted::Variable(Box::new(self.variable()?)));
            text = self.skip(is_text);
        }
    }

    /// Parses `$name`.
    fn variable(&mut self) -> Option<VariableUse> {
        let start = self.at;
        let name = self.string(is_in_name);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let span = Span::new(start, self.at);
        Some(VariableUse {
            span,
            parameter: Parameter::Named(name.into()),
            index: None,
            substitute: None,
        })
    }
}

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns true for a character of command names.
fn is_in_command(byte: u8) -> bool {
    is_in_name(byte) || matches!(byte, b'.' | b'/' | b'-' | b'+')
}

/// Returns true for a character without a meaning in any place of a word.
fn is_harmless(byte: u8) -> bool {
    is_in_command(byte)
        || !byte.is_ascii()
        || matches!(
            byte,
            b'=' | b':' | b',' | b'%' | b'@' | b'^' | b'~' | b'*' | b'?' | b'[' | b']'
        )
}
