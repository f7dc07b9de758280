//! Reader of a text, line by line.

use pest::Parser;
use pest::error::InputLocation;

use super::block::{Blocks, LineLayout};
use super::builder::Builder;
use super::{Grammar, KnownNames, Pair, Result, Rule, Unfinished, expected};
use crate::ast::Block;
use crate::error::SyntaxError;
use crate::span::Span;

/// Parses a whole script, or returns all errors in the order of the text.
pub(super) fn script(
    text: &str,
    known: KnownNames,
) -> std::result::Result<Block, Vec<SyntaxError>> {
    let reader = ScriptReader::read(text, known, true);
    reader.blocks.finish(reader.lost, known)
}

/// Parses the lines of a `$(…)`, or returns the first error.
pub(super) fn enclosed(builder: &mut Builder, lines: Span) -> Result<Block> {
    let inner = builder.enclosed(lines.end);
    let reader = ScriptReader::read_from(lines.start, inner, Blocks::enclosed(), true);
    builder.functions = reader.builder.functions;
    let result = reader.blocks.finish(reader.lost, KnownNames::default());
    result.map_err(|errors| errors.into_iter().next().map(Box::new).expect("an error"))
}

/// Parses a whole script by the grammar alone.
#[cfg(test)]
pub(super) fn script_by_grammar(text: &str) -> std::result::Result<Block, Vec<SyntaxError>> {
    let reader = ScriptReader::read(text, KnownNames::default(), false);
    reader.blocks.finish(reader.lost, KnownNames::default())
}

/// Returns the missing part at the end of a text without other errors.
pub(super) fn unfinished(text: &str, known: KnownNames) -> Option<Unfinished> {
    let reader = ScriptReader::read(text, KnownNames { is_open: true, ..known }, true);
    match (reader.blocks.error_count(), reader.lacks) {
        (0, _) => reader.blocks.innermost_keyword().map(Unfinished::Block),
        (1, lacks) => lacks,
        _ => None,
    }
}

struct ScriptReader<'s> {
    text: &'s str,
    builder: Builder<'s>,
    blocks: Blocks,
    /// Position of the next line.
    at: usize,
    /// True at the start of a line.
    fresh: bool,
    /// Commands of the current line that wait for the end of the line, where their here-documents
    /// begin.
    held: Vec<Parsed<'s>>,
    /// True if an unterminated string or here-document has hidden some of the text, and perhaps an
    /// `end`.
    lost: bool,
    /// Missing part of the last line.
    lacks: Option<Unfinished>,
}

/// Command as parsed by the grammar.
struct Parsed<'s> {
    base: usize,
    statement: Option<Pair<'s>>,
    comment: Option<Pair<'s>>,
    layout: LineLayout,
}

impl<'s> ScriptReader<'s> {
    /// Reads a whole text, and plain lines without the grammar if `quickly`.
    ///
    /// `known` names are defined before the text.
    fn read(text: &'s str, known: KnownNames<'s>, quickly: bool) -> Self {
        let byte_order_mark = text.len() - text.trim_start_matches('\u{feff}').len();
        let builder = Builder::new(text, known);
        Self::read_from(byte_order_mark, builder, Blocks::default(), quickly)
    }

    /// Reads the text of a builder from a position on.
    fn read_from(at: usize, builder: Builder<'s>, blocks: Blocks, quickly: bool) -> Self {
        let text = builder.text;
        let mut reader = ScriptReader {
            text,
            builder,
            blocks,
            at,
            fresh: true,
            held: Vec::new(),
            lost: false,
            lacks: None,
        };
        while reader.at < text.len() && !reader.blocks.must_stop() {
            if !(quickly && reader.step_quickly()) {
                reader.step();
            }
        }
        reader
    }

    /// Reads one line, and returns true, if the line is plain.
    fn step_quickly(&mut self) -> bool {
        if !self.held.is_empty() {
            return false;
        }
        let Some(plain) = self.builder.plain(self.at) else { return false };
        let layout = LineLayout { span: plain.span, ..layout(plain.spacing, self.fresh) };
        let text = &self.text[std::ops::Range::from(plain.span)];
        match plain.statement {
            Some(line) => self.blocks.add(line, layout),
            None => self.blocks.comment(text, layout.indent.is_none(), layout),
        }
        self.at = plain.next;
        self.fresh = true;
        true
    }

