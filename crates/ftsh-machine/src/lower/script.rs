//! Lowers statements and expressions.

use std::sync::Arc;

use bstr::BString;

use super::jumps::{Exits, Loops};
use crate::durations::learned::LimitFinder;
use crate::effect::DurationsOf;
use crate::outcome::shorten;
use crate::program::{Address, ChannelCode, DurationScale, Instruction, Program};
use crate::values::Value;
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    BinaryOperator, Block, ChannelDeclaration, Command, CommandKind, Duration, Expr, ExprKind,
    Mode, Modifier, ModifierKind, Name, Pipeline, Question, Redirect, Stage, StageKind,
    UnaryOperator, Word, calls,
};
use ftsh_syntax::span::{Source, Span};
use ftsh_syntax::vocabulary::function;

/// Variable holding the last standard error of a failed attempt.
pub(super) const ERROR_OUTPUT: &str = "error_output";

/// Lowers a script that a run begins with.
pub(crate) fn lower(script: &Script) -> Program {
    lower_file(script, Some(DurationsOf::Script))
}

/// Lowers a file, with the place of its durations if it has one.
pub(crate) fn lower_file(script: &Script, durations: Option<DurationsOf>) -> Program {
    lower_reading(script, durations, false)
}

/// Lowers a file on another machine, which has no files that the file uses. `calls_read` is true if
/// functions may read `$error_output`.
pub(crate) fn lower_elsewhere(script: &Script, calls_read: bool) -> Program {
    lower_reading(script, Some(DurationsOf::Script), calls_read)
}

fn lower_reading(script: &Script, durations: Option<DurationsOf>, calls_read: bool) -> Program {
    let mut lower = Lower {
        source: &script.source,
        line: 1,
        until: script.source.text().len(),
        calls_read: false,
        code: Vec::new(),
        lines: Vec::new(),
        functions: Vec::new(),
        channels: Vec::new(),
        pending: Vec::new(),
        pending_calls: Vec::new(),
        calls: Vec::new(),
        loops: Loops::default(),
        limits: LimitFinder::default(),
        is_collected: false,
        taken_back: None,
        used: script.used.iter(),
    };
    let mut files = script.all_files().into_iter().skip(1);
    lower.calls_read = calls_read
        || lower.may_read_in_functions(&script.body)
        || files.any(|file| file.source.text().contains(ERROR_OUTPUT));
    if let Some(of) = durations.filter(|_| may_learn(script)) {
        lower.emit(Instruction::Durations(of));
    }
    lower.block(&script.body);
    lower.emit(Instruction::Return { value: false });
    // Bodies of functions follow the script, and then calls in words. Nested ones are found on the
    // way.
    loop {
        if let Some((name, body, until)) = lower.pending.pop() {
            lower.until = until;
            lower.functions.push((Arc::clone(name), lower.here()));
            lower.limits.function = Some(Arc::clone(name));
            lower.block(body);
            lower.emit(Instruction::Return { value: false });
        } else if let Some(call) = lower.pending_calls.pop() {
            lower.calls.push((call.span.start, lower.here()));
            lower.at(call.span);
            lower.until = call.span.end;
            lower.expr(call);
            lower.emit(Instruction::EndCall);
        } else {
            break;
        }
    }
    lower.calls.sort_unstable();
    Program {
        source: Arc::clone(&script.source),
        code: lower.code,
        lines: lower.lines,
        functions: lower.functions,
        channels: lower.channels,
        calls: lower.calls,
        learned: lower.limits.found,
        calls_read: lower.calls_read,
    }
}

/// Returns false if a script certainly has no learned limit.
pub(super) fn may_learn(script: &Script) -> bool {
    script.source.text().contains("usual")
}

/// Way in which the output of failed attempts is taken back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TakenBack {
    /// The file or variable, which began empty, is cut when another attempt follows.
    Cut,
    /// The output is held, and appended when no other attempt follows.
    Held,
}

pub(super) struct Lower<'a> {
    pub(super) source: &'a Source,
    pub(super) line: u32,
    /// End of the current command in the source, or start of its next sibling.
    pub(super) until: usize,
    /// True if functions may read `$error_output`.
    pub(super) calls_read: bool,
    pub(super) code: Vec<Instruction>,
    pub(super) lines: Vec<u32>,
    pub(super) functions: Vec<(Name, Address)>,
    pub(super) channels: Vec<Name>,
    pub(super) pending: Vec<(&'a Name, &'a Block, usize)>,
    /// Calls in words, not yet lowered.
    pub(super) pending_calls: Vec<&'a Expr>,
    /// Offsets and addresses of lowered calls in words.
    pub(super) calls: Vec<(usize, Address)>,
    pub(super) loops: Loops,
    pub(super) limits: LimitFinder,
    /// Set in a `$(…)`, whose output failed attempts take back.
    pub(super) is_collected: bool,
    /// Output of the failed attempts of the structure that is lowered next.
    pub(super) taken_back: Option<TakenBack>,
    /// Files of the next `use` commands.
    pub(super) used: std::slice::Iter<'a, Option<Arc<Script>>>,
}

