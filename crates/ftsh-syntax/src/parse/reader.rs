//! Takes the text apart line by line.

use pest::Parser;
use pest::error::InputLocation;

use super::block::{Blocks, Place};
use super::builder::Builder;
use super::{Among, Grammar, Pair, Rule, Unfinished, expected};
use crate::ast::Block;
use crate::error::SyntaxError;
use crate::span::Span;

/// Parses a whole script; yields all its mistakes if it has any, in the order of the text.
pub(super) fn script(text: &str, among: Among) -> std::result::Result<Block, Vec<SyntaxError>> {
    let reader = Reader::read(text, among.functions, true);
    reader.blocks.finish(reader.lost, among.channels)
}

/// The same by the grammar alone.
#[cfg(test)]
pub(super) fn script_by_grammar(text: &str) -> std::result::Result<Block, Vec<SyntaxError>> {
    let reader = Reader::read(text, &[], false);
    reader.blocks.finish(reader.lost, &[])
}

/// What a text lacks at its end to be a script, if there is nothing else wrong with it.
pub(super) fn unfinished(text: &str, functions: &[&str]) -> Option<Unfinished> {
    let reader = Reader::read(text, functions, true);
    match (reader.blocks.mistakes(), reader.lacks) {
        (0, _) => reader.blocks.innermost_keyword().map(Unfinished::Block),
        (1, lacks) => lacks,
        _ => None,
    }
}

struct Reader<'s> {
    text: &'s str,
    builder: Builder<'s>,
    blocks: Blocks,
    /// What comes next.
    at: usize,
    /// Whether nothing of its line came before.
    fresh: bool,
    /// Commands of this line that can't be built yet: where their here-documents begin is not known
    /// before the line's end.
    held: Vec<Parsed<'s>>,
    /// Whether some of the text was lost to a string or here-document that never ends, and with it
    /// perhaps an `end`.
    lost: bool,
    /// What the last line lacks.
    lacks: Option<Unfinished>,
}

/// A command as the grammar sees it.
struct Parsed<'s> {
    base: usize,
    statement: Option<Pair<'s>>,
    comment: Option<Pair<'s>>,
    place: Place,
}

impl<'s> Reader<'s> {
    /// Reads a whole text, plain lines without the grammar if `quickly`; functions of these names are there
    /// besides its own.
    fn read(text: &'s str, functions: &[&'s str], quickly: bool) -> Self {
        let byte_order_mark = text.len() - text.trim_start_matches('\u{feff}').len();
        let mut reader = Reader {
            text,
            builder: Builder::new(text, functions),
            blocks: Blocks::default(),
            at: byte_order_mark,
            fresh: true,
            held: Vec::new(),
            lost: false,
            lacks: None,
        };
        while reader.at < text.len() && !reader.blocks.hopeless() {
            if !(quickly && reader.step_quickly()) {
                reader.step();
            }
        }
        reader
    }

    /// Takes one line if it is plain; else false.
    fn step_quickly(&mut self) -> bool {
        if !self.held.is_empty() {
            return false;
        }
        let Some(plain) = self.builder.plain(self.at) else { return false };
        let place = Place { span: plain.span, ..place(plain.spacing, self.fresh) };
        let text = &self.text[std::ops::Range::from(plain.span)];
        match plain.statement {
            Some(line) => self.blocks.add(line, place),
            None => self.blocks.comment(text, place.indent.is_none(), place),
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
        let mut parsed = Parsed { base, statement: None, comment: None, place: Place::default() };
        let mut line_ends = true;
        for pair in line.into_inner() {
            match pair.as_rule() {
                Rule::spacing => parsed.place = place(pair.as_str(), self.fresh),
                Rule::comment => parsed.comment = Some(pair),
                Rule::terminator => line_ends = pair.as_str() != ";",
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

    /// Builds what waited for the end of the line, which is here.
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
        let trailing = parsed.statement.is_some() || parsed.place.indent.is_none();
        if let Some(pair) = parsed.statement {
            let place = Place { span: self.builder.span(&pair), ..parsed.place };
            let text = pair.as_str();
            let documents_at = self.builder.documents.at;
            match self.builder.line(pair) {
                Ok(line) => self.blocks.add(line, place),
                Err(error) => {
                    if self.builder.documents.at == documents_at {
                        self.builder.documents.pass(text);
                    }
                    // A lone backslash: what it joins is still to come.
                    if error.span.end == self.text.len() && self.text[error.span.start..] == *"\\" {
                        self.lacks = Some(Unfinished::Line);
                    }
                    self.blocks.broken(text, *error, place);
                }
            }
            if let Some(at) = self.builder.endless_string.take() {
                self.lost = true;
                self.lacks = self.text[at..].chars().next().map(Unfinished::Quote);
                self.at = self.next_line(at);
                self.fresh = true;
            }
        }
        if let Some(comment) = parsed.comment {
            let place = Place { span: self.builder.span(&comment), ..parsed.place };
            self.blocks.comment(comment.as_str(), trailing, place);
        }
    }

    /// Reports a command that the grammar doesn't know, and goes on with the next line.
    fn broken(&mut self, base: usize, error: &pest::error::Error<Rule>) {
        let (InputLocation::Pos(at) | InputLocation::Span((at, _))) = error.location;
        let rest = &self.text[base..];
        let start = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', ';']).len();
        let mut place = place(&rest[..start], self.fresh);
        self.at = self.next_line(base + at.max(start));
        self.build_held();

        let statement = rest[start..].lines().next().unwrap_or_default();
        self.builder.documents.at = self.at;
        self.builder.documents.pass(statement);
        self.at = self.builder.documents.at;
        self.fresh = true;
        let start = base + start;
        place.span = Span::new(start, start + statement.len());
        let end = self.text.trim_end();
        if base + at >= end.len() && (end.ends_with('|') || end.ends_with("|&")) {
            self.lacks = Some(Unfinished::Pipeline);
        }
        let error = expected::explain(self.text, base, start, error);
        self.blocks.broken(statement, error, place);
    }

    fn next_line(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |length| at + length + 1)
    }
}

/// Where a command stands, by what is between it and the command before.
fn place(spacing: &str, fresh: bool) -> Place {
    let mut lines = spacing.split('\n');
    let last = lines.next_back().unwrap_or_default();
    let first_on_line = fresh || last.len() < spacing.len();
    let skip = usize::from(!fresh);
    Place {
        span: Span::default(),
        gap: lines.skip(skip).any(|line| line.trim_matches([' ', '\t', '\r']).is_empty()),
        indent: first_on_line.then(|| indentation(last)),
    }
}

/// How far a line is indented; a tab goes to the next multiple of 8.
fn indentation(blanks: &str) -> usize {
    blanks.chars().fold(0, |column, c| match c {
        '\t' => (column / 8 + 1) * 8,
        ' ' => column + 1,
        _ => column,
    })
}
