//! Pairs the heads of structures with their `end`s, on a stack.

use std::collections::HashMap;

use super::line::{End, Head, Line, Piped};
use super::misspelled::{self, Candidates};
use super::structure::Structure;
use super::{MAX_BLOCK_DEPTH, MAX_MISTAKES, channel, jump};
use crate::ast::{Block, Command, CommandKind, Expr, Name, Pipeline, Redirect, Stage, StageKind};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::HEADS;

/// Where a command stands.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) span: Span,
    /// Whether a blank line is before it.
    pub(super) gap: bool,
    /// Its indentation, if it is the first on its line.
    pub(super) indent: Option<usize>,
}

/// The structures that are open, and what they hold so far.
#[derive(Default)]
pub(super) struct Blocks {
    /// The commands outside all structures.
    script: Vec<Command>,
    frames: Vec<Frame>,
    functions: HashMap<Name, Span>,
    /// Structures that probably lack their `end`, judging by the indentation.
    suspects: Vec<SyntaxError>,
    errors: Vec<SyntaxError>,
    too_deep: bool,
    /// What a stray line may be explained by.
    candidates: Candidates,
    /// How many of these have an `end` still to come.
    owed_ends: usize,
}

/// One open structure.
struct Frame {
    /// Its head's.
    place: Place,
    structure: Structure,
    /// The block that is being read.
    commands: Vec<Command>,
    /// Where it begins among the candidates.
    candidates: usize,
    /// The pipeline that it is a stage of, if a `|` comes before it.
    before: Option<Before>,
}

/// The stages of a pipeline before a structure.
struct Before {
    stages: Vec<Stage>,
    /// The whole pipeline's.
    place: Place,
}

impl Blocks {
    /// Whether reading on makes no sense.
    pub(super) fn hopeless(&self) -> bool {
        self.too_deep || self.errors.len() >= MAX_MISTAKES
    }

    /// How many mistakes were found so far.
    pub(super) fn mistakes(&self) -> usize {
        self.errors.len()
    }