impl<'a> Lower<'a> {
    pub(super) fn here(&self) -> Address {
        self.code.len()
    }

    pub(super) fn emit(&mut self, instruction: Instruction) -> Address {
        self.code.push(instruction);
        self.lines.push(self.line);
        self.here() - 1
    }

    /// Reserves an instruction whose addresses are not known yet.
    pub(super) fn reserve(&mut self) -> Address {
        self.emit(Instruction::EndTask)
    }

    pub(super) fn at(&mut self, span: Span) {
        self.line = self.source.line(span.start);
    }

    pub(super) fn block(&mut self, block: &'a Block) {
        let until = self.until;
        for (at, command) in block.commands.iter().enumerate() {
            self.until = block.commands.get(at + 1).map_or(until, |next| next.span.start);
            self.command(command);
        }
        self.until = until;
    }

    /// Returns true if a function defined anywhere in a block may read `$error_output`.
    fn may_read_in_functions(&self, block: &Block) -> bool {
        let starts = block.commands.iter().map(|command| command.span.start);
        let ends = starts.clone().skip(1).chain([self.until]);
        let mut texts = starts.zip(ends).map(|(start, end)| self.text(start, end));
        texts.any(|text| text.contains("function") && text.contains(ERROR_OUTPUT))
    }

    pub(super) fn text(&self, start: usize, end: usize) -> &str {
        self.source.text().get(start..end).unwrap_or_default()
    }

    /// Lowers a block inside a number of additional frames.
    pub(super) fn inside(&mut self, frames: usize, block: &'a Block) {
        self.loops.depth += frames;
        self.block(block);
        self.loops.depth -= frames;
    }

    fn command(&mut self, command: &'a Command) {
        self.at(command.span);
        let targets = command.redirects.iter().filter_map(Redirect::word);
        self.pending_calls.extend(targets.flat_map(|word| calls(&word.parts)));
        let (around, within) = match &command.kind {
            // Output redirections of an atomic `try` belong to each attempt.
            CommandKind::Try(details) if details.clauses.atomic => {
                let redirects = command.redirects.iter().cloned();
                redirects.partition(|redirect| redirect.mode == Mode::Read)
            }
            _ => (command.redirects.clone(), Vec::new()),
        };
        let mut frames = 0;
        for (redirects, instruction) in [
            (around, Instruction::Redirect as fn(Arc<[Redirect]>) -> Instruction),
            (within, Instruction::Targets),
        ] {
            if !redirects.is_empty() {
                frames += 1;
                self.emit(instruction(redirects.into()));
            }
        }
        self.loops.depth += frames;
        self.taken_back = self.taken_back_of(command).or(self.taken_back);
        let is_collected = self.is_collected;
        self.is_collected &= !command.redirects.iter().any(|it| it.descriptor == 1);
        self.command_kind(command);
        self.is_collected = is_collected;
        self.loops.depth -= frames;
        for _ in 0..frames {
            self.emit(Instruction::EndRedirect);
        }
    }

