//! Execution of a branch of another machine's `forall`. The branch becomes the single branch of a
//! `forall` on this machine, so that `exit`, `exec`, `return` and failures have the meaning they
//! have in a branch.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use bstr::BString;

use crate::config::Config;
use crate::core::Core;
use crate::effect::{BufferId, Directory, Effect};
use crate::elsewhere::RemoteRoot;
use crate::lower::lower_elsewhere;
use crate::outcome::{BranchResults, BranchWords, Failure, TrySummary, UnknownWords};
use crate::packed::{
    PackedBranch, PackedContext, PackedFailure, PackedTrace, PackedValue, PackedVariable, Text,
    Unrunnable,
};
use crate::program::{Address, Definitions, Instruction, Loop, Program};
use crate::record::Level;
use crate::secrets::Secrets;
use crate::tasks::{AttemptInfo, ParentContext, Task};
use crate::time::Time;
use crate::trace::{StepKind, Trace, TraceStep};
use crate::values::{List, Range, Value};
use crate::variables::{Variable, Variables};
use ftsh_syntax::ast::Name;
use ftsh_syntax::signal::Signal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::{KnownNames, Script, Source, parse_with};

/// Unpacked branch, for a new machine.
pub(crate) struct Unpacked {
    /// Arguments of the script.
    pub arguments: Vec<BString>,
    /// Settings of the run.
    pub config: Config,
    /// Seed of random choices.
    pub seed: u64,
    /// Functions and channels available to the branch.
    pub definitions: Definitions,
    /// Context of the branch.
    pub root: RemoteRoot,
    /// First signal for the processes of the branch if it is canceled.
    pub signal: Signal,
    /// The branch itself.
    pub branch: RootBranch,
}

/// The single branch of a machine that runs a branch of another machine's run.
pub(crate) struct RootBranch {
    program: Arc<Program>,
    at: Address,
    code: Arc<Loop>,
    word: PackedValue,
    variables: Vec<PackedVariable>,
    secrets: Secrets,
    directory: BString,
    umask: u16,
    slot: Option<NonZeroU32>,
    inherited: ParentContext,
}

impl Unpacked {
    /// Unpacks a branch, with the level of its log.
    pub(crate) fn new(
        packed: PackedBranch,
        log_level: Level,
        secrets: Secrets,
    ) -> Result<Self, Unrunnable> {
        let sources = sources(&packed.texts);
        let programs = programs(&packed, &sources)?;
        let program = |text: usize, at: Address| {
            let program = programs.get(text).and_then(Option::as_ref);
            let program = program.filter(|program| at < program.code.len());
            program.cloned().ok_or(Unrunnable::OtherProgram)
        };
        let main = program(packed.place.text, packed.place.at)?;
        let Some(Instruction::ForAll { code, .. }) = main.code.get(packed.place.at) else {
            return Err(Unrunnable::OtherProgram);
        };
        let code = Arc::clone(code);
        let settings = packed.settings;
        let config = Config {
            pid: settings.pid,
            umask: packed.umask,
            passing_input: false,
            backoff: settings.backoff,
            kill_timeout: settings.kill_timeout,
            kill_strong: settings.kill_strong,
            unset_is_empty: settings.unset_is_empty,
            deadline: packed.around.deadline.map(Time::after).into(),
            on: None,
            log_level,
            secrets: secrets.clone(),
        };
        let mut definitions = Definitions::default();
        for (name, place) in packed.functions {
            let program = program(place.text, place.at)?;
            definitions.add_function(name.as_str().into(), (program, place.at));
        }
        for (name, rules) in packed.channels {
            definitions.add_channel(name.as_str().into(), rules.map(Arc::new));
        }
        let root = RemoteRoot {
            texts: sources.clone(),
            inside: packed.around.inside.clone(),
            is_retried: packed.around.is_retried,
            conditions: packed.around.conditions,
            ending: None,
            attempts: 0,
        };
        let signal = packed.around.signal;
        let branch = RootBranch {
            program: main,
            at: packed.place.at,
            code,
            word: packed.word,
            variables: packed.variables,
            secrets,
            directory: packed.directory,
            umask: packed.umask,
            slot: packed.slot,
            inherited: inherited(packed.around, &sources),
        };
        let (arguments, seed) = (packed.arguments, packed.seed);
        Ok(Self { arguments, config, seed, definitions, root, signal, branch })
    }
}

impl RootBranch {
    /// Positions the script's task at the `forall` of the branch. Returns the loop and the word.
    pub(crate) fn enter(
        self,
        task: &mut Task,
        core: &mut Core,
    ) -> Result<(Arc<Loop>, Value), Unrunnable> {
        let mut variables = BTreeMap::new();
        for packed in self.variables {
            let value = value(core, packed.value)?;
            let (exported, inherited) = (packed.exported, packed.inherited);
            let variable = Variable { value, exported, inherited };
            variables.insert(Name::from(packed.name.as_str()), variable);
        }
        let word = value(core, self.word)?;
        task.program = self.program;
        task.at = self.at;
        task.variables = Variables::of(variables, self.secrets);
        task.directory = Directory::at(self.directory);
        task.umask = Some(self.umask);
        task.slot = self.slot;
        task.inherited = Arc::new(self.inherited);
        Ok((self.code, word))
    }
}

