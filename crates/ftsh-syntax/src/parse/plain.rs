//! Parser of plain lines without the grammar: most lines of most scripts, in a fraction of the
//! time.
//!
//! Every uncertain line is left to the grammar. A test compares both trees, places included, for
//! all scripts of the repository.
//!
//! Plain lines are comments, `end`, `else` and `catch` alone, pipelines of commands with
//! redirections to files, assignments of one word, and some heads of `try`. Their words consist of
//! letters, digits, characters without a meaning, `$name`, `${name}`, and strings on one line
//! without escapes.

use std::ops::Range;

use smallvec::smallvec;

use super::bashisms;
use super::builder::Builder;
use super::cursor::{Cursor, is_in_command, is_in_name};
use super::line::{EndLine, ParsedLine};
use super::meant;
use super::plain_try;
use crate::ast::{CommandKind, Expr, ExprKind, Pipeline, Simple, Stage, StageKind, Word, WordPart};
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
        meant::check(&simple, &self.functions, self.text).ok()?;
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