    fn command_kind(&mut self, command: &'a Command) {
        match &command.kind {
            CommandKind::Comment { .. } => {}
            CommandKind::Pipeline(pipeline) => self.pipeline(pipeline),
            CommandKind::Assign { name, value: Some(value), local, exported } => {
                self.expr(value);
                self.at(command.span);
                if *local {
                    self.emit(Instruction::Local(Arc::clone(name)));
                }
                self.emit(Instruction::Assign(Arc::clone(name)));
                if *exported {
                    self.emit(Instruction::Export(Arc::clone(name)));
                }
            }
            CommandKind::Assign { name, value: None, local, .. } => {
                if *local {
                    self.emit(Instruction::Local(Arc::clone(name)));
                }
                self.emit(Instruction::Unset(Arc::clone(name)));
            }
            CommandKind::If { arms, otherwise } => self.conditional(arms, otherwise.as_ref()),
            CommandKind::Case(case) => self.case(case),
            CommandKind::While { condition, body } => {
                let start = self.here();
                self.expr(condition);
                let test = self.reserve();
                self.loops.enter(0);
                self.block(body);
                self.at(command.span);
                self.emit(Instruction::Jump(start));
                self.code[test] = Instruction::Unless(self.here());
                let exits = Exits { to_break: (0, self.here()), to_continue: (0, start) };
                self.loops.leave(0, &exits, &mut self.code);
            }
            CommandKind::In { directory, body } => {
                self.expr(directory);
                self.emit(Instruction::In);
                self.inside(1, body);
                self.emit(Instruction::EndIn);
            }
            CommandKind::With { companion, body } => {
                let head = self.reserve();
                let span = companion.commands.first().map_or(command.span, |it| it.span);
                let text = self.source.text().get(span.start..span.end).unwrap_or_default();
                let text = shorten(text.strip_prefix("with").unwrap_or(text).trim_start());
                let stages = match companion.commands.first().map(|it| &it.kind) {
                    Some(CommandKind::Pipeline(pipeline)) => pipeline.stages.len(),
                    _ => 1,
                };
                self.block(companion);
                self.at(command.span);
                self.emit(Instruction::EndTask);
                let body_at = self.here();
                self.inside(1, body);
                self.emit(Instruction::EndTask);
                let name = Value::from(BString::from(text));
                self.code[head] =
                    Instruction::With { name, stages, body: body_at, end: self.here() };
            }
            CommandKind::For(details) => {
                let usual = self.learned_limit(command);
                self.for_loop(details, usual);
            }
            CommandKind::Try(details) => {
                let usual = self.learned_limit(command);
                self.try_block(details, writes(&command.redirects), usual);
            }
            CommandKind::Function { name, body, .. } => self.pending.push((name, body, self.until)),
            CommandKind::Return(value) => {
                if let Some(value) = value {
                    self.expr(value);
                }
                self.emit(Instruction::Return { value: value.is_some() });
            }
            CommandKind::Shift(by) => {
                match by {
                    Some(by) => self.expr(by),
                    None => _ = self.emit(Instruction::Push(Value::Integer(1))),
                }
                self.emit(Instruction::Shift);
            }
            CommandKind::Channel(channel) => self.channel(channel),
            CommandKind::Args(declaration) => {
                self.emit(Instruction::Args(Arc::clone(declaration)));
            }
            CommandKind::Use(_) => {
                let file = self.used.next().and_then(Option::as_ref);
                self.emit(Instruction::Use(file.map(|file| Arc::new(Self::lower_used(file)))));
            }
            CommandKind::List { name, words, adds } => {
                self.words(words);
                self.at(command.span);
                let (name, values) = (Arc::clone(name), words.len());
                self.emit(Instruction::List { name, values, adds: *adds });
            }
            CommandKind::Jump(jump) => {
                let at = self.reserve();
                self.loops.jump(at, *jump);
            }
        }
    }

    fn channel(&mut self, channel: &'a ChannelDeclaration) {
        let rules = channel.rules.map(self, Self::duration, Self::expr);
        let name = Arc::clone(&channel.name);
        self.channels.push(Arc::clone(&name));
        self.emit(Instruction::Channel(Arc::new(ChannelCode { name, rules })));
    }

    fn pipeline(&mut self, pipeline: &'a Pipeline) {
        if let [stage] = &pipeline.stages[..] {
            return self.stage(stage);
        }
        let head = self.reserve();
        let mut stages = Vec::new();
        let is_collected = self.is_collected;
        for (at, stage) in pipeline.stages.iter().enumerate() {
            stages.push((self.here(), stage.pipe_errors));
            self.is_collected = is_collected && at + 1 == pipeline.stages.len();
            self.stage(stage);
            self.emit(Instruction::EndTask);
        }
        self.is_collected = is_collected;
        self.code[head] = Instruction::Pipeline { stages: stages.into(), end: self.here() };
    }

    fn stage(&mut self, stage: &'a Stage) {
        match &stage.kind {
            StageKind::Simple(simple) => {
                self.at(simple.span);
                self.pending_calls.extend(simple.all_words().flat_map(|word| calls(&word.parts)));
                self.modified(&simple.modifiers, |lower| {
                    lower.emit(Instruction::Command(Arc::new(simple.clone())));
                });
            }
            StageKind::Structure(block) => self.block(block),
        }
    }