/// Unpacks a value. The output of a command is stored with the driver again.
fn value(core: &mut Core, packed: PackedValue) -> Result<Value, Unrunnable> {
    Ok(match packed {
        PackedValue::Text(text) => Value::from(text),
        PackedValue::Integer(integer) => Value::Integer(integer),
        PackedValue::Boolean(boolean) => Value::Boolean(boolean),
        PackedValue::Range(first, last, step) => {
            Value::Range(Range::new(first, last, step).map_err(|_| Unrunnable::OtherProgram)?)
        }
        PackedValue::List(elements) => {
            Value::List(Arc::new(list(&elements).ok_or(Unrunnable::OtherProgram)?))
        }
        PackedValue::Written(content) => {
            let buffer = core.new_handle(BufferId);
            core.request(Effect::Fill(buffer.id(), content));
            Value::Buffer(buffer)
        }
    })
}

fn sources(texts: &[Text]) -> Vec<Arc<Source>> {
    texts.iter().map(|it| Arc::new(Source::new(&it.name, it.text.as_str()))).collect()
}

/// Lowers those texts that are programs.
fn programs(
    packed: &PackedBranch,
    sources: &[Arc<Source>],
) -> Result<Vec<Option<Arc<Program>>>, Unrunnable> {
    // A file may use channels declared elsewhere.
    let channels: Vec<&str> = packed.channels.iter().map(|(name, _)| name.as_str()).collect();
    let functions: Vec<&str> = packed.functions.iter().map(|(name, _)| name.as_str()).collect();
    let programs = packed.texts.iter().zip(sources).map(|(it, source)| {
        let Some(length) = it.length else { return Ok(None) };
        let known = KnownNames {
            channels: &channels,
            functions: &functions,
            is_open: true,
            is_part: false,
            has_used: false,
        };
        let script =
            parse_with(&it.name, &it.text, known).map_err(|_| Unrunnable::Text(it.name.clone()))?;
        let script = Script { source: Arc::clone(source), ..script };
        let program = lower_elsewhere(&script, it.calls_read);
        if program.code.len() != length {
            return Err(Unrunnable::OtherProgram);
        }
        Ok(Some(Arc::new(program)))
    });
    programs.collect()
}

fn inherited(around: PackedContext, sources: &[Arc<Source>]) -> ParentContext {
    ParentContext {
        deadline: around.deadline.map(Time::after).into(),
        attempt: around.attempt.map(|(number, started, deadline)| AttemptInfo {
            number,
            started: Time::after(started),
            deadline: deadline.map(Time::after).into(),
        }),
        failure: failure(around.caught, sources),
        succeeded: around.succeeded,
        depth: around.depth,
        is_guarded: around.is_guarded,
        scratch: None,
        view: None,
    }
}

/// Unpacks a failure with its chain of explanations; `None` for an empty chain.
pub fn failure(packed: Vec<PackedFailure>, sources: &[Arc<Source>]) -> Option<Arc<Failure>> {
    let nowhere = || Arc::new(Source::new("", ""));
    packed.into_iter().rev().fold(None, |earlier, packed| {
        let tries = packed.tries.into_iter().map(|tried| TrySummary {
            file: tried.file.into(),
            line: tried.line,
            attempts: tried.attempts,
            elapsed: tried.elapsed,
        });
        let branches = packed.branches.map(|it| {
            let words =
                UnpackedWords { succeeded: it.succeeded, others: it.others, errors: it.errors };
            let words = Arc::new(words);
            // The failures of the branches are not in the log of this shell.
            let sums_up = false;
            Arc::new(BranchResults { reported: it.reported, failed: it.failed, sums_up, words })
        });
        Some(Arc::new(Failure {
            kind: packed.kind,
            code: packed.code,
            errno: packed.errno,
            slug: Slug::named(&packed.slug).unwrap_or(packed.kind.slug()),
            message: packed.message,
            command: packed.command,
            elapsed: packed.elapsed,
            source: sources.get(packed.text).cloned().unwrap_or_else(nowhere),
            line: packed.line,
            tries: tries.collect(),
            trace: Trace::default(),
            earlier,
            branches,
            printed: None,
            output: packed.output.map(Arc::new),
        }))
    })
}

/// Unpacks the trace of a failure.
pub(crate) fn trace(packed: PackedTrace) -> Trace {
    let steps = packed.steps.into_iter().map(|step| {
        let name = step.name.map(|name| Name::from(name.as_str()));
        let kind = match (name, step.word) {
            (Some(name), Some(word)) => StepKind::Branch { name, word },
            (Some(name), None) => StepKind::Function(name),
            (None, _) => StepKind::Source,
        };
        TraceStep { kind, file: step.file.into(), line: step.line, tries: step.tries }
    });
    Trace::new(steps.collect(), packed.left_out)
}

/// Unpacks a list; `None` if it is too long.
fn list(elements: &[BString]) -> Option<List> {
    let mut list = List::default();
    elements.iter().try_for_each(|element| list.push(element)).ok()?;
    Some(list)
}

/// Words listed by another machine.
#[derive(Debug)]
struct UnpackedWords {
    succeeded: Option<Vec<BString>>,
    others: Option<Vec<BString>>,
    errors: Option<Vec<BString>>,
}

impl BranchWords for UnpackedWords {
    fn each(&self, succeeded: bool, visit: &mut dyn FnMut(&[u8])) -> Result<(), UnknownWords> {
        let words = if succeeded { &self.succeeded } else { &self.others };
        visit_all(words.as_deref(), visit)
    }

    fn each_error(&self, visit: &mut dyn FnMut(&[u8])) -> Result<(), UnknownWords> {
        visit_all(self.errors.as_deref(), visit)
    }
}

/// Visits a list from another machine.
fn visit_all(list: Option<&[BString]>, visit: &mut dyn FnMut(&[u8])) -> Result<(), UnknownWords> {
    list.ok_or(UnknownWords::NotSent)?.iter().for_each(|word| visit(word));
    Ok(())
}