    /// Parses one command, comment, or part of a structure.
    fn step(&mut self) {
        let base = self.at;
        let line = match Grammar::parse(Rule::line, &self.text[base..]) {
            Ok(mut pairs) => pairs.next().expect("a line that was parsed"),
            Err(error) => return self.broken(base, &error),
        };
        self.at = base + line.as_span().end();
        let mut parsed =
            Parsed { base, statement: None, comment: None, layout: LineLayout::default() };
        let mut line_ends = true;
        for pair in line.into_inner() {
            match pair.as_rule() {
                Rule::spacing => parsed.layout = layout(pair.as_str(), self.fresh),
                Rule::comment => parsed.comment = Some(pair),
                Rule::terminator => line_ends = pair.as_str() != ";",
                Rule::dashes => {
                    line_ends = false;
                    parsed.layout.has_dashes = true;
                }
                _ => parsed.statement = Some(pair),
            }
        }
        self.fresh = line_ends;
        let documents = parsed.statement.as_ref().is_some_and(|it| it.as_str().contains("<<"));
        if !documents && self.held.is_empty() {
            return self.build(parsed);
        }
        self.held.push(parsed);
        if line_ends {
            self.build_held();
        }
    }

    /// Builds the commands that waited for the end of the line, at the end of the line.
    fn build_held(&mut self) {
        self.builder.documents.at = self.at;
        for parsed in std::mem::take(&mut self.held) {
            self.build(parsed);
        }
        self.at = self.at.max(self.builder.documents.at);
        if self.builder.documents.endless {
            self.at = self.text.len();
            self.lost = true;
            self.lacks = Some(Unfinished::Document);
        }
    }

    fn build(&mut self, parsed: Parsed<'s>) {
        self.builder.base = parsed.base;
        self.builder.is_first = !self.blocks.has_begun();
        self.builder.is_in_head = self.blocks.is_in_head();
        let trailing = parsed.statement.is_some() || parsed.layout.indent.is_none();
        if let Some(pair) = parsed.statement {
            let layout = LineLayout { span: self.builder.span(&pair), ..parsed.layout };
            let text = pair.as_str();
            let documents_at = self.builder.documents.at;
            match self.builder.line(pair) {
                Ok(line) => self.blocks.add(line, layout),
                Err(error) => {
                    if self.builder.documents.at == documents_at {
                        self.builder.documents.pass(text);
                    }
                    // After a lone backslash, the joined line is missing.
                    if error.span.end == self.text.len() && self.text[error.span.start..] == *"\\" {
                        self.lacks = Some(Unfinished::Line);
                    }
                    self.blocks.broken(text, *error, layout);
                }
            }
            if let Some(at) = self.builder.endless_string.take() {
                self.lost = true;
                self.lacks = self.text[at..].chars().next().map(Unfinished::Quote);
                self.at = self.next_line(at);
                self.fresh = true;
            } else if std::mem::take(&mut self.builder.endless_group) {
                self.lost = true;
                self.lacks = Some(Unfinished::Quote('('));
                self.at = self.text.len();
            }
        }
        if let Some(comment) = parsed.comment {
            let layout = LineLayout { span: self.builder.span(&comment), ..parsed.layout };
            self.blocks.comment(comment.as_str(), trailing, layout);
        }
    }

    /// Adds the error of a line that the grammar does not match, and continues with the next line.
    fn broken(&mut self, base: usize, error: &pest::error::Error<Rule>) {
        let (InputLocation::Pos(at) | InputLocation::Span((at, _))) = error.location;
        let rest = &self.text[base..];
        let start = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', ';']).len();
        let mut layout = layout(&rest[..start], self.fresh);
        self.at = self.next_line(base + at.max(start));
        self.build_held();

        let statement = rest[start..].lines().next().unwrap_or_default();
        self.builder.documents.at = self.at;
        self.builder.documents.pass(statement);
        self.at = self.builder.documents.at;
        self.fresh = true;
        let start = base + start;
        layout.span = Span::new(start, start + statement.len());
        let end = self.text.trim_end();
        if base + at >= end.len() && (end.ends_with('|') || end.ends_with("|&")) {
            self.lacks = Some(Unfinished::Pipeline);
        }
        let error = expected::explain(self.text, base, start, error);
        self.blocks.broken(statement, error, layout);
    }

    fn next_line(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |length| at + length + 1)
    }
}

/// Returns the layout of a command after the `spacing` behind the previous command.
fn layout(spacing: &str, fresh: bool) -> LineLayout {
    let mut lines = spacing.split('\n');
    let last = lines.next_back().unwrap_or_default();
    let first_on_line = fresh || last.len() < spacing.len();
    let skip = usize::from(!fresh);
    LineLayout {
        span: Span::default(),
        gap: lines.skip(skip).any(|line| line.trim_matches([' ', '\t', '\r']).is_empty()),
        indent: first_on_line.then(|| indentation(last)),
        has_dashes: false,
    }
}

/// Returns the width of the indentation. A tab ends at the next multiple of 8.
fn indentation(blanks: &str) -> usize {
    blanks.chars().fold(0, |column, c| match c {
        '\t' => (column / 8 + 1) * 8,
        ' ' => column + 1,
        _ => column,
    })
}