    /// Emits a command inside its modifiers.
    fn modified(&mut self, modifiers: &'a [Modifier], command: impl FnOnce(&mut Self)) {
        let heads = modifiers.iter().map(|_| self.reserve()).collect::<Vec<_>>();
        command(self);
        for (head, modifier) in heads.into_iter().zip(modifiers).rev() {
            self.code[head] = match &modifier.kind {
                ModifierKind::Accept(statuses) => {
                    let end = self.emit(Instruction::EndAccept);
                    Instruction::Accept(statuses.clone(), end + 1)
                }
                ModifierKind::Keep => {
                    self.emit(Instruction::EndKeep);
                    Instruction::Keep
                }
            };
        }
    }

    /// Pushes the words of a list.
    pub(super) fn words(&mut self, list: &'a [Expr]) {
        for item in list {
            match &item.kind {
                ExprKind::Word(word) => self.word(word, Instruction::Words),
                _ => self.expr(item),
            }
        }
    }

    pub(super) fn duration(&mut self, duration: &'a Duration) -> DurationScale {
        match duration {
            Duration::Amount { amount, unit } => {
                self.expr(amount);
                DurationScale::Of(*unit)
            }
            Duration::Whole(word) => {
                self.word(word, Instruction::Operand);
                DurationScale::Whole
            }
        }
    }

    /// Literal words become values once, here.
    fn word(&mut self, word: &'a Word, otherwise: fn(Word) -> Instruction) {
        self.pending_calls.extend(calls(&word.parts));
        let instruction = match word.literal_text() {
            Some(text) => Instruction::Push(text.into()),
            None => otherwise(word.clone()),
        };
        self.emit(instruction);
    }

    pub(super) fn expr(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Word(word) => self.word(word, Instruction::Operand),
            ExprKind::Group(inner) => self.expr(inner),
            ExprKind::Call { name, args } => {
                let signature = function(name);
                for (at, arg) in args.iter().enumerate() {
                    // A function of the script takes words as well.
                    let takes_words = || signature.is_none_or(|it| it.takes_words(at));
                    match &arg.kind {
                        ExprKind::Word(word) if word.is_all_arguments() && takes_words() => {
                            self.word(word, Instruction::Words);
                        }
                        ExprKind::Word(word) => self.word(word, Instruction::Argument),
                        _ => self.expr(arg),
                    }
                }
                self.at(expr.span);
                self.emit(Instruction::Call { name: Arc::clone(name), arguments: args.len() });
            }
            ExprKind::Unary { operator, operand, .. } => {
                self.expr(operand);
                self.at(expr.span);
                self.emit(match operator {
                    UnaryOperator::Not => Instruction::Not,
                    UnaryOperator::Test(test) => Instruction::Test(*test),
                });
            }
            ExprKind::Binary { operator, is_symbol, left, right } => {
                self.expr(left);
                let decided = match operator {
                    BinaryOperator::Or => Some(true),
                    BinaryOperator::And => Some(false),
                    _ => None,
                };
                let jump = decided.map(|value| (value, self.reserve()));
                self.expr(right);
                self.at(expr.span);
                if let Some((value, jump)) = jump {
                    self.emit(Instruction::Boolean);
                    self.code[jump] = Instruction::ShortCircuit(value, self.here());
                } else {
                    self.emit(Instruction::Binary { operator: *operator, is_symbol: *is_symbol });
                }
            }
            ExprKind::Range { from, to, step } => {
                self.expr(from);
                self.expr(to);
                if let Some(step) = step {
                    self.expr(step);
                }
                self.emit(Instruction::Range { step: step.is_some() });
            }
            ExprKind::Collected(block) => {
                self.emit(Instruction::BeginOutput);
                let head = self.reserve();
                let stages = [(self.here(), false)].into();
                let around = std::mem::replace(&mut self.is_collected, true);
                self.block(block);
                self.is_collected = around;
                self.emit(Instruction::EndTask);
                self.code[head] = Instruction::Pipeline { stages, end: self.here() };
                self.emit(Instruction::EndRedirect);
                self.emit(Instruction::OutputText);
            }
            ExprKind::Asked { question: Question::Output, pipeline } => {
                self.emit(Instruction::BeginOutput);
                self.pipeline(pipeline);
                self.emit(Instruction::EndRedirect);
                self.emit(Instruction::OutputText);
            }
            ExprKind::Asked { question, pipeline } => {
                let head = self.reserve();
                self.pipeline(pipeline);
                self.emit(Instruction::EndProbe);
                self.code[head] = Instruction::BeginProbe(*question, self.here());
            }
        }
    }
}

/// Returns true if any of the redirections is for output.
fn writes(redirects: &[Redirect]) -> bool {
    redirects.iter().any(|redirect| redirect.mode != Mode::Read)
}
