//! Matching of heads of structures with their `end`s, on a stack.

mod case;
mod one_line;

use std::collections::HashMap;

use super::line::{EndLine, HeadLine, ParsedLine, Piped};
use super::literal;
use super::misspelled::{self, Candidates};
use super::structure::{BlockParts, CasePart, Structure};
use super::{KnownNames, MAX_BLOCK_DEPTH, MAX_ERRORS, channel, jump, modifier};
use crate::ast::{
    Block, Command, CommandKind, Expr, Name, Pipeline, Redirect, Simple, Stage, StageKind,
};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::HEADS;

/// Keywords of the structures that `catch` and `finally` belong to.
const HANDLING: [&str; 9] =
    ["try", "limit", "in", "with", "for", "forany", "forall", "while", "function"];

/// Position and layout of a command.
#[derive(Clone, Copy, Default)]
pub(super) struct LineLayout {
    pub(super) span: Span,
    /// True if a blank line precedes the command.
    pub(super) gap: bool,
    /// Indentation, if the command is the first on its line.
    pub(super) indent: Option<usize>,
    /// True if a `--` ends the head of a structure on one line.
    pub(super) has_dashes: bool,
}

/// Open structures with their content so far.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is true from some line on")]
pub(super) struct Blocks {
    /// Commands outside of all structures.
    script: Vec<Command>,
    frames: Vec<OpenStructure>,
    functions: HashMap<Name, Span>,
    /// Structures with a probably missing `end`, judged by the indentation.
    suspects: Vec<SyntaxError>,
    errors: Vec<SyntaxError>,
    too_deep: bool,
    /// Commands that may explain a misplaced line.
    candidates: Candidates,
    /// Number of explained structures whose `end` has not been read yet.
    expected_ends: usize,
    /// True after an `else if`.
    has_else_if: bool,
    /// True after the first statement.
    has_begun: bool,
    /// True after the first statement other than `args` and `use`.
    is_past_head: bool,
    /// True for the lines of a `$(…)`.
    is_enclosed: bool,
}

/// Open structure.
struct OpenStructure {
    /// Layout of the head.
    layout: LineLayout,
    structure: Structure,
    /// Blocks so far; of an `if` or `case`, the current arm.
    parts: BlockParts,
    /// Position of the block among the candidates.
    candidates: usize,
    /// True if a `--` follows the head, before the only command.
    one_line: bool,
    /// Pipeline before the structure, if a `|` precedes the structure.
    before: Option<Before>,
}

/// Stages of a pipeline before a structure.
struct Before {
    stages: Vec<Stage>,
    /// Layout of the whole pipeline.
    layout: LineLayout,
}

impl Blocks {
    /// Creates the blocks of a `$(…)`, which are inside of a statement.
    pub(super) fn enclosed() -> Self {
        Self { has_begun: true, is_past_head: true, is_enclosed: true, ..Self::default() }
    }

    /// Returns true if the rest of the text is not worth parsing.
    pub(super) fn must_stop(&self) -> bool {
        self.too_deep || self.errors.len() >= MAX_ERRORS
    }

    /// Returns true after the first statement.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns true as long as there are no statements except `args` and `use`.
    pub(super) fn is_in_head(&self) -> bool {
        !self.is_past_head
    }

    /// Returns the number of errors so far.
    pub(super) fn error_count(&self) -> usize {
        self.errors.len()
    }

