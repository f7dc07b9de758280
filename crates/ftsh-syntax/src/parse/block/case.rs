//! Lines of a `case` between its head and its `end`.

use super::super::line::WhenLine;
use super::super::literal;
use super::super::structure::{CasePart, Structure};
use super::{Blocks, LineLayout, OpenStructure};
use crate::ast::{
    Block, CaseArm, Command, CommandKind, Expr, Pipeline, Stage, StageKind, Word, WordPart,
};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;

impl Blocks {
    /// Returns true inside of a `case`.
    pub(super) fn is_in_case(&self) -> bool {
        self.frames.iter().any(|it| it.structure.keyword() == "case")
    }

    /// Adds a line that begins with `when`, which is a command outside of a `case`.
    pub(super) fn when(&mut self, when: WhenLine, layout: LineLayout) {
        if !self.is_in_case() {
            return match when.error {
                Some(error) => self.errors.push(*error),
                None => self.push(CommandKind::Pipeline(when.pipeline), layout, Vec::new()),
            };
        }
        match patterns(when.pipeline, layout.span) {
            Ok(patterns) => self.arm(patterns, layout),
            Err(error) => {
                self.arm(Vec::new(), layout);
                self.errors.push(*error);
            }
        }
    }

    /// Begins an arm.
    pub(super) fn arm(&mut self, patterns: Vec<Word>, layout: LineLayout) {
        if let Some(head) = self.next_part(CasePart::Arm, "when", layout) {
            head.push(CaseArm { span: layout.span, patterns, body: Block::default() });
        }
    }

    /// Begins the block of `else`, or refuses `else if`.
    pub(super) fn case_else(&mut self, condition: Option<&Expr>, layout: LineLayout) {
        if condition.is_some() {
            let message = "a `case` has no `else if`";
            let error = SyntaxError::new(Slug::CaseForm, layout.span, message);
            self.errors.push(
                error.hint(hint!(
                    "write `when` and patterns, or an `if` on the line after the `else`"
                )),
            );
        }
        self.next_part(CasePart::Else, "else", layout);
    }

    /// Ends the current part of the innermost `case`, and returns the arms.
    fn next_part(
        &mut self,
        next: CasePart,
        word: &str,
        layout: LineLayout,
    ) -> Option<&mut Vec<CaseArm>> {
        let candidates = self.candidates.end();
        let frame = self.innermost(&["case"], word, layout)?;
        let Structure::Case(head, part) = &mut frame.structure else { return None };
        if *part == CasePart::Else {
            let error = SyntaxError::new(
                Slug::PartOrder,
                layout.span,
                "nothing can follow the `else` of a `case`",
            );
            self.errors.push(error.label("this `case` already has an `else`"));
            return None;
        }
        let early = early_command(*part, &frame.parts.body.commands);
        part.put(head, std::mem::take(&mut frame.parts.body));
        *part = next;
        frame.candidates = candidates;
        self.errors.extend(early);
        match &mut self.frames.last_mut()?.structure {
            Structure::Case(head, _) => Some(&mut head.arms),
            _ => None,
        }
    }

    /// Checks a structure at its `end`: a `case` needs an arm.
    pub(super) fn check_case(&mut self, frame: &OpenStructure) {
        let Structure::Case(head, part) = &frame.structure else { return };
        if literal::is_error_kind(&head.value) {
            let is_text = |part: &WordPart| !matches!(part, WordPart::Bare(it) if it.contains(['*', '?', '[']));
            let patterns = head.arms.iter().flat_map(|arm| &arm.patterns);
            for pattern in patterns.filter(|it| it.parts.iter().all(is_text)) {
                let checked = literal::word(pattern)
                    .map_or(Ok(()), |name| literal::check_kind(&name, pattern.span));
                self.errors.extend(checked.err().map(|error| *error));
            }
        }
        if let Some(error) = early_command(*part, &frame.parts.body.commands) {
            self.errors.push(error);
        } else if head.arms.is_empty() {
            let start = frame.layout.span.start;
            let span = Span::new(start, start + "case".len());
            let error = SyntaxError::new(Slug::CaseForm, span, "this `case` has no `when`");
            self.errors
                .push(error.hint(hint!("write `when a b` before the commands for `a` and `b`")));
        }
    }
}

/// Returns the error for a command before the first `when`.
fn early_command(part: CasePart, commands: &[Command]) -> Option<SyntaxError> {
    if part != CasePart::Comments {
        return None;
    }
    let is_comment = |it: &&Command| matches!(it.kind, CommandKind::Comment { .. });
    let command = commands.iter().find(|it| !is_comment(it))?;
    let message = "a command comes before the first `when`";
    let error = SyntaxError::new(Slug::CaseForm, command.span, message);
    Some(error.hint(match pattern_of_sh(command) {
        Some(pattern) => {
            hint!("patterns come after `when`, without a parenthesis: `when {pattern}`")
        }
        None => hint!("write `when a b` before the commands for `a` and `b`"),
    }))
}

/// Returns the pattern of a line like `a) command`.
fn pattern_of_sh(command: &Command) -> Option<&str> {
    let CommandKind::Pipeline(pipeline) = &command.kind else { return None };
    let simple = pipeline.stages.first()?.simple()?;
    simple.words.first().and_then(literal::bare)?.strip_suffix(')')
}

/// Returns the patterns of a line that begins with `when`.
fn patterns(pipeline: Pipeline, span: Span) -> Result<Vec<Word>, Box<SyntaxError>> {
    let refuse = |span: Span, message: &str| SyntaxError::new(Slug::CaseForm, span, message);
    let mut stages = pipeline.stages.into_iter();
    let (Some(Stage { kind: StageKind::Simple(simple), .. }), None) =
        (stages.next(), stages.next())
    else {
        let error = refuse(span, "`when` takes patterns, not a pipeline");
        return Err(Box::new(error.hint(hint!("spaces separate patterns: `when a b`"))));
    };
    if let Some(redirect) = simple.redirects.first() {
        let error = refuse(redirect.span, "`when` takes patterns, not a redirection");
        return Err(Box::new(
            error.hint(hint!("redirect the `case` after its `end`, or a command")),
        ));
    }
    let mut words = simple.words;
    words.remove(0);
    let is_of_sh = |word: &&Word| {
        let ends = |part: &WordPart, end: char| matches!(part, WordPart::Bare(text) if text.ends_with(end) && !text.contains('('));
        word.parts.last().is_some_and(|part| ends(part, ')'))
    };
    if let Some(word) = words.iter().find(is_of_sh) {
        let error = refuse(word.span, "a pattern ends without a parenthesis");
        return Err(Box::new(
            error.hint(hint!("write `when a b`, and quote a `)` of the pattern")),
        ));
    }
    if words.is_empty() {
        let error = refuse(span, "`when` takes at least one pattern");
        return Err(Box::new(error.hint(hint!("`else` begins the commands for any other value"))));
    }
    Ok(words)
}