    /// The keyword whose commands are being read, if they are of a structure.
    pub(super) fn innermost_keyword(&self) -> Option<&'static str> {
        self.frames.last().map(|frame| match &frame.structure {
            Structure::Try { finally: Some(_), .. } => "finally",
            Structure::Try { catch: Some(_), .. } => "catch",
            Structure::If { condition: None, .. } => "else",
            structure => structure.keyword(),
        })
    }

    /// Adds a line.
    pub(super) fn add(&mut self, line: Line, place: Place) {
        match line {
            Line::Command(kind) => {
                let local = matches!(kind, CommandKind::Assign { local: true, .. });
                if local && !self.frames.iter().any(|it| it.structure.keyword() == "function") {
                    let error = SyntaxError::new(
                        Slug::StrayLocal,
                        place.span,
                        "`local` stands outside a function",
                    );
                    self.errors.push(error.hint(hint!(
                        "what isn't in a function is the whole script's: `name=value`"
                    )));
                }
                self.push(kind, place, Vec::new());
            }
            Line::Head(head) => self.open(head, place, None),
            Line::Piped(piped) => self.piped(piped, Vec::new(), place, place),
            Line::Catch => self.catch(place),
            Line::Finally => self.finally(place),
            Line::Else => self.next_arm(None, place),
            Line::ElseIf(condition) => self.next_arm(Some(condition), place),
            Line::End(end) => self.end(end, place),
        }
    }

    /// Adds a comment; a `trailing` one shares its line with what comes before it.
    pub(super) fn comment(&mut self, text: &str, trailing: bool, place: Place) {
        let text = text.strip_prefix('#').unwrap_or(text).trim_end().to_owned();
        let gap = place.gap && !trailing;
        self.push(CommandKind::Comment { text, trailing }, Place { gap, ..place }, Vec::new());
    }

    /// Reports a line that couldn't be understood, and keeps heads and `end`s in step.
    pub(super) fn broken(&mut self, line: &str, error: SyntaxError, place: Place) {
        self.errors.push(error);
        let known = self.errors.len();
        let word = first_word(line);
        match word {
            "end" => {
                self.end(End::default(), place);
                // `end | while …`
                if line.contains('|')
                    && let Some(keyword) = opened(line)
                {
                    self.open(Head::Broken(keyword), place, None);
                }
            }
            "catch" => self.catch(place),
            "finally" if self.frames.iter().any(|it| it.structure.keyword() == "try") => {
                self.finally(place);
            }
            "else" => self.next_arm(None, place),
            "fi" => self.end_foreign(&["if"], place),
            "done" => self.end_foreign(&["for", "while", "forany", "forall"], place),
            "}" => self.end_foreign(&["function"], place),
            _ => {
                if let Some(keyword) = opened(line) {
                    self.open(Head::Broken(keyword), place, None);
                }
            }
        }
        // That the line is also out of place says nothing new.
        if !self.too_deep {
            self.errors.truncate(known);
        }
    }

    /// The whole script, where there are `channels` already, or all mistakes. An `end` may be missing where
    /// text was `lost` to a string that never ends.
    pub(super) fn finish(
        mut self,
        lost: bool,
        channels: &[&str],
    ) -> std::result::Result<Block, Vec<SyntaxError>> {
        let hopeless = self.hopeless();
        let mut suspects = std::mem::take(&mut self.suspects).into_iter();
        while let Some(frame) = self.frames.pop() {
            if !lost && !hopeless && !matches!(frame.structure, Structure::Broken(_)) {
                self.errors.push(suspects.next().unwrap_or_else(|| no_end(&frame)));
            }
        }
        self.errors.extend(jump::astray(&self.script, &self.functions));
        self.errors.extend(channel::undeclared(&self.script, channels));
        if self.errors.is_empty() {
            return Ok(Block { commands: self.script });
        }
        self.errors.sort_by_key(|error| error.span.start);
        Err(self.errors)
    }

    fn commands(&mut self) -> &mut Vec<Command> {
        match self.frames.last_mut() {
            Some(frame) => &mut frame.commands,
            None => &mut self.script,
        }
    }

    fn push(&mut self, kind: CommandKind, place: Place, redirects: Vec<Redirect>) {
        self.candidates.add(&kind);
        let commands = self.commands();
        let gap = place.gap && !commands.is_empty();
        commands.push(Command { span: place.span, gap, kind, redirects });
    }

    /// A line of a pipeline, after the stages `before`: the pipeline begins at `first`, the line at `place`.
    fn piped(&mut self, piped: Piped, before: Vec<Stage>, first: Place, place: Place) {
        let mut stages = before;
        stages.extend(piped.stages);
        let Some((head, span)) = piped.head else {
            return self.push(CommandKind::Pipeline(Pipeline { stages }), first, Vec::new());
        };
        let indent = place.indent.filter(|_| piped.on_one_line);
        let place = Place { span, gap: false, indent };
        self.open(head, place, Some(Before { stages, place: first }));
    }

    fn open(&mut self, head: Head, place: Place, before: Option<Before>) {
        if self.frames.len() == MAX_BLOCK_DEPTH {
            self.too_deep = true;
            let message = format!("structures nest at most {MAX_BLOCK_DEPTH} deep");
            let error = SyntaxError::new(Slug::TooLarge, place.span, message);
            self.errors.push(error.hint(hint!("move the inner ones to a function")));
            return;
        }
        if let Head::Function { name, name_span } = &head {
            let first = *self.functions.entry(name.clone()).or_insert(*name_span);
            if first != *name_span {
                let message = format!("the function `{name}` is defined twice");
                let error = SyntaxError::new(Slug::DuplicateFunction, *name_span, message);
                self.errors.push(error.related(first, "first defined here"));
            }
        }
        let structure = Structure::from(head);
        let gap = place.gap && !self.commands().is_empty();
        self.frames.push(Frame {
            place: Place { gap, ..place },
            structure,
            commands: Vec::new(),
            candidates: self.candidates.end(),
            before,
        });
    }

    /// The innermost open structure, if it is (or might be) one of `keyword`, for a line that says
    /// `word`. Otherwise the
    /// structures inside the nearest of `keyword` lack their `end`s; if there is none, the line
    /// at `place` is stray.
    fn innermost(&mut self, keyword: &str, word: &str, place: Place) -> Option<&mut Frame> {
        let Some(at) = self.frames.iter().rposition(|it| it.structure.keyword() == keyword) else {
            if self.blame_head(word, place) {
                self.owed_ends += 1;
            } else if self.owed_ends == 0 {
                let message = format!("`{word}` without `{keyword}`");
                let error = SyntaxError::new(Slug::StrayPart, place.span, message);
                let is_inside = keyword == "try" && !self.frames.is_empty();
                self.errors.push(if is_inside {
                    error
                        .hint(hint!("`catch` and `finally` belong to a `try` around the structure"))
                } else {
                    error
                });
            }
            return None;
        };
        while self.frames.len() > at + 1 {
            if let Some(frame) = self.frames.pop()
                && !matches!(frame.structure, Structure::Broken(_))
            {
                self.errors.push(no_end(&frame).related(place.span, "it must end before this"));
            }
        }
        self.frames.last_mut()
    }

    /// Explains a stray line by a command before it that was meant to be a head, if there is one.
    fn blame_head(&mut self, word: &str, place: Place) -> bool {
        let start = self.frames.last().map_or(0, |frame| frame.candidates);
        let Some((head, span, meant)) = self.candidates.take_last(start) else {
            return false;
        };
        let error =
            SyntaxError::new(Slug::UnknownStructure, span, format!("`{head}` begins no structure"))
                .hint(hint!("did you mean `{meant}`?"))
                .related(place.span, format!("so this `{word}` belongs to none"));
        self.errors.push(error);
        true
    }

    fn catch(&mut self, place: Place) {
        let candidates = self.candidates.end();
        let Some(frame) = self.innermost("try", "catch", place) else { return };
        let Structure::Try { head, catch, finally } = &mut frame.structure else { return };
        if let Some(first) = *finally {
            let error =
                SyntaxError::new(Slug::PartOrder, place.span, "`catch` comes before `finally`");
            self.errors.push(error.related(first, "the `finally` is here"));
            return;
        }
        if let Some(first) = catch {
            let first = *first;
            let error =
                SyntaxError::new(Slug::PartOrder, place.span, "a `try` has only one `catch`");
            self.errors.push(error.related(first, "the first one is here"));
            return;
        }
        *catch = Some(place.span);
        frame.candidates = candidates;
        head.body = Block { commands: std::mem::take(&mut frame.commands) };
    }

    fn finally(&mut self, place: Place) {
        let candidates = self.candidates.end();
        let Some(frame) = self.innermost("try", "finally", place) else { return };
        let Structure::Try { head, catch, finally } = &mut frame.structure else { return };
        if let Some(first) = *finally {
            let error =
                SyntaxError::new(Slug::PartOrder, place.span, "a `try` has only one `finally`");
            self.errors.push(error.related(first, "the first one is here"));
            return;
        }
        *finally = Some(place.span);
        frame.candidates = candidates;
        let block = Block { commands: std::mem::take(&mut frame.commands) };
        match *catch {
            Some(catch) => head.catch = Some((catch, block)),
            None => head.body = block,
        }
    }

    /// `else if condition`, or `else`.
    fn next_arm(&mut self, next: Option<Expr>, place: Place) {
        let candidates = self.candidates.end();
        let Some(frame) = self.innermost("if", "else", place) else { return };
        let Structure::If { arms, condition } = &mut frame.structure else { return };
        let Some(done) = std::mem::replace(condition, next) else {
            let error = SyntaxError::new(
                Slug::PartOrder,
                place.span,
                "nothing can follow the last `else` of an `if`",
            );
            self.errors.push(error.label("this `if` had its `else` already"));
            return;
        };
        arms.push((done, Block { commands: std::mem::take(&mut frame.commands) }));
        frame.candidates = candidates;
    }

    fn end(&mut self, end: End, place: Place) {
        let Some(frame) = self.frames.pop() else {
            if self.owed_ends > 0 {
                self.owed_ends -= 1;
            } else if !self.blame_head("end", place) {
                let error = SyntaxError::new(
                    Slug::StrayEnd,
                    place.span,
                    "`end` without a structure to end",
                );
                self.errors.push(error);
            }
            return self.piped_to_nothing(end, place);
        };
        self.suspect(&frame, place);
        if let Structure::Function { .. } = &frame.structure {
            self.check_definition(&end, frame.place.span);
        }
        let block = Block { commands: frame.commands };
        let Some(kind) = frame.structure.ended(block) else {
            return self.piped_to_nothing(end, place);
        };
        if frame.before.is_none() && end.after.is_none() {
            return self.push(kind, frame.place, end.redirects);
        }
        let (pipe_errors, after) = end.after.unwrap_or_default();
        let Before { mut stages, place: first } =
            frame.before.unwrap_or(Before { stages: Vec::new(), place: frame.place });
        let span = frame.place.span;
        let structure = Command { span, gap: false, kind, redirects: end.redirects };
        let kind = StageKind::Structure(Block { commands: vec![structure] });
        stages.push(Stage { kind, pipe_errors });
        self.piped(after, stages, first, place);
    }

    /// What comes after the `end` of nothing that is known: a structure begins there all the same.
    fn piped_to_nothing(&mut self, end: End, place: Place) {
        if let Some((_, Piped { head: Some((head, span)), .. })) = end.after {
            self.open(head, Place { span, ..place }, None);
        }
    }

    /// A function is defined wherever that stands, and so has no output or input of its own.
    fn check_definition(&mut self, end: &End, span: Span) {
        if let Some(redirect) = end.redirects.first() {
            let message = "a function's definition can't be redirected";
            let error = SyntaxError::new(Slug::FunctionOutput, redirect.span, message);
            self.errors.push(error.hint(hint!("redirect the commands inside, or each call")));
        }
        if end.after.is_some() {
            let message = "a function's definition can't be a stage of a pipeline";
            let error = SyntaxError::new(Slug::FunctionOutput, span, message);
            self.errors.push(error.hint(hint!("define it on lines of its own, and call it there")));
        }
    }

    /// Another shell's `end`.
    fn end_foreign(&mut self, keywords: &[&str], place: Place) {
        if self.frames.last().is_some_and(|it| keywords.contains(&it.structure.keyword())) {
            self.end(End::default(), place);
        }
    }

    /// Remembers a structure that was closed by an `end` indented like one further out.
    fn suspect(&mut self, frame: &Frame, end: Place) {
        let (Some(inner), Some(indent)) = (frame.place.indent, end.indent) else { return };
        let owner = self.frames.iter().rev().find(|it| it.place.indent == Some(indent));
        if let Some(owner) = owner.filter(|_| inner > indent) {
            let note = format!("this `end` is indented like the `{}`", owner.structure.keyword());
            self.suspects.push(no_end(frame).related(end.span, note));
        }
    }
}

fn first_word(line: &str) -> &str {
    line.split(|c: char| !c.is_ascii_alphabetic() && c != '}').next().unwrap_or("")
}

/// The structure that a line was meant to open, in this or another shell.
fn opened(line: &str) -> Option<&'static str> {
    let last_stage = line.rsplit('|').next().unwrap_or(line).trim_start();
    let words = [first_word(line), first_word(last_stage)];
    let head = HEADS.into_iter().find(|head| words.contains(head));
    let head = head.or_else(|| misspelled::meant(words[0]));
    let function = line.split_once('(').is_some_and(|(_, rest)| rest.starts_with(") {"));
    head.or(function.then_some("function"))
}

fn no_end(frame: &Frame) -> SyntaxError {
    let keyword = frame.structure.keyword();
    let start = frame.place.span.start;
    SyntaxError::new(
        Slug::MissingEnd,
        Span::new(start, start + keyword.len()),
        format!("this `{keyword}` has no `end`"),
    )
}