    /// Returns the keyword of the innermost block, inside of a structure.
    pub(super) fn innermost_keyword(&self) -> Option<&'static str> {
        self.frames.last().map(|frame| match &frame.structure {
            _ if frame.parts.finally.is_some() => "finally",
            _ if frame.parts.catch.is_some() => "catch",
            Structure::If { condition: None, .. } | Structure::Case(_, CasePart::Else) => "else",
            Structure::Case(_, CasePart::Arm) => "when",
            structure => structure.keyword(),
        })
    }

    /// Adds a line.
    pub(super) fn add(&mut self, line: ParsedLine, layout: LineLayout) {
        self.has_begun = true;
        let is_head = |kind: &_| matches!(kind, CommandKind::Args(_) | CommandKind::Use(_));
        self.is_past_head |= !matches!(&line, ParsedLine::Command(kind) if is_head(kind));
        let awaited = self.awaits_command();
        match line {
            ParsedLine::Head(head @ (HeadLine::Try(_) | HeadLine::For(_) | HeadLine::In(_)))
                if layout.has_dashes =>
            {
                let depth = self.frames.len();
                self.open(head, layout, None);
                if self.frames.len() > depth {
                    self.frames[depth].one_line = true;
                }
                return;
            }
            ParsedLine::Command(
                kind @ (CommandKind::Pipeline(_) | CommandKind::Assign { local: false, .. }),
            ) if awaited && !layout.has_dashes => {
                self.push(kind, layout, Vec::new());
                return self.end_lines(layout);
            }
            // The head would open a structure that lacks its `end`.
            ParsedLine::Piped(Piped { head: Some((_, span)), .. })
                if layout.has_dashes && !awaited =>
            {
                return self.errors.push(one_line::stage(span));
            }
            _ if awaited || layout.has_dashes => {
                self.errors.push(one_line::no_command(layout.span));
                self.drop_lines();
            }
            _ => {}
        }
        match line {
            ParsedLine::Command(kind) => {
                let local = matches!(kind, CommandKind::Assign { local: true, .. });
                if local
                    && !self.is_enclosed
                    && !self.frames.iter().any(|it| it.structure.keyword() == "function")
                {
                    let error = SyntaxError::new(
                        Slug::StrayLocal,
                        layout.span,
                        "`local` is outside of a function",
                    );
                    self.errors.push(error.hint(hint!(
                        "outside of functions, variables belong to the whole script: `name=value`"
                    )));
                }
                match self.intended_part(&kind) {
                    Some((error, meant)) => self.broken(meant, error, layout),
                    None => self.push(kind, layout, Vec::new()),
                }
            }
            ParsedLine::Head(head) => self.open(head, layout, None),
            ParsedLine::Piped(piped) => self.piped(piped, Vec::new(), layout, layout),
            ParsedLine::When(when) => self.when(when, layout),
            ParsedLine::Catch => self.catch(layout),
            ParsedLine::Finally => self.finally(layout),
            ParsedLine::Else => self.next_arm(None, layout),
            ParsedLine::ElseIf(condition) => {
                self.has_else_if = true;
                self.next_arm(Some(condition), layout);
            }
            ParsedLine::End(end) => self.end(end, layout),
        }
    }

    /// Returns the error of a command like `cacth` inside of a structure, and the part meant.
    fn intended_part(&self, kind: &CommandKind) -> Option<(SyntaxError, &'static str)> {
        let CommandKind::Pipeline(Pipeline { stages }) = kind else { return None };
        let [stage] = &stages[..] else { return None };
        let Simple { words, redirects, .. } = stage.simple()?;
        let [word] = &words[..] else { return None };
        let name = literal::bare(word).filter(|name| !self.functions.contains_key(*name))?;
        let meant = misspelled::intended_part(name)?;
        if self.frames.is_empty() || !redirects.is_empty() {
            return None;
        }
        let error = SyntaxError::new(Slug::StrayPart, word.span, format!("there is no `{name}`"));
        Some((error.hint(hint!("did you mean `{meant}`?")), meant))
    }

    /// Adds a comment; a `trailing` comment shares its line with a command.
    pub(super) fn comment(&mut self, text: &str, trailing: bool, layout: LineLayout) {
        let text = text.strip_prefix('#').unwrap_or(text).trim_end().to_owned();
        let gap = layout.gap && !trailing;
        self.push(
            CommandKind::Comment { text, trailing },
            LineLayout { gap, ..layout },
            Vec::new(),
        );
    }

    /// Adds the error of a line that does not parse, and counts its heads and `end`s.
    pub(super) fn broken(&mut self, line: &str, error: SyntaxError, layout: LineLayout) {
        self.has_begun = true;
        self.drop_lines();
        self.errors.push(error);
        let known = self.errors.len();
        let word = first_word(line);
        self.is_past_head |= !matches!(word, "args" | "use");
        match word {
            "end" => {
                self.end(EndLine::default(), layout);
                // The pattern `end | while …`.
                if line.contains('|')
                    && let Some(keyword) = opened(line)
                {
                    self.open(HeadLine::Broken(keyword), layout, None);
                }
            }
            "catch" => self.catch(layout),
            "finally"
                if self.frames.iter().any(|it| HANDLING.contains(&it.structure.keyword())) =>
            {
                self.finally(layout);
            }
            "else" => self.next_arm(None, layout),
            "when" if self.is_in_case() => self.arm(Vec::new(), layout),
            "fi" => self.end_foreign(&["if"], layout),
            "done" => self.end_foreign(&["for", "while", "forany", "forall"], layout),
            "esac" => self.end_foreign(&["case"], layout),
            "}" => self.end_foreign(&["function", "case"], layout),
            _ => {
                if let Some(keyword) = opened(line).filter(|_| !line.contains(" -- ")) {
                    self.open(HeadLine::Broken(keyword), layout, None);
                }
            }
        }
        // A further error that the line is misplaced would say nothing new.
        if !self.too_deep {
            self.errors.truncate(known);
        }
    }

    /// Returns the whole script, or all errors.
    ///
    /// Channels may be declared before the script. An `end` may be missing where text was `lost` to
    /// an unterminated string.
    pub(super) fn finish(
        mut self,
        lost: bool,
        known: KnownNames,
    ) -> std::result::Result<Block, Vec<SyntaxError>> {
        let must_stop = self.must_stop();
        let mut suspects = std::mem::take(&mut self.suspects).into_iter();
        while let Some(frame) = self.frames.pop() {
            if !lost && !must_stop && !matches!(frame.structure, Structure::Broken(_)) {
                self.errors.push(suspects.next().unwrap_or_else(|| no_end(&frame)));
            }
        }
        self.errors.extend(jump::misplaced(&self.script, &self.functions, self.is_enclosed));
        if !self.is_enclosed {
            self.errors.extend(channel::undeclared(&self.script, known));
        }
        if self.errors.is_empty() {
            return Ok(Block { commands: self.script });
        }
        self.errors.sort_by_key(|error| error.span.start);
        Err(self.errors)
    }

    fn commands(&mut self) -> &mut Vec<Command> {
        match self.frames.last_mut() {
            Some(frame) => &mut frame.parts.current().commands,
            None => &mut self.script,
        }
    }

    fn push(&mut self, kind: CommandKind, layout: LineLayout, redirects: Vec<Redirect>) {
        self.candidates.add(&kind);
        let commands = self.commands();
        let gap = layout.gap && !commands.is_empty();
        commands.push(Command { span: layout.span, gap, kind, redirects, one_line: false });
    }

    /// Adds a line of a pipeline that begins at `first`, after the stages `before`.
    fn piped(&mut self, piped: Piped, before: Vec<Stage>, first: LineLayout, layout: LineLayout) {
        let mut stages = before;
        stages.extend(piped.stages);
        let Some((head, span)) = piped.head else {
            return self.push(CommandKind::Pipeline(Pipeline { stages }), first, Vec::new());
        };
        let indent = layout.indent.filter(|_| piped.on_one_line);
        let layout = LineLayout { span, indent, ..LineLayout::default() };
        self.open(head, layout, Some(Before { stages, layout: first }));
    }

    fn open(&mut self, head: HeadLine, layout: LineLayout, before: Option<Before>) {
        if self.frames.len() == MAX_BLOCK_DEPTH {
            self.too_deep = true;
            let message = format!("structures nest at most {MAX_BLOCK_DEPTH} deep");
            let error = SyntaxError::new(Slug::TooLarge, layout.span, message);
            self.errors.push(error.hint(hint!("move the inner structures to a function")));
            return;
        }
        if let HeadLine::Function { name, name_span, .. } = &head {
            let first = *self.functions.entry(name.clone()).or_insert(*name_span);
            if first != *name_span {
                let message = format!("the function `{name}` is defined twice");
                let error = SyntaxError::new(Slug::DuplicateFunction, *name_span, message);
                self.errors.push(error.related(first, "first defined here"));
            }
        }
        let structure = Structure::from(head);
        let gap = layout.gap && !self.commands().is_empty();
        self.frames.push(OpenStructure {
            layout: LineLayout { gap, ..layout },
            structure,
            parts: BlockParts::default(),
            candidates: self.candidates.end(),
            one_line: false,
            before,
        });
    }

    /// Returns the innermost open structure, if its keyword is or may be one of `keywords`.
    ///
    /// Otherwise the structures inside the nearest structure of these keywords lack their `end`s. If
    /// there is no such structure, the line at `layout`, which begins with `word`, is misplaced.
    fn innermost(
        &mut self,
        keywords: &[&str],
        word: &str,
        layout: LineLayout,
    ) -> Option<&mut OpenStructure> {
        let is_it = |it: &OpenStructure| keywords.contains(&it.structure.keyword());
        let Some(at) = self.frames.iter().rposition(is_it) else {
            if self.explain_by_head(word, layout) {
                self.expected_ends += 1;
            } else if self.expected_ends == 0 {
                let message = format!("`{word}` without `{}`", keywords[0]);
                let error = SyntaxError::new(Slug::StrayPart, layout.span, message);
                self.errors.push(error);
            }
            return None;
        };
        while self.frames.len() > at + 1 {
            if let Some(frame) = self.frames.pop()
                && !matches!(frame.structure, Structure::Broken(_))
            {
                self.errors
                    .push(no_end(&frame).related(layout.span, "its `end` must come before this"));
            }
        }
        self.frames.last_mut()
    }

    /// Explains a misplaced line by an earlier command that was meant to be a head. Returns false
    /// if there is none.
    fn explain_by_head(&mut self, word: &str, layout: LineLayout) -> bool {
        let start = self.frames.last().map_or(0, |frame| frame.candidates);
        let Some((head, span, meant)) = self.candidates.take_last(start) else {
            return false;
        };
        let error = SyntaxError::new(
            Slug::UnknownStructure,
            span,
            format!("`{head}` does not begin a structure"),
        )
        .hint(hint!("did you mean `{meant}`?"))
        .related(layout.span, format!("this `{word}` belongs to no structure"));
        self.errors.push(error);
        true
    }

    fn catch(&mut self, layout: LineLayout) {
        let candidates = self.candidates.end();
        let Some(frame) = self.innermost(&HANDLING, "catch", layout) else { return };
        let (keyword, parts) = (frame.structure.keyword(), &mut frame.parts);
        let error = |message: String| SyntaxError::new(Slug::PartOrder, layout.span, message);
        if let Some((first, _)) = parts.finally {
            let error = error("`catch` comes before `finally`".to_owned());
            self.errors.push(error.related(first, "the `finally` is here"));
        } else if let Some((first, _)) = parts.catch {
            let error = error(format!("a `{keyword}` has only one `catch`"));
            self.errors.push(error.related(first, "the first one is here"));
        } else {
            parts.catch = Some((layout.span, Block::default()));
            frame.candidates = candidates;
        }
    }

    fn finally(&mut self, layout: LineLayout) {
        let candidates = self.candidates.end();
        let Some(frame) = self.innermost(&HANDLING, "finally", layout) else { return };
        if let Some((first, _)) = frame.parts.finally {
            let message = format!("a `{}` has only one `finally`", frame.structure.keyword());
            let error = SyntaxError::new(Slug::PartOrder, layout.span, message);
            self.errors.push(error.related(first, "the first one is here"));
            return;
        }
        frame.parts.finally = Some((layout.span, Block::default()));
        frame.candidates = candidates;
    }

    /// Begins the block of `else if condition` or `else`.
    fn next_arm(&mut self, next: Option<Expr>, layout: LineLayout) {
        let candidates = self.candidates.end();
        let Some(frame) = self.innermost(&["if", "case"], "else", layout) else { return };
        let (arms, condition) = match &mut frame.structure {
            Structure::If { arms, condition } => (arms, condition),
            Structure::Case(..) => return self.case_else(next.as_ref(), layout),
            _ => return,
        };
        let Some(done) = std::mem::replace(condition, next) else {
            let error = SyntaxError::new(
                Slug::PartOrder,
                layout.span,
                "nothing can follow the last `else` of an `if`",
            );
            self.errors.push(error.label("this `if` already has an `else`"));
            return;
        };
        arms.push((done, std::mem::take(&mut frame.parts.body)));
        frame.candidates = candidates;
    }

    fn end(&mut self, end: EndLine, layout: LineLayout) {
        let Some(frame) = self.frames.pop() else {
            if self.expected_ends > 0 {
                self.expected_ends -= 1;
            } else if !self.explain_by_head("end", layout) {
                let error = SyntaxError::new(
                    Slug::StrayEnd,
                    layout.span,
                    "`end` without a structure to end",
                );
                self.errors.push(if std::mem::take(&mut self.has_else_if) {
                    error.hint(hint!(
                        "an `else if` has no `end` of its own: one `end` ends the `if`"
                    ))
                } else {
                    error
                });
            }
            return self.open_after_end(end, layout);
        };
        self.suspect(&frame, layout);
        if let Structure::Function { .. } = &frame.structure {
            self.check_definition(&end, frame.layout.span);
        }
        self.check_case(&frame);
        let Some(kind) = frame.structure.ended(frame.layout.span, frame.parts) else {
            return self.open_after_end(end, layout);
        };
        if frame.before.is_none() && end.after.is_none() {
            return self.push(kind, frame.layout, end.redirects);
        }
        let (pipe_errors, after) = end.after.unwrap_or_default();
        let Before { mut stages, layout: first } =
            frame.before.unwrap_or(Before { stages: Vec::new(), layout: frame.layout });
        let span = frame.layout.span;
        let structure = Command { redirects: end.redirects, ..Command::plain(span, kind) };
        let kind = StageKind::Structure(Block { commands: vec![structure] });
        stages.push(Stage { kind, pipe_errors });
        self.piped(after, stages, first, layout);
    }

    /// Opens the structure that follows an `end` without a structure.
    fn open_after_end(&mut self, end: EndLine, layout: LineLayout) {
        if let Some((_, Piped { head: Some((head, span)), .. })) = end.after {
            self.open(head, LineLayout { span, ..layout }, None);
        }
    }

    /// Checks the `end` of a function, whose definition has neither input nor output.
    fn check_definition(&mut self, end: &EndLine, span: Span) {
        if let Some(redirect) = end.redirects.first() {
            let message = "a function's definition can't be redirected";
            let error = SyntaxError::new(Slug::FunctionOutput, redirect.span, message);
            self.errors.push(error.hint(hint!("redirect the commands inside, or each call")));
        }
        if end.after.is_some() {
            let message = "a function's definition can't be a stage of a pipeline";
            let error = SyntaxError::new(Slug::FunctionOutput, span, message);
            self.errors.push(error.hint(hint!(
                "define the function on lines of its own, and call the function here"
            )));
        }
    }

    /// Ends a structure at the closing word of another shell.
    fn end_foreign(&mut self, keywords: &[&str], layout: LineLayout) {
        if self.frames.last().is_some_and(|it| keywords.contains(&it.structure.keyword())) {
            self.end(EndLine::default(), layout);
        }
    }

    /// Adds a structure to the suspects if its `end` is indented like an outer structure.
    fn suspect(&mut self, frame: &OpenStructure, end: LineLayout) {
        let (Some(inner), Some(indent)) = (frame.layout.indent, end.indent) else { return };
        let owner = self.frames.iter().rev().find(|it| it.layout.indent == Some(indent));
        if let Some(owner) = owner.filter(|_| inner > indent) {
            let note = format!("this `end` is indented like the `{}`", owner.structure.keyword());
            self.suspects.push(no_end(frame).related(end.span, note));
        }
    }
}

fn first_word(line: &str) -> &str {
    line.split(|c: char| !c.is_ascii_alphabetic() && c != '}').next().unwrap_or("")
}

/// Returns the head that a line was meant to be, in this or another shell.
fn opened(line: &str) -> Option<&'static str> {
    let line = modifier::skipped(line);
    let last_stage = line.rsplit('|').next().unwrap_or(line).trim_start();
    let words = [first_word(line), first_word(last_stage)];
    let head = HEADS.into_iter().find(|head| words.contains(head));
    let head = head.or_else(|| misspelled::intended_head(words[0]));
    let function = line.split_once('(').is_some_and(|(_, rest)| rest.starts_with(") {"));
    head.or(function.then_some("function"))
}

fn no_end(frame: &OpenStructure) -> SyntaxError {
    let keyword = frame.structure.keyword();
    let start = frame.layout.span.start;
    let error = SyntaxError::new(
        Slug::MissingEnd,
        Span::new(start, start + keyword.len()),
        format!("this `{keyword}` has no `end`"),
    );
    if one_line::has_dashes(&frame.structure) { error.hint(one_line::possible()) } else { error }
}
